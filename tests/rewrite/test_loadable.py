"""What TFLM cannot load is rewritten into what it can, and proved equal; what stays is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import tflite_memopt
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.tflm import run_models
from tflite_memopt import Options, UnsupportedModelError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.proof import prove
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model, Signature, Tensor
from tflite_memopt.report.summary import wrong_in_words
from tflite_memopt.search.rewrite.loadable import mended

F32, I8, I32 = DType.FLOAT32, DType.INT8, DType.INT32


def tiled(shape: Sequence[int], times: Sequence[int], dtype: DType = F32) -> Model:
    b = ModelBuilder()
    x = b.input("x", shape, dtype)
    y = b.tensor("y", [size * count for size, count in zip(shape, times, strict=True)], dtype)
    b.operator("TILE", (x, b.constant("times", np.asarray(times, np.int32))), (y,))
    return b.finish(y)


def keras_upsampling(behind: str | None = None) -> Model:
    """As the converter writes UpSampling2D of Keras 3: the reshapes in the middle are one. ``behind``: an operator."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 4, 5, 3)), 2)
    for at, (narrow, times) in enumerate((((1, 4, 1, 5, 2), (1, 1, 2, 1, 1)), ((1, 8, 5, 1, 2), (1, 1, 1, 3, 1)))):
        y = b.reshape(y, narrow)
        made = b.tensor(f"tiled{at}", [size * count for size, count in zip(narrow, times, strict=True)])
        b.operator("TILE", (y, b.constant(f"times{at}", np.asarray(times, np.int32))), (made,))
        y = made
    z = b.conv(b.reshape(y, (1, 8, 15, 2)), 3)
    if behind is not None:
        made = b.tensor("made", z.shape)
        b.operator(behind, (z, z), (made,))
        z = made
    return b.finish(z)


def tile_before(reader: str, slot: int, copies: str = "TILE") -> Model:
    b = ModelBuilder()
    x, gate = b.input("x", (1, 4, 5, 3)), b.input("gate", (1, 1, 1, 3))
    wide, y = b.tensor("wide", x.shape), b.tensor("y", x.shape)
    operand = x.shape if copies == "BROADCAST_TO" else (1, 4, 5, 1)
    b.operator(copies, (gate, b.constant("operand", np.asarray(operand, np.int32))), (wide,))
    b.operator(reader, (x, wide) if slot else (wide, x), (y,), f"{reader.title()}Options")
    return b.finish(y)


def embedding(select: str = "SELECT") -> Model:
    """As Keras 3 writes an Embedding: positions that are negative count from the end."""
    b = ModelBuilder()
    ids = b.input("ids", (1, 6), I32)
    is_negative, moved, chosen = (b.tensor(name, (1, 6), t) for name, t in (("n", DType.BOOL), ("m", I32), ("c", I32)))
    y = b.tensor("y", (1, 6, 4), F32)
    b.operator("LESS", (ids, b.constant("zero", np.zeros((), np.int32))), (is_negative,))
    b.operator("ADD", (ids, b.constant("size", np.full((), 9, np.int32))), (moved,), "AddOptions")
    b.operator(select, (is_negative, moved, ids), (chosen,))
    table = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    b.operator("GATHER", (b.constant("table", table), chosen), (y,), "GatherOptions")
    return b.finish(y)


def half_weights() -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8), F32), b.tensor("y", (1, 4), F32)
    wide = b.tensor("wide", (4, 8), F32)
    narrow = b.constant("w", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float16))
    b.operator("DEQUANTIZE", (narrow,), (wide,)).opcode.version = 3
    b.operator("FULLY_CONNECTED", (x, wide, None), (y,), "FullyConnectedOptions")
    return b.finish(y)


def two_signatures() -> Model:
    """The second one has no tensors, so that the wheel runs the model as it is: of others it crashed in some arenas."""
    b = ModelBuilder()
    x = b.input("x", (1, 4))
    model = b.finish(b.dense(x, 3))
    first = Signature("first", b.graph, (("x", x),), (("y", b.graph.outputs[0]),))
    b.new_graph("second")
    b.operator("CALL_ONCE", (), (), "CallOnceOptions", initSubgraphIndex=2)
    b.finish()
    model.signatures = [first, Signature("second", b.graph, (), ())]
    b.new_graph("nothing")
    b.finish()
    return model


