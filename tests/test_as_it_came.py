"""What TFLM makes of a file as it came: commands say it first, with the exit code for it, and mend what they can."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tflite_memopt
from tests.command import run
from tests.deep import with_weights_behind
from tests.model_builder import ModelBuilder, per_channel
from tests.models import mobile_chain, streaming_model
from tests.tflm import needs_wheel, run_models
from tflite_memopt import Options
from tflite_memopt.errors import EquivalenceError, ErrorKind, ModelFormatError, UnsupportedModelError
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.verdict import ON_TFLM
from tflite_memopt.evidence.proof import prove
from tflite_memopt.kernels.as_it_came import as_it_came
from tflite_memopt.model.io.metadata import replace_entry
from tflite_memopt.model.io.offline_plan import METADATA_NAME, decode
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Buffer, DType, Model, Quantization, Tensor
from tflite_memopt.report.exploration import headline_of
from tflite_memopt.run.explore import explore
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.folding import WIDENED_CONSTANT

Array = npt.NDArray[Any]
ARENA = 1 << 20
QUICK = Options(samples=4, effort="quick")
F32, I8 = DType.FLOAT32, DType.INT8


def weights(b: ModelBuilder, dtype: str, units: int, depth: int, scales: int, zero_point: int = 0) -> Tensor:
    """Integers in float32 by a DEQUANTIZE, ``scales`` of them along the units."""
    low, high = {"int4": (-8, 8), "int8": (-128, 128), "uint8": (0, 256), "int16": (-3000, 3000)}[dtype]
    stored = np.random.default_rng(units).integers(low, high, (units, depth))
    if dtype == "int4":
        nibbles = np.append(stored.ravel() & 15, [0] * (stored.size % 2)).astype(np.uint8)
        raw = (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8)
    else:
        raw = np.frombuffer(stored.astype(dtype).tobytes(), np.uint8)
    scale = (np.geomspace(0.3, 1.0, scales) / high).astype(np.float32)
    quantization = Quantization(scale, np.full(scales, zero_point, np.int64), 0)
    b.model.buffers.append(Buffer(raw))
    number = len(b.graph.tensors)
    held = Tensor(f"w{number}", (units, depth), DType[dtype.upper()], b.model.buffers[-1], quantization)
    wide = b.tensor(f"wide{number}", (units, depth), F32)
    b.operator("DEQUANTIZE", (b.graph.add_tensor(held),), (wide,), "DequantizeOptions")
    return wide


def weight_only(dtype: str = "int8", has_scales: bool = True, zero_point: int = 0) -> Model:
    """Two dense layers of floats, with weights of integers."""
    b = ModelBuilder()
    y = b.input("x", (1, 33), F32)
    for units in (65, 3):
        filters = weights(b, dtype, units, y.shape[1], units if has_scales else 1, zero_point)
        made = b.tensor(f"y{units}", (1, units), F32)
        b.operator("FULLY_CONNECTED", (y, filters, None), (made,), "FullyConnectedOptions", fusedActivationFunction=1)
        y = made
    return b.finish(y)


CONSTANTS = (
    ("int8", True, 0),
    ("int8", False, 5),
    ("int8", True, -3),
    ("int4", True, 0),
    ("int4", False, 0),
    ("int16", False, 0),
    ("uint8", False, 128),
)


@pytest.mark.few(3)
@pytest.mark.parametrize(("dtype", "has_scales", "zero_point"), CONSTANTS)
def test_constants_in_float32_need_less_and_are_right_on_both(dtype: str, has_scales: bool, zero_point: int) -> None:
    model = weight_only(dtype, has_scales, zero_point)
    data = write_model(model)
    result = tflite_memopt.optimize(data, QUICK)
    report = result.report
    assert [each.name for each in read_model(result.model).main.operators] == ["FULLY_CONNECTED"] * 2
    assert report.proofs["result"].is_proved
    assert {name: each.equal for name, each in report.equivalence.items()} == {"litert": True, "tflm": True}
    makes = "cannot run" if dtype == "int4" else "computes otherwise" if has_scales else "runs"
    assert report.as_it_came.makes == makes
    assert report.after.required_for_target < 1500
    if dtype != "int4":
        assert report.before.required_for_target > 4 * 65 * 33
    assert report.file_bytes["after"] > 4 * 65 * 33 > report.file_bytes["before"]
    samples = seeded_inputs(model, 4, 0)
    wanted = run_models("litert", {"m": data}, samples, 0)["m"].outputs[0]
    found = run_models("tflm", {"m": result.model}, samples, ARENA)["m"].outputs[0]
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_an_option_keeps_constants_that_tflm_dequantizes_rightly() -> None:
    keep = Options(samples=4, effort="quick", keep_quantized=True)
    kept = tflite_memopt.optimize(write_model(weight_only(has_scales=False)), keep)
    assert [each.name for each in read_model(kept.model).main.operators].count("DEQUANTIZE") == 2
    assert kept.report.file_bytes["after"] < 4 * 65 * 33
    wrong = tflite_memopt.optimize(write_model(weight_only(has_scales=True)), keep)
    assert [each.name for each in read_model(wrong.model).main.operators].count("DEQUANTIZE") == 0


@pytest.mark.parametrize("rewrite", [True, False])
def test_what_is_wrong_is_mended_whatever_else_may_change(rewrite: bool) -> None:
    options = Options(samples=4, effort="quick", cascade=False, rewrite=rewrite)
    result = tflite_memopt.optimize(write_model(weight_only()), options)
    assert as_it_came(read_model(result.model)).makes == "runs"


@pytest.mark.parametrize("change", ["returned", "sparse", "in blocks"])
def test_constants_that_are_not_folded(change: str) -> None:
    model = weight_only(has_scales=False)
    (operator, *_) = model.main.operators
    source = operator.required(0)
    if change == "returned":
        model.main.outputs = (*model.main.outputs, operator.outputs[0])
    elif change == "sparse":
        source.extras = {"sparsity": object()}
    else:
        assert source.quantization is not None
        source.quantization = Quantization(source.quantization.scale, source.quantization.zero_point, 0, {"details": 1})
    driver = Driver(model)
    driver.apply_everywhere((WIDENED_CONSTANT,))
    assert [each.operator for each in driver.applied] == [model.main.operators[-1].required(1).name]
    assert [key for key, _ in driver.refused] == ["widened_constant"]


# RELU6 ----------------------------------------------------------------------------------------------------------------


def clamped(scale: float, zero_point: int, dtype: DType = I8, source: tuple[float, int] = (0.05, 3)) -> Model:
    b = ModelBuilder()
    x = b.input("x", (256, 256) if dtype is DType.INT16 else (1, 256), dtype, scale=source[0], zero_point=source[1])
    y = b.tensor("y", x.shape, dtype, scale, zero_point)
    return b.finish(b.operator("RELU6", (x,), (y,)).outputs[0])


def every_integer(model: Model) -> list[list[Array]]:
    (x,) = model.main.inputs
    low, dtype = (-(2**15), np.int16) if x.dtype is DType.INT16 else (-128, np.int8)
    return [[np.arange(low, low + x.elements).astype(dtype).reshape(x.shape)]]


CLAMPS = [(0.025, 3), (0.05, -128), (6 / 255, -128), (0.2, 5), (0.0477, 90), (0.001, -100)]


@pytest.mark.few(4)
@needs_wheel
@pytest.mark.parametrize(("scale", "zero_point"), CLAMPS)
@pytest.mark.parametrize("dtype", [I8, DType.INT16])
def test_relu6_is_right_for_every_integer(scale: float, zero_point: int, dtype: DType) -> None:
    if dtype is DType.INT16:
        scale, zero_point = scale / 100, 0
    model = clamped(scale, zero_point, dtype, (0.05, 3) if dtype is I8 else (0.0009, 0))
    data, samples = write_model(model), every_integer(model)
    result = tflite_memopt.optimize(data, QUICK)
    assert {use.rule for use in result.report.rewrites} == {"clamp_apart"}
    assert result.report.proofs["result"].is_proved
    (wanted,) = run_models("litert", {"m": data}, samples, 0)["m"].outputs[0]
    (wrong,) = run_models("tflm", {"m": data}, samples, ARENA)["m"].outputs[0]
    (same,) = run_models("litert", {"m": result.model}, samples, 0)["m"].outputs[0]
    (found,) = run_models("tflm", {"m": result.model}, samples, ARENA)["m"].outputs[0]
    assert np.array_equal(same, wanted)
    assert abs(found.astype(int) - wanted).max() <= 1  # TFLM rounds ties twice, here as in all of its kernels
    assert abs(wrong.astype(int) - wanted).max() > 1


@needs_wheel
def test_where_the_runtimes_round_differently_there_is_no_verdict_but_the_gap() -> None:
    """Of the ramp over all integers one is a tie."""
    report = tflite_memopt.optimize(write_model(clamped(6 / 255, -128)), QUICK).report
    assert report.equivalence["litert"].equal
    assert report.equivalence["tflm"].equal is None
    assert report.basis.executed_by == ("tflm",)
    assert any("at most 1" in warning for warning in report.warnings)
    assert "rightly" not in report.summary.headline


def test_relu6_whose_largest_integer_is_6_is_a_relu_alone() -> None:
    kinds = {
        limit: [each.name for each in read_model(tflite_memopt.optimize(data, QUICK).model).main.operators]
        for limit, data in ((127, write_model(clamped(6 / 255, -128))), (72, write_model(clamped(0.03, -128))))
    }
    assert kinds == {127: ["RELU"], 72: ["RELU", "RELU6"]}


# Weights behind the flatbuffer ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_weights_behind_the_flatbuffer_are_written_inline_and_nothing_else_differs() -> None:
    inline = write_model(mobile_chain())
    behind = with_weights_behind(inline)
    found, plain = (tflite_memopt.optimize(data, QUICK) for data in (behind, inline))
    assert found.model == plain.model
    report = found.report
    assert report.as_it_came.makes == "computes otherwise"
    assert report.as_it_came.constants_behind == len(read_model(behind).constants_behind) > 0
    assert report.after.required_for_target == plain.report.after.required_for_target
    assert report.equivalence["tflm"].equal
    assert "weights_inline" in {use.rule for use in report.rewrites}
    assert not report.basis.findings
    assert not read_model(found.model).constants_behind
    analysis = tflite_memopt.analyze(behind)
    assert analysis.answer.judgement == "no weights"
    assert analysis.mends
    assert analysis.memory == tflite_memopt.analyze(inline).memory


@pytest.mark.slow
def test_verify_holds_what_tflm_computes_against_litert_where_it_sees_no_weights() -> None:
    behind = with_weights_behind(write_model(mobile_chain()))
    result = tflite_memopt.optimize(behind, QUICK).model
    found = tflite_memopt.verify(behind, result, QUICK)
    assert found["litert"].equal
    assert found["tflm"].equal is not False
    assert ON_TFLM not in found
    assert tflite_memopt.verify(result, behind, QUICK)[ON_TFLM].equal is False


# A plan of another graph ----------------------------------------------------------------------------------------------


def with_foreign_plan() -> bytes:
    model = mobile_chain()
    words = [1, 1, 3, 0, 16, 32]
    replace_entry(model, METADATA_NAME, np.asarray(words, "<i4").tobytes())
    return write_model(model)


@pytest.mark.slow
@needs_wheel
def test_a_plan_of_another_graph_is_left_out() -> None:
    data = with_foreign_plan()
    model = read_model(write_model(mobile_chain()))
    samples = seeded_inputs(model, 2, 0)
    assert run_models("litert", {"m": data}, samples, 0)["m"].ran
    assert not run_models("tflm", {"m": data}, samples, ARENA)["m"].ran
    result = tflite_memopt.optimize(data, QUICK)
    assert result.report.as_it_came.makes == "cannot run"
    assert result.report.as_it_came.foreign_plan is not None
    assert "foreign_plan" in {use.rule for use in result.report.rewrites}
    assert decode(read_model(result.model))
    assert result.model == tflite_memopt.optimize(write_model(mobile_chain()), QUICK).model
    with pytest.raises(ModelFormatError, match="LiteRT ignores it"):
        tflite_memopt.analyze(data)
    assert tflite_memopt.verify(data, result.model, QUICK)["litert"].equal
    assert tflite_memopt.verify(result.model, data, QUICK)[ON_TFLM].equal is None


# BATCH_MATMUL ---------------------------------------------------------------------------------------------------------


def product(is_turned: bool = False, axis: int | None = None) -> Model:
    """int8 activations by an int8 constant with a scale per column."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 16), scale=0.05, zero_point=3)
    stored = np.random.default_rng(4).integers(-127, 128, (1, 8, 16) if is_turned else (1, 16, 8)).astype(np.int8)
    axis = (1 if is_turned else 2) if axis is None else axis
    scales = np.geomspace(0.001, 0.02, stored.shape[axis]).astype(np.float32)
    held = b.constant("w", stored, per_channel(scales, axis))
    y = b.tensor("y", (1, 4, 8), scale=0.2, zero_point=-4)
    return b.finish(
        b.operator("BATCH_MATMUL", (x, held), (y,), "BatchMatMulOptions", adjX=False, adjY=is_turned).outputs[0]
    )


