"""Every clause of every contract, broken by itself in a model that is made for it: not proved, and not run alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from scripts.fuzzing.judge import ARENA, RUNTIMES, differs
from scripts.fuzzing.originals import OTHER
from tests.kernels.one_operator import MAKERS
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tests.tflm import needs_wheel
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.evidence.proof.contracts import CONTRACTS
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Buffer, DType, Model, Operator, OperatorOptions
from tflite_memopt.model.ir.tensors import per_tensor

TYPES = "its types are one of"
TABLE = "its options are a table"
Break = Callable[[Operator, re.Match[str]], None]


def _deeper(operator: Operator, slots: list[int], ranks: range) -> None:
    """Dimensions of 1 in front, of the output as well where it has the input's shape."""
    tensors = [operator.inputs[slot] for slot in slots]
    if operator.outputs[0].shape == (tensors[0] or operator.outputs[0]).shape:
        tensors.append(operator.outputs[0])
    for tensor in tensors:
        if tensor is not None:
            tensor.shape = (1,) * (ranks.stop - len(tensor.shape)) + tensor.shape


def _ranks(operator: Operator, found: re.Match[str]) -> None:
    slots = {"FILL": [1], "FULLY_CONNECTED": [1], "TRANSPOSE_CONV": [1]}.get(operator.name, [0])
    if operator.name in BINARY:
        slots = [0, 1]
    _deeper(operator, slots, range(int(found[1]), int(found[2]) + 1))


BINARY = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})


def _reshaped_output(operator: Operator, found: re.Match[str]) -> None:
    output = operator.outputs[0]
    output.shape = (output.elements,) if len(output.shape) > 1 else (1, output.elements)


def _other_output(operator: Operator, found: re.Match[str]) -> None:
    operator.outputs[0].shape = (1, *operator.outputs[0].shape)


def _operand(operator: Operator, found: re.Match[str]) -> None:
    tensor = operator.inputs[int(found[1])]
    assert tensor is not None
    assert tensor.buffer.data is not None
    tensor.buffer = Buffer((tensor.buffer.data.view(np.int32)[::-1] + 1).view(np.uint8))


def _set(operator: Operator, **changed: Any) -> None:
    kind, fields = ("", {}) if operator.options is None else (operator.options.kind, operator.options.fields)
    operator.options = OperatorOptions(kind, {**fields, **changed})


def _option(value: int) -> Break:
    return lambda operator, found: _set(operator, **{found[1]: value})


def _kept(operator: Operator, found: re.Match[str]) -> None:
    assert operator.options is not None
    _set(operator, keepDims=not operator.option("keepDims", False))


def _corners(operator: Operator, found: re.Match[str]) -> None:
    assert operator.options is not None
    _set(operator, alignCorners=True, halfPixelCenters=True)


def _masked(operator: Operator, found: re.Match[str]) -> None:
    assert operator.options is not None
    _set(operator, beginMask=operator.options.fields["shrinkAxisMask"])