def masked() -> Model:
    """A mask as a recurrent layer takes it apart: step by step, each one choosing between two states."""
    b = ModelBuilder()
    mask, x = b.input("mask", (2, 3), DType.BOOL), b.input("x", (2, 4), F32)
    steps = [b.tensor(f"step{number}", (2,), DType.BOOL) for number in range(3)]
    b.operator("UNPACK", (mask,), steps, "UnpackOptions", num=3, axis=-1)
    for number, step in enumerate(steps):
        wide, y = b.tensor(f"wide{number}", (2, 1), DType.BOOL), b.tensor(f"y{number}", (2, 4), F32)
        b.operator("EXPAND_DIMS", (step, b.constant(f"axis{number}", np.asarray(-1, np.int32))), (wide,))
        zeros = b.constant(f"zeros{number}", np.full((2, 4), number, np.float32))
        b.operator("SELECT_V2", (wide, x, zeros), (y,))
        x = y
    return b.finish(x)


def selu(dtype: DType = F32) -> Model:
    """As the converter writes the activation selu of Keras, without its factors."""
    b = ModelBuilder()
    x, positive = b.input("x", (2, 3), dtype), b.input("c", (2, 3), DType.BOOL)
    low, y = b.tensor("low", (2, 3), dtype), b.tensor("y", (2, 3), dtype)
    b.operator("ABS", (x,), (low,))
    b.operator("SELECT", (positive, x, low), (y,))
    return b.finish(y)


def positions() -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (1, 6), I32), b.tensor("y", (1, 1, 6), I32)
    b.operator("EXPAND_DIMS", (x, b.constant("axis", np.asarray(1, np.int32))), (y,), "ExpandDimsOptions")
    return b.finish(y)


CASES: dict[str, tuple[Callable[[], Model], str]] = {
    "tile of several axes": (lambda: tiled((2, 3, 1), (3, 1, 4)), "tiles"),
    "tile of int8": (lambda: tiled((1, 5), (1, 3), I8), "tiles"),
    "keras 3 upsampling": (keras_upsampling, "repeated_pixels"),
    "tile before a product": (lambda: tile_before("MUL", 1), "broadcast"),
    "tile before a difference": (lambda: tile_before("SUB", 0), "broadcast"),
    "embedding": (embedding, "shifted_positions"),
    "embedding, second version": (lambda: embedding("SELECT_V2"), "shifted_positions"),
    "selu": (selu, "chosen"),
    "selu of int8": (lambda: selu(I8), "chosen"),
    "float16": (half_weights, "widened_constant"),
    "mask, step by step": (masked, "unpacked"),
    "mask with an axis more": (masked, "added_axis"),
    "positions with an axis more": (positions, "added_axis"),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("case", CASES)
def test_tflm_runs_it_then_and_it_is_proved_equal(case: str) -> None:
    make, rule = CASES[case]
    model = read_model(write_model(make()))
    found = mended(copy_model(model))
    assert found.before.makes == "cannot run"
    assert found.after.runs
    assert rule in {use.rule for use in found.uses}
    data = write_model(found.model)
    proof = prove(model, read_model(data))
    assert proof.proved, proof
    samples = seeded_inputs(model, 3, 0)
    on_litert = run_models("litert", {"as it came": write_model(model), "mended": data}, samples, 0)
    on_tflm = run_models("tflm", {"mended": data}, samples, 1 << 20)["mended"]
    assert on_tflm.ran, on_tflm.error
    for at, values in on_litert["as it came"].outputs.items():
        for value, other, third in zip(values, on_litert["mended"].outputs[at], on_tflm.outputs[at], strict=True):
            assert value.tobytes() == other.tobytes()
            np.testing.assert_allclose(third, other, rtol=1e-5)


def test_the_answer_says_that_it_could_not_be_loaded_before() -> None:
    data = write_model(keras_upsampling())
    analysis = tflite_memopt.analyze(data)
    assert analysis.summary.headline.startswith("TFLM cannot load this file as it is: ")
    assert analysis.mends
    assert wrong_in_words(analysis).endswith("; optimize fixes that")  # what check prints
    report = tflite_memopt.optimize(data, Options(samples=2, effort="quick")).report
    assert report.summary.headline.startswith("TFLM cannot load the file as it came")
    assert " -> " not in report.summary.headline
    assert report.basis.plan_executed
    assert report.before.required_for_target == analysis.memory.required_for_target


def test_what_still_stands_in_the_way_is_named_as_in_the_file() -> None:
    """The reshapes and copies before it are fewer once they are rewritten."""
    model = keras_upsampling("ATAN2")
    found = mended(copy_model(model))
    assert found.uses
    (left,) = found.after.reasons
    assert (left.index, left.operator) == (len(model.main.operators) - 1, "ATAN2")
    assert len(found.model.main.operators) < len(model.main.operators)


def test_another_signature_is_dropped_with_a_word() -> None:
    result = tflite_memopt.optimize(write_model(two_signatures()), Options(samples=2, effort="quick"))
    assert [each.key for each in read_model(result.model).signatures or ()] == ["first"]
    assert any("'second'" in warning for warning in result.report.warnings)


def test_a_tile_of_too_many_dimensions_stays_and_is_refused() -> None:
    model = tiled((2, 2, 2, 2), (2, 2, 2, 2))
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "TILE"):
        tflite_memopt.optimize(write_model(model), Options(verify=False))


