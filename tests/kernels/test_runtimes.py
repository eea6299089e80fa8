"""The table of what runtimes make of a file, and what the package says of each of its cells."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.fuzzing import runtimes
from scripts.fuzzing.cell import I4, I8, UNLIKE, Cell, Key, packed, stored
from scripts.fuzzing.cells import LEFT_OUT, cells
from scripts.fuzzing.oracle import ONE_SCALE, State, constant_of, expected, quantized
from scripts.fuzzing.runtimes import Answers, changed, runs, steps_of
from tests.model_builder import ModelBuilder, per_channel
from tests.profiles import examples
from tests.tflm import needs_wheel, run_models
from tflite_memopt.evidence.equivalence.adapter import OPTIMIZED_KERNELS
from tflite_memopt.kernels.faults import MOST_STEPS, copied_steps, faults_in
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.kernels.support import support_of
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Quantization, Tensor
from tflite_memopt.model.ir.tensors import Affine

EVERY = cells()
KNOWN = runtimes.read()[1]
BY_FLOATS = 2
"""Steps of an output that is no integer of 8 or 16 bits."""


def contradictions(chosen: Iterable[Cell]) -> list[str]:
    """The cells of the table of which the package says something else than TFLM does."""
    found = []
    for cell in chosen:
        answers = KNOWN.get(cell.key)
        if answers is None or not runs(answers.litert):
            continue  # no converter has made such a file
        model = read_model(write_model(cell.make()))
        reasons = {each.kind for each in support_of(model).reasons}
        if runs(answers.tflm):
            # The size is the one in the file in these cells, where nobody can know that.
            if reasons - {"computed_size"}:
                found.append(f"{cell.key}: TFLM runs it, and is said not to: {reasons}")
            tolerated = max(MOST_STEPS.get(each.dtype, BY_FLOATS) for each in model.main.outputs)
            if cell.key.quantization in UNLIKE and cell.key.kind in ONE_SCALE:
                if answers.tflm != answers.litert:
                    found.append(f"{cell.key}: TFLM copies integers otherwise than LiteRT")
                tolerated = 1 << 16
            named = [str(each.fault.name) for each in faults_in(model, PROFILES["reference"])]
            if bool(named) != (steps_of(answers.tflm) > tolerated):
                found.append(f"{cell.key}: TFLM is {answers.tflm} off, and the faults are {named}")
        elif not reasons:
            found.append(f"{cell.key}: TFLM {answers.tflm} it, and is said to run it")
    return found


@pytest.mark.slow
def test_the_package_says_of_a_tenth_of_the_cells_what_tflm_does() -> None:
    assert contradictions(random.Random(1).sample(EVERY, len(EVERY) // 10)) == []


@pytest.mark.slow
def test_the_package_says_of_every_cell_what_tflm_does() -> None:
    assert contradictions(EVERY) == []


def test_every_row_of_the_table_is_a_cell_and_none_is_made_that_is_left_out() -> None:
    made = {cell.key for cell in EVERY}
    assert len(made) == len(EVERY)
    assert KNOWN.keys() <= made
    assert not made & LEFT_OUT.keys()
    assert not KNOWN.keys() & LEFT_OUT.keys()


@needs_wheel
def test_a_sample_of_cells_is_as_the_table_says() -> None:
    if runtimes.versions().items() - {("numpy", np.__version__)} > runtimes.read()[0].items():
        pytest.skip("the table was made with other wheels")
    assert [*changed(runtimes.measured(random.Random(2).sample(EVERY, 60)), KNOWN)] == []


def test_another_answer_is_a_change_and_a_step_more_is_none() -> None:
    key, new = Key("ADD", "int8"), Key("TILE", "int8")
    known = {key: Answers("equal", "3", "refuses")}
    assert [*changed({key: Answers("1", "2", "refuses")}, known)] == []
    assert [*changed({key: Answers("equal", "99", "3")}, {key: Answers("equal", "200", "4")})] == []
    for answers in (
        ("2", "3", "refuses"),
        ("equal", "99", "refuses"),
        ("equal", "5", "refuses"),
        ("equal", "3", "fails"),
        ("equal", "3", "equal"),
    ):
        assert len([*changed({key: Answers(*answers)}, known)]) == 1
    assert [*changed({new: Answers("refuses", "refuses", "fails")}, known)] == []
    assert len([*changed({new: Answers("refuses", "refuses", "equal")}, known)]) == 1


# The oracle -----------------------------------------------------------------------------------------------------------


def test_weights_of_four_bits_are_read_as_they_are_stored() -> None:
    values = np.asarray([[-8, 7, -1], [0, 3, -5]], np.int8)
    b = ModelBuilder()
    assert constant_of(stored(b, "w", values, I4, None)).tolist() == values.ravel().tolist()
    assert packed(np.asarray([1, 2]), I4).tolist() == [0x21]


def test_a_product_takes_the_scale_of_each_channel_and_is_kept_in_the_range() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 2), scale=0.5, zero_point=1)
    w = b.constant("w", np.asarray([[2, 0], [0, 4]], np.int8), per_channel(np.asarray([1, 0.25], np.float32), 0))
    y = b.tensor("y", (1, 2), scale=0.125, zero_point=-100)
    b.operator("FULLY_CONNECTED", (x, w, None), (y,), "FullyConnectedOptions")
    (made,) = expected(b.finish(y), [np.asarray([[5, 3]], np.int8)], State())
    assert made.tolist() == [[4.0, 1.0]]
    assert quantized(y, made).tolist() == [[-68.0, -92.0]]
    assert quantized(y, made * 1000).tolist() == [[127.0, 127.0]]


# Faults by a condition on numbers -------------------------------------------------------------------------------------

POINT = st.tuples(st.floats(0.001, 1.0), st.integers(-128, 127))


@examples(300)
@given(POINT, POINT)
def test_the_steps_of_a_copy_are_those_of_its_worst_integer(one: tuple[float, int], other: tuple[float, int]) -> None:
    copied = np.arange(-128, 128, dtype=np.float64)
    right = np.clip((copied - one[1]) * one[0] / other[0] + other[1], -128, 127)
    found = copied_steps(Affine(*one), Affine(*other), DType.INT8)
    worst = np.abs(right - copied).max()
    assert worst - 1e-6 <= found <= worst + 1 + one[0] / other[0]  # between two integers it may be more


def quotients(scales: tuple[float, float, float], zeros: tuple[int, int, int]) -> tuple[Model, list[np.ndarray]]:
    """A DIV of every integer by every other one but zero."""
    b = ModelBuilder()
    top, bottom = (np.arange(-128, 128), np.asarray([each for each in range(-128, 128) if each != zeros[1]]))
    shape = (top.size, bottom.size)
    tensors: list[Tensor] = [
        b.tensor(name, shape, scale=scale, zero_point=zero)
        for name, scale, zero in zip("abc", scales, zeros, strict=True)
    ]
    b.graph.inputs = tuple(tensors[:2])
    b.operator("DIV", tensors[:2], tensors[2:], "DivOptions")
    given = [np.broadcast_to(each, shape).astype(np.int8) for each in (top[:, None], bottom[None])]
    return b.finish(tensors[2]), given


@needs_wheel
@pytest.mark.parametrize(
    ("scales", "zeros", "is_wrong"),
    [
        ((0.05, 0.05, 0.05), (-3, -3, -3), True),
        ((0.05, 0.05, 0.01), (-3, -3, -3), False),
        ((0.05, 0.05, 0.9), (0, 0, 0), True),
        ((0.0314, 0.00787, 0.0314), (-128, -128, -128), False),
        ((0.5, 0.11, 0.07), (4, 4, 4), False),
        ((0.5, 0.11, 0.11), (100, 100, 0), True),
    ],
)
def test_small_quotients_of_coarse_outputs_are_wrong_on_both_runtimes(
    scales: tuple[float, float, float], zeros: tuple[int, int, int], is_wrong: bool
) -> None:
    model, sample = quotients(scales, zeros)
    with np.errstate(all="ignore"):
        exact = quantized(model.main.outputs[0], expected(model, sample, State())[0])
    for runtime in ("litert", "tflm"):
        runs_of = run_models(runtime, {"model": write_model(model)}, [sample], 1 << 20, OPTIMIZED_KERNELS)
        off = np.abs(runs_of["model"].outputs[0][0] - exact).max()
        assert (off > MOST_STEPS[I8]) == is_wrong, f"{runtime} is {off} off"
    assert bool(faults_in(model, PROFILES["reference"])) == is_wrong


def one(name: str, x: Quantization | None, y: Quantization | None, dtype: DType = DType.INT8) -> Model:
    b = ModelBuilder()
    source, output = b.input("x", (1, 4), dtype), b.tensor("y", (1, 4), dtype)
    source.quantization, output.quantization = x, y
    b.operator(name, (source,), (output,))
    return b.finish(output)


@pytest.mark.parametrize(("factor", "is_met"), [(1 + 1e-6, False), (1.01, False), (1.05, True)])
def test_a_scale_that_differs_by_less_than_two_steps_is_no_fault(factor: float, is_met: bool) -> None:
    scales = [Quantization(np.asarray([each], np.float32), np.zeros(1, np.int64)) for each in (0.1, 0.1 * factor)]
    assert bool(faults_in(one("RELU6", scales[0], scales[1]), PROFILES["reference"])) == is_met
    assert not faults_in(one("RELU6", None, None, DType.FLOAT32), PROFILES["reference"])