def _short(operator: Operator, found: re.Match[str]) -> None:
    tensor = operator.inputs[int(found[1])]
    assert tensor is not None
    assert tensor.buffer.data is not None
    tensor.buffer = Buffer(tensor.buffer.data[: tensor.nbytes // tensor.elements])
    tensor.shape = (1,)


def _points(operator: Operator, found: re.Match[str]) -> None:
    """Weights of several scales with zero points."""
    weights, axis = operator.inputs[1], int(found[1])
    assert weights is not None
    count = weights.shape[axis]
    made = per_tensor(0.01, 5)
    weights.quantization = replace(
        made, scale=np.full(count, 0.01, np.float32), zero_point=np.full(count, 5), axis=axis
    )


def _point_of_16(operator: Operator, found: re.Match[str]) -> None:
    operator.outputs[0].quantization = per_tensor(0.05, 3)


def _rescaled(operator: Operator, found: re.Match[str]) -> None:
    operator.outputs[0].quantization = per_tensor(0.7, 3)


def _bias(operator: Operator, found: re.Match[str]) -> None:
    bias = operator.inputs[2]
    assert bias is not None
    bias.quantization = per_tensor(50.0, 0)


def _typed(operator: Operator, found: re.Match[str]) -> None:
    for tensor in operator.outputs or operator.inputs[-1:]:
        assert tensor is not None
        tensor.dtype = OTHER_TYPES.get(operator.name, DType.UINT16)


def _tabled(operator: Operator, found: re.Match[str]) -> None:
    other = "SubOptions" if operator.name == "ADD" else "AddOptions"
    operator.options = OperatorOptions(other, {} if operator.options is None else operator.options.fields)


def _matrix(operator: Operator, found: re.Match[str]) -> None:
    tensor = operator.inputs[int(found[1])]
    assert tensor is not None
    tensor.shape = (1, tensor.elements)


def _without_scale(operator: Operator, found: re.Match[str]) -> None:
    tensor = operator.inputs[0] if operator.outputs[0].quantization is None else operator.outputs[0]
    assert tensor is not None
    tensor.quantization = None


def _empty_bias(operator: Operator, found: re.Match[str]) -> None:
    operator.inputs = (*operator.inputs[:2], None)


def _off_zero(operator: Operator, found: re.Match[str]) -> None:
    weights = operator.inputs[1]
    assert weights is not None
    assert weights.dtype is DType.INT8
    weights.quantization = per_tensor(0.01, 5)
    if operator.name == "FULLY_CONNECTED":  # of 8 bits LiteRT takes any
        weights.dtype, weights.buffer = DType.INT4, Buffer(np.full((weights.elements + 1) // 2, 3, np.uint8))


def _hybrid(operator: Operator, found: re.Match[str]) -> None:
    """Floats, and weights of integers with one scale."""
    weights = operator.inputs[1]
    assert weights is not None
    assert weights.dtype is DType.FLOAT32
    weights.dtype, weights.quantization = DType.INT8, per_tensor(0.01, 0)
    weights.buffer = Buffer(np.full(weights.elements, 3, np.uint8))


OTHER_TYPES = {"ATAN2": DType.INT8, "SIGN": DType.INT8, "CAST": DType.STRING, "READ_VARIABLE": DType.STRING}
BREAKS: Mapping[str, Break] = {
    r"inputs have (\d+) to (\d+) dimensions": _ranks,
    r"the output has the input's shape": _reshaped_output,
    r"shapes are broadcast": _other_output,
    r"input (\d+) is the output's shape": _operand,
    r"input (\d+) has one dimension": _matrix,
    r"input (1) has two numbers for each": _matrix,
    r"integers have a scale": _without_scale,
    r"zero points of weights are 0": _off_zero,
    r"integer weights for floats": _hybrid,
    r"(depthMultiplier) times": _option(0),
    r"(mode) is 0, 1": _option(2),
    r"the bias is there": _empty_bias,
    r"(inDataType|outDataType) is": _option(99),
    r"(\w+) is 0": _option(1),
    r"(quantizedBiasType) is 0, 2, 4": _option(9),
    r"(\w+).*: at least 1": _option(0),
    r"(outputType|outType) is the output's type": _option(4),
    r"(\w+) is an axis": _option(7),
    r"axes are those of the input": _kept,
    r"alignCorners and halfPixelCenters": _corners,
    r"an axis that is left out": _masked,
    r"input (\d+) has an element for each of": _short,
    r"data and output have one scale, .* along (\d)": _points,
    r"zero points of 16 bits are 0": _point_of_16,
    r"(input .* is|inputs are|outputs are) quantized as the (output|input)": _rescaled,
    r"the bias has the scale": _bias,
    r"the output has the rows": _other_output,
    TYPES: _typed,
    TABLE: _tabled,
}
"""By what a clause says, the first that fits: how it is broken."""


def clauses_of(name: str) -> list[str]:
    contract = CONTRACTS[name]
    found = [clause.text for clause in contract.clauses]
    return found + [TYPES] * (contract.signatures not in ((), (">",))) + [TABLE] * (contract.table is not None)


CASES = [(name, text) for name in CONTRACTS for text in clauses_of(name)]


def models_of(name: str) -> list[Model]:
    """The models of one operator of a kind, of every type that there is."""
    found = [ALL[WHOLE[name]]()] if name in WHOLE else []
    for dtype in (DType.INT8, DType.FLOAT32, DType.INT16, DType.INT32, DType.BOOL) if name in MAKERS else ():
        b = ModelBuilder()
        found.append(b.finish(*MAKERS[name](b, dtype)))
    for label, seed in product((label for label in OTHER if label.split()[0] == name), range(SEEDS)):
        b = ModelBuilder()
        found.append(b.finish(*OTHER[label](b, Random(seed))))
    return found


SEEDS = 12
WHOLE = {
    "IF": "if_model",
    "WHILE": "while_model",
    **dict.fromkeys(("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"), "streaming_model"),
}


@cache
def kept(name: str) -> list[bytes]:
    """Those that are proved equal to themselves."""
    files = dict.fromkeys(write_model(model) for model in models_of(name))
    return [data for data in files if prove(read_model(data), read_model(data)).proved]


@cache
def broken(name: str, text: str) -> list[tuple[bytes, Model]]:
    """Models of a kind, and what each is where this clause is broken; those that have nothing to break are not here."""
    found, (said, change) = [], next((each, how) for each, how in BREAKS.items() if re.match(each, text))
    matched = re.match(said, text)
    assert matched is not None
    for data in kept(name):
        model = read_model(data)
        operator = next(each for graph in model.graphs for each in graph.operators if each.name == name)
        with suppress(IndexError, AssertionError):  # no such operand
            change(operator, matched)
            found.append((data, model))
    return found


@pytest.mark.few(50)
@pytest.mark.parametrize(("name", "text"), CASES)
def test_a_broken_clause_is_named(name: str, text: str) -> None:
    proofs = [prove(model, model) for _, model in broken(name, text)]
    assert any(proof.status is Status.UNKNOWN and text in str(proof) for proof in proofs), list(map(str, proofs))
    assert all(not proof.proved for proof in proofs if text in str(proof))


LAYERS = (("DEPTHWISE_CONV_2D", 3), ("TRANSPOSE_CONV", 0))
AXES = "axes are those of the input, and the output has its other ones, or 1 with keepDims"
SHAPE, BROADCAST = "the output has the input's shape", "shapes are broadcast, of up to 5 dimensions"
SCALED = "data and output have one scale, weights one or one along {}; zero points of several scales, and of weights "
ALIKE = {
    # LiteRT infers the shape of an output, or the type, and TFLM has no such kernel.
    *((name, SHAPE) for name in ("ATAN2", "GELU", "RELU_0_TO_1", "RELU_N1_TO_1", "SIGN")),
    *((name, AXES) for name in ("ARG_MAX", "ARG_MIN")),
    *{("POW", BROADCAST), ("POW", TYPES), ("RANGE", TYPES), ("RANK", TYPES), ("SELECT", TYPES)},
    # The options of these models have the values that a table of another kind stands for.
    *((name, TABLE) for name in ("ADD", "BATCH_MATMUL", "CAST", "CUMSUM", "DIV", "L2_NORMALIZATION", "LEAKY_RELU")),
    *((name, TABLE) for name in ("MUL", "REDUCE_MIN", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")),
    *((name, TABLE) for name in ("SOFTMAX", "SQUEEZE", "SUB")),
    # Bytes are copied, or zero points not looked at: so no value is what its quantization says.
    *((name, "input 1, 2 is quantized as the output") for name in ("SELECT", "SELECT_V2")),
    *(
        (name, SCALED.format(axis) + "for floats, are 0")
        for name, axis in (("DEPTHWISE_CONV_2D", 3), ("TRANSPOSE_CONV", 0))
    ),
    # Slices of these models have no dimension that an ellipsis stands for.
    ("STRIDED_SLICE", "ellipsisMask is 0"),
}
"""Clauses that are stricter than the kernels, or whose breach in these models changes nothing."""


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    """Processes of their own: a broken model may end one."""
    with Interpreters(RUNTIMES, ProcessLimits(20.0, 4 << 30)) as running:
        yield running


def run_alike(data: bytes, model: Model, interpreters: Interpreters) -> list[bool]:
    """Of each runtime that takes what keeps the clause: whether it computes the same of what breaks it.

    LiteRT comes first, which looks at more before it runs anything: what it does otherwise is not given to TFLM.
    """
    samples, found = verification_inputs(read_model(data), 6, 0), list[bool]()
    shapes = [tensor.shape for tensor in model.main.inputs]
    reshaped = [[each.reshape(shape) for each, shape in zip(one, shapes, strict=True)] for one in samples]
    for runtime in ("litert", "tflm"):
        if not all(found):
            break
        one = interpreters[runtime].run(RunJob(data, samples, ARENA))
        if one.ran:
            other = interpreters[runtime].run(RunJob(write_model(model), reshaped, ARENA))
            found.append(other.ran and not differs(one, other))
    return found


@pytest.mark.few(30)
@needs_wheel
@pytest.mark.parametrize(("name", "text"), CASES)
def test_kernels_do_otherwise_where_a_clause_is_broken(name: str, text: str, interpreters: Interpreters) -> None:
    """Some runtime that takes what keeps a clause refuses what does not, or computes something else."""
    tried = []
    for data, model in broken(name, text):
        if text in str(prove(model, model)):
            tried.append(run_alike(data, model, interpreters))
            if not all(tried[-1]):
                assert (name, text) not in ALIKE
                return
    assert tried
    assert (name, text) in ALIKE, f"they run it alike: {tried}"