def test_a_broadcast_that_makes_the_output_larger_stays() -> None:
    b = ModelBuilder()
    x, wide, y = b.input("x", (1, 1, 3)), b.tensor("wide", (1, 4, 3)), b.tensor("y", (1, 4, 3))
    small = b.input("small", (1, 1, 3))
    b.operator("TILE", (x, b.constant("times", np.asarray((1, 4, 1), np.int32))), (wide,))
    b.operator("MUL", (wide, small), (y,), "MulOptions")
    found = mended(b.finish(y))
    assert [use.rule for use in found.uses] == ["tiles"]


def test_copies_that_tflm_can_make_are_dropped_too() -> None:
    report = tflite_memopt.optimize(write_model(tile_before("ADD", 1, "BROADCAST_TO")), Options(samples=2)).report
    assert report.as_it_came.makes == "runs"
    assert "broadcast" in {use.rule for use in report.rewrites}
    assert report.after.operators == 1


def ids_through(write: Callable[[ModelBuilder, Tensor], Tensor], dtype: DType = I32) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (1, 6), dtype), b.tensor("y", (1, 6, 4), F32)
    table = b.constant("table", np.zeros((9, 4), np.float32))
    b.operator("GATHER", (table, write(b, x)), (y,), "GatherOptions")
    return b.finish(y)


def with_constant(name: str, by: int) -> Callable[[ModelBuilder, Tensor], Tensor]:
    def write(b: ModelBuilder, x: Tensor) -> Tensor:
        y = b.tensor("moved", x.shape, I32)
        kind = "MaximumMinimumOptions" if name in ("MAXIMUM", "MINIMUM") else f"{name.title()}Options"
        b.operator(name, (x, b.constant("by", np.full((), by, np.int32))), (y,), kind)
        return y

    return write


def cast(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.tensor("cast", x.shape, I32)
    b.operator("CAST", (x,), (y,), "CastOptions", inDataType=0, outDataType=2)
    return y


@pytest.mark.parametrize(
    ("model", "low", "high"),
    [
        (embedding(), 0, 8),
        (ids_through(with_constant("ADD", 3)), -3, 5),
        (ids_through(with_constant("SUB", 3)), 3, 11),
        (ids_through(with_constant("MINIMUM", 8)), 0, 1 << 30),
        (ids_through(with_constant("MAXIMUM", 0)), -(1 << 30), 8),
        (ids_through(cast, F32), 0, 8),
    ],
)
def test_inputs_are_those_that_a_table_behind_other_operators_takes(model: Model, low: int, high: int) -> None:
    drawn = np.concatenate([sample[0].ravel() for sample in seeded_inputs(model, 9, 0)])
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert drawn.max() > low + (high - low) // 2
    (run,) = run_models("litert", {"model": write_model(model)}, seeded_inputs(model, 9, 0), 0).values()
    assert run.ran, run.error


def test_a_second_signature_that_tflm_loads_is_counted_before_and_no_run_time_after() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 64), F32), b.tensor("y", (1, 64), F32)
    b.operator("RELU", (x,), (y,))
    b.finish(y)
    b.new_graph("second")
    x, y = b.input("z", (1, 64), F32), b.tensor("v", (1, 64), F32)
    b.operator("LOGISTIC", (x,), (y,))
    b.finish(y)
    result = tflite_memopt.optimize(write_model(b.model), Options(samples=2, effort="quick"))
    assert [use.rule for use in result.report.rewrites] == ["uncalled_subgraphs"]
    before, after = result.report.before, result.report.after
    assert all(after.required_bytes[word] < before.required_bytes[word] for word in before.required_bytes)
    assert after.instructions == before.instructions
    assert len(read_model(result.model).graphs) == 1