def in_reals(model: Model, x: Array) -> Array:
    (operator,) = model.main.operators
    held = operator.required(1)
    assert held.quantization is not None
    assert held.buffer.data is not None
    along = [-1 if at == held.quantization.axis else 1 for at in range(3)]
    w = held.buffer.data.view(np.int8).reshape(held.shape) * held.quantization.scale.astype(float).reshape(along)
    real = 0.05 * (x.astype(float) - 3) @ (w.swapaxes(1, 2) if operator.option("adjY") else w)
    found: Array = np.clip(np.round(real / np.float32(0.2)) - 4, -128, 127)
    return found


@needs_wheel
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_product_of_several_scales_is_refused_or_held_against_real_numbers(is_turned: bool) -> None:
    model = product(is_turned)
    data, samples = write_model(model), seeded_inputs(model, 6, 0)
    wanted = [in_reals(model, *sample) for sample in samples]
    for runtime in ("litert", "tflm"):  # both take the first scale
        outputs = run_models(runtime, {"m": data}, samples, ARENA)["m"].outputs[0]
        assert max(abs(a.astype(float) - b).max() for a, b in zip(outputs, wanted, strict=True)) > 50
    with pytest.raises(EquivalenceError, match="--allow-approximate") as refused:
        tflite_memopt.optimize(data, QUICK)
    assert refused.value.kind is ErrorKind.OTHER_KERNELS
    result = tflite_memopt.optimize(data, Options(samples=6, effort="quick", allow_approximate=True))
    assert [each.name for each in read_model(result.model).main.operators] == ["FULLY_CONNECTED"]
    for runtime in ("litert", "tflm"):
        verdict = result.report.equivalence[runtime]
        assert verdict.equal
        assert verdict.exactness == "approximates"
        outputs = run_models(runtime, {"m": result.model}, samples, ARENA)["m"].outputs[0]
        assert max(abs(a.astype(float) - b).max() for a, b in zip(outputs, wanted, strict=True)) <= 1
    assert "proved" not in result.report.summary.headline


