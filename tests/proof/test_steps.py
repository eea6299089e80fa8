"""Steps and hops are judged whole: what they take and give, in which quantization, and what their files say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from scripts.fuzzing.mutants import packed, root_of
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.recurrent import I8, layers
from tflite_memopt import Options, optimize, verify
from tflite_memopt.errors import ErrorKind, ModelFormatError
from tflite_memopt.evidence.proof import Proof, Status, prove_streamed
from tflite_memopt.firmware.describe import describe
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.memory.file import places_in_force, read_planned
from tflite_memopt.memory.problems import labeled_ties, tie_positions
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

QUICK = Options(effort="quick", verify=False)


def window() -> Model:
    """Two inputs, and two outputs behind operators that move bytes alone."""
    b = ModelBuilder()
    x, bias = b.input("frames", (1, 24, 6, 1)), b.input("bias", (1, 4, 1, 1))
    y = b.conv(b.conv(x, 4, kernel=3, stride=2, seed=1, padding=SAME), 4, seed=2)
    flat = b.reshape(y, (1, y.elements))
    return b.finish(b.reshape(bias, (1, 4)), b.reshape(b.dense(flat, 4), (4, 1)))


def recurrent() -> Model:
    return layers("rnn", dtype=I8)


MADE: dict[str, tuple[Callable[[], Model], Options]] = {
    "slide": (window, replace(QUICK, slide="2,input=frames")),
    "step": (recurrent, replace(QUICK, step=True)),
}


@pytest.fixture(scope="module", params=sorted(MADE))
def made(request: pytest.FixtureRequest) -> tuple[str, bytes, bytes]:
    """What it is, the original, and the result."""
    build, options = MADE[request.param]
    data = write_model(build())
    return request.param, data, optimize(data, options).model


def proof_of(what: str, original: bytes, result: Model, ties: tuple[tuple[int, int], ...] | None = None) -> Proof:
    ties = tie_positions(result, labeled_ties(result)) if ties is None else ties
    return prove_streamed("hop" if what == "slide" else "step", read_model(original), result, ties)


def scaled(tensor: Tensor) -> None:
    assert tensor.quantization is not None
    tensor.quantization = replace(tensor.quantization, scale=tensor.quantization.scale * np.float32(2))


def moved(tensor: Tensor) -> None:
    assert tensor.quantization is not None
    tensor.quantization = replace(tensor.quantization, zero_point=tensor.quantization.zero_point + 1)


def unquantized(tensor: Tensor) -> None:
    tensor.quantization = None


def retyped(tensor: Tensor) -> None:
    tensor.dtype = DType.UINT8


def reshaped(tensor: Tensor) -> None:
    tensor.shape = (*tensor.shape, 1)


@pytest.mark.parametrize("change", [scaled, moved, unquantized, retyped, reshaped])
def test_an_interface_that_means_something_else_is_refused(
    made: tuple[str, bytes, bytes], change: Callable[[Tensor], None]
) -> None:
    what, data, result = made
    ties = tie_positions(read_planned(result), labeled_ties(read_planned(result)))
    assert proof_of(what, data, read_planned(result)).proved
    count = len(read_planned(result).main.inputs)
    for at in range(count + len(read_planned(result).main.outputs)):
        model = read_planned(result)
        change((*model.main.inputs, *model.main.outputs)[at])
        if change is reshaped and at == 0:
            continue  # the input is rows, in any shape
        assert not proof_of(what, data, model, ties).proved, at


def test_what_is_tied_to_nothing_or_to_the_input_is_another_model(made: tuple[str, bytes, bytes]) -> None:
    what, data, result = made
    model = read_planned(result)
    ((output, at), *others) = tie_positions(model, labeled_ties(model))
    assert proof_of(what, data, model, ((output, at), *others)).proved
    for ties in ((*others,), ((output, 0), *others), ((output, at), (output, at), *others)):
        assert proof_of(what, data, model, ties).status is Status.DIFFERENT


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_other_names_are_a_difference_between_the_files(made: tuple[str, bytes, bytes], side: str) -> None:
    what, data, result = made
    options = Options(samples=2)
    verdict = verify(data, result, options)["file"]
    assert (verdict.equal, verdict.reason) == (True, None)
    model = read_planned(result)
    at = int(side == "inputs" and what == "slide")  # the label names the input that moves
    getattr(model.main, side)[at].name = "another"
    verdicts = verify(data, write_model(model), options)
    assert verdicts["file"].equal is False
    assert verdicts["proof"].equal is True


def test_an_operator_that_lost_an_input_is_named(made: tuple[str, bytes, bytes]) -> None:
    root, refused = root_of(made[2]), 0
    for operator in root.subgraphs[0].operators:
        inputs = operator.inputs
        for kept in range(len(inputs)):
            operator.inputs = inputs[:kept]
            try:
                places_in_force(read_planned(packed(root)), profile_for(None))
            except ModelFormatError as error:
                refused += "inputs of shapes" in str(error) or "lacks its input" in str(error)
        operator.inputs = inputs
    assert refused


def labeled(data: bytes, **options: object) -> bytes:
    """The file with other options in its label; None leaves one out."""
    model = read_model(data)
    label = plan_label.decode(model)
    assert label is not None
    changed = {name: value for name, value in {**label.options, **options}.items() if value is not None}
    plan_label.attach(model, replace(label, options=changed))
    return write_model(model)


WRONG_HOPS = ["9/24,input=frames", "2/2,input=frames", "2,input=frames", "2/24,input=bias", "2/24,input=y", "2/24"]


@pytest.mark.parametrize("said", WRONG_HOPS)
def test_a_label_of_other_rows_is_refused(said: str) -> None:
    build, options = MADE["slide"]
    data = write_model(build())
    wrong = labeled(optimize(data, options).model, slide=said)
    with raises(ModelFormatError, ErrorKind.DAMAGED, "label"):
        verify(data, wrong)
    with raises(ModelFormatError, ErrorKind.DAMAGED, "label"):
        describe(wrong)


def test_a_label_of_another_window_is_refused_beside_the_original() -> None:
    build, options = MADE["slide"]
    data = write_model(build())
    with raises(ModelFormatError, ErrorKind.DAMAGED, "2/22", "[1, 24, 6, 1]"):
        verify(data, labeled(optimize(data, options).model, slide="2/22,input=frames"))


@pytest.mark.slow
def test_a_label_without_a_state_is_refused() -> None:
    data = write_model(layers("lstm"))
    result = optimize(data, replace(QUICK, step=True)).model
    label = plan_label.decode(read_model(result))
    assert label is not None
    wrong = labeled(result, ties=label.options["ties"][:1])
    with raises(ModelFormatError, ErrorKind.DAMAGED, "--step"):
        verify(data, wrong)
    with raises(ModelFormatError, ErrorKind.DAMAGED, "--step"):
        describe(wrong)


def test_a_window_of_one_column_lies_in_one_row() -> None:
    b = ModelBuilder()
    x = b.reshape(b.input("x", (1, 96)), (1, 24, 1, 4))
    data = write_model(b.finish(b.reshape(b.conv(x, 2, seed=1), (1, 48))))
    result = optimize(data, replace(QUICK, slide="3")).model
    model = read_planned(result)
    assert model.main.inputs[0].shape == (1, 1, 3, 4)
    assert proof_of("slide", data, model).proved
    describe(result)
    with raises(ModelFormatError, ErrorKind.DAMAGED, "label"):
        describe(labeled(result, slide="4/24"))
    other = read_planned(result)
    other.main.outputs[0].quantization = per_tensor(7.0, 0)
    assert proof_of("slide", data, other).status is Status.DIFFERENT