def test_a_product_of_several_scales_is_made_right_before_it_is_cut() -> None:
    data = write_model(product())
    with pytest.raises(UnsupportedModelError) as refused:
        tflite_memopt.optimize(data, Options(allow_approximate=True, slide="1"))
    assert refused.value.kind is ErrorKind.FORM
    with pytest.raises(UnsupportedModelError) as refused:
        optimize_in_parts(data, Options(allow_approximate=True), 2)
    assert refused.value.kind is ErrorKind.FORM


def test_a_product_that_no_dense_layer_computes_stays_refused() -> None:
    with pytest.raises(EquivalenceError):
        tflite_memopt.optimize(write_model(product(axis=1)), Options(samples=4, allow_approximate=True))


# Commands -------------------------------------------------------------------------------------------------------------

FILES: dict[str, Callable[[], bytes]] = {
    "weights behind": lambda: with_weights_behind(write_model(mobile_chain())),
    "scales": lambda: write_model(weight_only()),
    "clamp": lambda: write_model(clamped(0.025, 3)),
    "product": lambda: write_model(product()),
    "int4": lambda: write_model(weight_only("int4")),
    "plan": with_foreign_plan,
}
CODES = {
    "weights behind": (1, 1, 1, 0),
    "scales": (1, 1, 1, 0),
    "clamp": (1, 1, 1, 0),
    "product": (1, 1, 1, 1),
    "int4": (2, 2, 2, 0),
    "plan": (2, 2, 2, 0),
}
"""Exit codes of analyze, check, codegen, and optimize."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_command_says_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(FILES[name]())
    commands = (
        ("analyze", "m.tflite"),
        ("check", "m.tflite"),
        ("codegen", "m.tflite", "-o", "gen"),
        ("optimize", "m.tflite", "-o", "o.tflite", "--effort", "quick"),
    )
    done = [run(*command, folder=tmp_path) for command in commands]
    assert tuple(each.returncode for each in done) == CODES[name], [each.stdout + each.stderr for each in done]
    for each in done:
        said = each.stdout + each.stderr
        first = said.splitlines()[1 if said.startswith("RAM of 1 model") else 0]
        assert "TFLM" in first, said
        assert "keep the original" not in said
        assert "all is well" not in said
    is_mended = CODES[name][3] == 0
    assert (tmp_path / "o.tflite").exists() == is_mended
    if is_mended:
        assert run("verify", "m.tflite", "o.tflite", "--samples", 4, folder=tmp_path).returncode == 0
    if CODES[name][0] == 1:
        assert run("verify", "m.tflite", "m.tflite", "--samples", 4, folder=tmp_path).returncode == 1


def test_several_models_in_one_arena_are_refused_as_one_is(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(FILES["clamp"]())
    (tmp_path / "n.tflite").write_bytes(write_model(mobile_chain()))
    command = ("codegen", "m.tflite", "n.tflite", "-o", "gen", "--target", "cortex-m4")
    assert run(*command, folder=tmp_path).returncode == 1
    assert not (tmp_path / "gen").exists()


def test_what_is_not_verified_is_not_called_right() -> None:
    report = tflite_memopt.optimize(write_model(product()), Options(verify=False, effort="quick")).report
    assert report.summary.headline.startswith("TFLM computes the file otherwise, and the result as well")
    assert any("BATCH_MATMUL" in warning for warning in report.warnings)


def test_check_names_no_ram_of_what_tflm_does_not_run(tmp_path: Path) -> None:
    for name in ("weights behind", "int4", "scales"):
        (tmp_path / f"{name}.tflite").write_bytes(FILES[name]())
    rows = json.loads(run("check", "--json", folder=tmp_path).stdout)
    assert {row["name"]: row["now"] is None for row in rows} == {
        "int4.tflite": True,
        "scales.tflite": False,
        "weights behind.tflite": True,
    }


@pytest.mark.slow
def test_batch_and_explore_say_it(tmp_path: Path) -> None:
    for name in ("weights behind", "product"):
        (tmp_path / f"{name}.tflite").write_bytes(FILES[name]())
    done = run("batch", str(tmp_path), "-o", tmp_path / "out", "-j", 1, "--effort", "quick", folder=tmp_path)
    assert done.returncode == 1
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    found = {line["model"]: (line["status"], line.get("before")) for line in lines}
    assert found == {"weights behind.tflite": ("done", None), "product.tflite": ("refused", None)}
    front = explore(FILES["weights behind"](), Options(samples=4, effort="quick", cascade=False)).exploration
    assert front.as_it_came.constants_behind
    assert headline_of(front).count("now") == 0
    with pytest.raises(EquivalenceError):
        explore(FILES["product"](), QUICK)


# A variable's first value ---------------------------------------------------------------------------------------------


@needs_wheel
@pytest.mark.parametrize(
    ("order", "first", "is_lost"),
    [
        ("CVR+A", 50, False),
        ("VCR+A", 50, False),
        ("VRC+A", 50, True),
        ("VRC+A", 0, False),
        ("VR+CA", 0, False),
        ("VR+AC", 50, True),
        ("VR+AC", 0, True),
    ],
)
def test_a_first_value_that_comes_behind_the_read_is_lost(order: str, first: int, is_lost: bool) -> None:
    """Three runs of a sum: `C` for CALL_ONCE, `V`, `R`, and `A` for the operators of the variable."""
    model = streaming_model()
    constant = model.graphs[1].operators[1].required(1)
    constant.buffer = Buffer(np.full(constant.elements, first, np.int8).view(np.uint8))
    right = write_model(model)
    model.main.reorder(["CVR+A".index(each) for each in order])
    data = write_model(model)
    samples: list[list[Array]] = [[np.ones((1, 8), np.int8)]] * 3
    runs = run_models("tflm", {"right": right, "file": data}, samples, ARENA)
    sums = {name: np.concatenate(each.outputs[0])[:, 0].tolist() for name, each in runs.items()}
    assert sums["right"] == [first + 1, first + 2, first + 3]
    assert (sums["file"] != sums["right"]) is is_lost
    found = tflite_memopt.analyze(data)
    assert found.as_it_came.makes == ("computes otherwise" if is_lost else "runs")
    assert found.answer.judgement == ("faulty kernels" if is_lost else "right")
    assert ("before the CALL_ONCE" in found.summary.headline) is is_lost
    if is_lost:
        with pytest.raises(EquivalenceError, match="put CALL_ONCE first"):
            tflite_memopt.optimize(data, QUICK)


# Words ----------------------------------------------------------------------------------------------------------------


def test_values_in_another_file_are_said_so() -> None:
    model = mobile_chain()
    weights = model.main.operators[0].required(1)
    weights.buffer, weights.extras = model.buffers[0], {"externalBuffer": 1}
    with pytest.raises(ModelFormatError, match="in another file") as refused:
        tflite_memopt.analyze(write_model(model))
    assert refused.value.kind is ErrorKind.UNWRITTEN


def test_an_operator_of_an_npu_is_named_and_not_the_types_beside_it() -> None:
    b = ModelBuilder()
    x, q, y = b.input("x", (1, 8), DType.UINT8), b.tensor("q", (1, 8)), b.tensor("y", (1, 8), DType.UINT8)
    b.operator("QUANTIZE", (x,), (q,))
    npu = b.operator("CUSTOM", (q,), (b.tensor("n", (1, 8)),))
    npu.opcode.custom_code = "NeutronGraph"
    b.operator("QUANTIZE", npu.outputs, (y,))
    data = write_model(b.finish(y))
    said = tflite_memopt.verify(data, data, Options(samples=2))["tflm"].reason or ""
    assert "NeutronGraph" in said.partition(";")[0]
    assert "uint8" not in said


@pytest.mark.slow
def test_a_proof_follows_constants_of_every_type() -> None:
    for dtype, has_scales, zero_point in CONSTANTS:
        model = weight_only(dtype, has_scales, zero_point)
        result = tflite_memopt.optimize(write_model(model), Options(verify=False, effort="quick"))
        assert prove(model, read_model(result.model)).proved
