"""Contracts: what is outside of one is not proved, with operator and clause; the pairs are small ones of attacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder, per_channel
from tests.models import ALL
from tests.tflm import needs_wheel, run_models
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.proof import Proof, Status, prove
from tflite_memopt.evidence.proof.contracts import CONTRACTS
from tflite_memopt.evidence.proof.kinds import _WHOLE, KINDS
from tflite_memopt.evidence.proof.run import EFFECTS
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, OperatorOptions, Quantization, Signature, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

F32, I8, I16, I32 = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32
Array = np.ndarray[Any, Any]
Fields = dict[str, Any]


def one(
    name: str,
    shape: Sequence[int],
    operands: Sequence[Array | tuple[Array, Quantization]],
    output: Sequence[int],
    table: str | None = None,
    dtype: DType = I8,
    to: DType | None = None,
    data_at: int = 0,
    **fields: Any,
) -> Model:
    """A model of one operator; its data are the graph's input, its other operands are constants."""
    b = ModelBuilder()
    inputs = [b.input("x", shape, dtype)]
    for number, operand in enumerate(operands):
        values, quantization = operand if isinstance(operand, tuple) else (operand, None)
        inputs.append(b.constant(f"c{number}", values, quantization))
    inputs.insert(data_at, inputs.pop(0))
    y = b.tensor("y", output, to or dtype)
    b.operator(name, inputs, (y,), table, **fields)
    return b.finish(y)


def ints(*values: int) -> Array:
    return np.asarray(values, np.int32)


def strided(begin: int, stride: int, begin_mask: int) -> Model:
    operands = [ints(0, begin), ints(2, begin + 1), ints(1, stride)]
    return one("STRIDED_SLICE", (2, 6), operands, (2,), "StridedSliceOptions", shrinkAxisMask=2, beginMask=begin_mask)


def dense(add: int, points: Sequence[int], dtype: DType = I8, bias: Array | None = None) -> Model:
    values = (np.arange(12, dtype=np.int8).reshape(3, 4) - 6 + add).astype(np.int8)
    scales = np.asarray([0.01, 0.02, 0.03][: len(points)], np.float32)
    weights = (values, Quantization(scales, np.asarray(points, np.int64), 0))
    operands: list[Array | tuple[Array, Quantization]] = [weights]
    if bias is not None:
        operands.append((bias, per_tensor(0.0005, 0)))
    return one("FULLY_CONNECTED", (2, 4), operands, (2, 3), "FullyConnectedOptions", dtype)


def convolution(bias: int) -> Model:
    weights = (np.ones((4, 1, 1, 2), np.int8), per_tensor(0.01, 0))
    operands: list[Array | tuple[Array, Quantization]] = [weights, (np.ones(bias, np.int32), per_tensor(0.0005, 0))]
    return one("CONV_2D", (1, 3, 3, 2), operands, (1, 3, 3, 4), "Conv2DOptions", strideH=1, strideW=1)


def reduced(axis: int) -> Model:
    return one("MEAN", (1, 3, 4, 2), [ints(1, axis)], (1, 4, 2), "ReducerOptions")


def filled(*shape: int) -> Model:
    return one("FILL", (), [ints(*shape)], (2, 3), data_at=1, dtype=F32)


def broadcast(*shape: int) -> Model:
    return one("BROADCAST_TO", (1, 3), [ints(*shape)], (2, 3))


def gathered(axis: int) -> Model:
    return one("GATHER", (3, 4), [ints(0, 2)], (2, 4), "GatherOptions", axis=axis)


def sliced(to: DType) -> Model:
    return one("SLICE", (2, 6), [ints(0, 1), ints(2, 3)], (2, 3), to=to)


def with_table(name: str) -> Model:
    """A dense layer with RELU, which a table of another kind says as well."""
    model = dense(0, (0,))
    operator = model.main.operators[0]
    operator.options = OperatorOptions(name, {"fusedActivationFunction": 1})
    return model


def resized(dtype: DType) -> Model:
    """Two resizes by nearest neighbor, and the type of what is between."""
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 1), I16)
    between, y = b.tensor("between", (1, 4, 4, 1), dtype), b.tensor("y", (1, 8, 8, 1), I16)
    for source, target in ((x, between), (between, y)):
        size = b.constant(f"{target.name}/size", ints(*target.shape[1:3]))
        b.operator("RESIZE_NEAREST_NEIGHBOR", (source, size), (target,), "ResizeNearestNeighborOptions")
    return b.finish(y)


def shared_buffer(is_shared: bool) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 4))
    c = b.constant("c", np.arange(4, dtype=np.int8).reshape(1, 4), per_tensor(0.05, 0))
    if is_shared:
        x.buffer = c.buffer
    return b.finish(b.add(x, c))


def rescaled_bias(scale: float) -> Model:
    model = dense(0, (0,), bias=np.arange(3, dtype=np.int32))
    bias = model.main.operators[0].inputs[2]
    assert bias is not None
    bias.quantization = per_tensor(scale, 0)
    return model


def said_shape(keep: bool) -> Model:
    return one("MEAN", (1, 3, 4, 2), [ints(1)], (1, 4, 2), "ReducerOptions", keepDims=keep)


def shape_type(number: int) -> Model:
    return one("SHAPE", (2, 3), [], (2,), "ShapeOptions", to=I32, outType=number)


def infinite_scale(scale: float) -> Model:
    model = dense(0, (0,))
    model.main.outputs[0].quantization = per_tensor(scale, 0)
    return model


def depthwise(multiplier: int) -> Model:
    """Two channels of each of three; a multiplier that says fewer leaves some of them unwritten."""
    weights = (np.ones((1, 1, 1, 6), np.int8), per_tensor(0.05, 0))
    fields: Fields = {"strideH": 1, "strideW": 1, "depthMultiplier": multiplier}
    return one("DEPTHWISE_CONV_2D", (1, 2, 2, 3), [weights], (1, 2, 2, 6), "DepthwiseConv2DOptions", **fields)


def of_four_bits(point: int) -> Model:
    """A dense layer by weights from 1 to 3, and any zero point."""
    model = dense(0, (point,))
    weights = model.main.operators[0].required(1)
    weights.dtype, weights.buffer.data = DType.INT4, np.full(6, 0x31, np.uint8)
    return model


def convolved(point: int) -> Model:
    model = convolution(4)
    model.main.operators[0].required(1).quantization = per_tensor(0.01, point)
    return model


def depthwise_of_floats(scales: int) -> Model:
    weights = (np.ones((1, 1, 1, 3), np.int8), per_channel(np.full(scales, 0.05, np.float32), 3))
    fields: Fields = {"strideH": 1, "strideW": 1, "depthMultiplier": 1}
    shape = (1, 2, 2, 3)
    return one("DEPTHWISE_CONV_2D", shape, [weights], shape, "DepthwiseConv2DOptions", F32, **fields)


OUTSIDE: dict[str, tuple[Callable[[], Model], Callable[[], Model], str]] = {
    "begin mask of an axis that is left out": (lambda: strided(2, 1, 0), lambda: strided(2, 1, 2), "stride from 1 on"),
    "negative stride of one": (lambda: strided(2, 1, 0), lambda: strided(2, -1, 0), "stride from 1 on"),
    "zero points of channels": (lambda: dense(0, (0, 0, 0)), lambda: dense(5, (5, 5, 5)), "several scales"),
    "zero points for floats": (lambda: dense(0, (0,), F32), lambda: dense(5, (5,), F32), "several scales"),
    "short bias": (lambda: convolution(4), lambda: convolution(1), "each of dimension 0"),
    "bias by row": (
        lambda: dense(0, (0,), bias=np.ones(3, np.int32)),
        lambda: dense(0, (0,), bias=np.ones((2, 3), np.int32)),
        "each of dimension 0",
    ),
    "axis of a reduction": (lambda: reduced(1), lambda: reduced(5), "axes are those"),
    "dimensions that a reduction keeps": (lambda: said_shape(False), lambda: said_shape(True), "keepDims"),
    "shape of FILL": (lambda: filled(2, 3), lambda: filled(3, 2), "is the output's shape"),
    "shape of BROADCAST_TO": (lambda: broadcast(2, 3), lambda: broadcast(4, 3), "is the output's shape"),
    "axis of GATHER": (lambda: gathered(0), lambda: gathered(2), "is an axis"),
    "type of what is moved": (lambda: sliced(I8), lambda: sliced(I16), "types are one of"),
    "type between": (lambda: resized(I16), lambda: resized(I8), "types are one of"),
    "table of another kind": (
        lambda: with_table("FullyConnectedOptions"),
        lambda: with_table("AddOptions"),
        "options are a table",
    ),
    "input in a constant": (lambda: shared_buffer(False), lambda: shared_buffer(True), "bytes of a constant"),
    "scale of a bias": (lambda: rescaled_bias(0.0005), lambda: rescaled_bias(0.02), "scale of the products"),
    "type that an option says": (lambda: shape_type(2), lambda: shape_type(4), "output's type"),
    "channels by the multiplier": (lambda: depthwise(2), lambda: depthwise(1), "depthMultiplier"),
    "zero point of four bits": (lambda: of_four_bits(0), lambda: of_four_bits(1), "zero points of weights"),
    "zero point of filters": (lambda: convolved(0), lambda: convolved(1), "zero points of weights"),
    "scale of filters for floats": (
        lambda: depthwise_of_floats(3),
        lambda: depthwise_of_floats(1),
        "scale for each channel",
    ),
    "scale without end": (lambda: infinite_scale(0.05), lambda: infinite_scale(float("inf")), "finite and positive"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_outside_of_a_contract_is_not_proved(name: str) -> None:
    inside, outside, clause = OUTSIDE[name]
    assert prove(inside(), inside()).status is Status.PROVED
    assert not prove(inside(), outside()).proved
    proof = prove(outside(), outside())
    assert proof.status is Status.UNKNOWN, proof
    assert clause in str(proof)


@pytest.mark.few(5)
@needs_wheel
@pytest.mark.parametrize("name", OUTSIDE)
def test_kernels_do_otherwise_outside_of_a_contract(name: str) -> None:
    """Some runtime that takes what is inside refuses the other file, or computes something else."""
    inside, outside, _ = OUTSIDE[name]
    samples = verification_inputs(inside(), 12, 0)
    ends = []
    for runtime in ("litert", "tflm"):
        files = {"inside": write_model(inside()), "outside": write_model(outside())}
        found = run_models(runtime, files, samples, 1 << 16)
        one, other = found["inside"], found["outside"]
        if one.ran:
            ends.append(not other.ran or one.arrays.keys() != other.arrays.keys() or _differ(one.arrays, other.arrays))
    assert ends, "no runtime takes what is inside"
    assert any(ends)


def _differ(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return any(a.shape != other[name].shape or a.tobytes() != other[name].tobytes() for name, a in one.items())


def test_the_operator_is_named_with_the_clause() -> None:
    assert "operator 0 (MEAN, 'y'): " in str(prove(reduced(1), reduced(5)))


def test_every_kind_has_a_contract() -> None:
    """But those that are taken as functions of everything, options and types included."""
    known = set(KINDS) | EFFECTS.keys() - {"CUSTOM"}
    assert known - set(CONTRACTS) == set(_WHOLE.split())
    assert known >= set(CONTRACTS)


def recurrent(is_shared: bool) -> Model:
    """Two SVDF whose states have one name; a state of its own for each, or one for both."""
    b = ModelBuilder()
    x = b.input("x", (1, 4), F32)
    states: list[Tensor] = []
    y = x
    for number in range(2):
        weights = [
            b.constant(f"{name}{number}", np.full(shape, 0.5, np.float32))
            for name, shape in (("features", (4, 4)), ("time", (4, 3)))
        ]
        if number == 0 or not is_shared:
            states.append(b.tensor("state", (1, 12), F32))
            states[-1].is_variable = True
        made = b.tensor(f"y{number}", (1, 4), F32)
        b.operator("SVDF", (y, *weights, None, states[-1]), (made,), "SVDFOptions", rank=1)
        y = made
    return b.finish(y)


def test_states_are_those_of_tensors_and_not_of_names() -> None:
    assert prove(recurrent(False), recurrent(False)).invocations is None
    assert prove(recurrent(False), recurrent(False)).proved
    assert not prove(recurrent(False), recurrent(True)).proved


@pytest.mark.parametrize(("key", "is_sound"), [("serving_default", True), ("", False)])
def test_signatures_have_names(key: str, is_sound: bool) -> None:
    model = dense(0, (0,))
    model.signatures = [Signature(key, model.main, (), ())]
    assert prove(model, model).proved == is_sound


def test_subgraphs_are_run_by_somebody() -> None:
    model = dense(0, (0,))
    other = dense(0, (0,)).main
    model.graphs.append(other)
    assert prove(model, model).status is Status.UNKNOWN
    model.signatures = [Signature("other", other, (), ())]
    assert prove(model, model).proved


def test_what_is_called_once_gives_nothing() -> None:
    model = ALL["streaming_model"]()
    assert prove(model, model).proved
    called = model.graphs[1]
    called.outputs = (called.tensors[0],)
    assert prove(model, model).status is Status.UNKNOWN


def resize_of(size: int) -> Proof:
    model = one("RESIZE_BILINEAR", (1, 2, 2, 1), [ints(size, size)], (1, 4, 4, 1), "ResizeBilinearOptions", F32)
    return prove(one("RESIZE_BILINEAR", (1, 2, 2, 1), [ints(4, 4)], (1, 4, 4, 1), "ResizeBilinearOptions", F32), model)


def test_nothing_is_made_of_a_size_out_of_proportion() -> None:
    assert resize_of(4).proved
    assert resize_of(40_000).status is Status.DIFFERENT


def blocks(name: str, block: int) -> Model:
    pads = np.zeros((2, 2), np.int32)
    shapes = {"SPACE_TO_BATCH_ND": ((1, 4, 4, 1), (4, 2, 2, 1)), "BATCH_TO_SPACE_ND": ((4, 2, 2, 1), (1, 4, 4, 1))}
    return one(name, shapes[name][0], [ints(block, block), pads], shapes[name][1], dtype=F32)


@pytest.mark.parametrize("name", ["SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"])
def test_blocks_of_nothing_are_broken(name: str) -> None:
    assert prove(blocks(name, 2), blocks(name, 2)).proved
    assert prove(blocks(name, 2), blocks(name, 0)).status is Status.DIFFERENT


def test_a_wrong_channel_axis_is_no_contract() -> None:
    model = convolution(4)
    weights = model.main.operators[0].inputs[1]
    assert weights is not None
    weights.quantization = per_channel(np.asarray([0.1, 0.2, 0.3, 0.4], np.float32), 0)
    assert prove(model, model).proved
    weights.quantization = replace(weights.quantization, axis=3)
    assert prove(model, model).status is Status.UNKNOWN


def bias_of(model: Model) -> Tensor:
    return next(each for each in model.main.tensors if each.dtype is I32 and each.quantization is not None)


@pytest.mark.parametrize("change", ["axis", "zero points"])
def test_scales_of_a_bias_that_litert_refuses_are_those_of_the_original(change: str) -> None:
    """TFLM runs both files; older converters wrote the scales of a bias along axis 3."""

    def dense(is_odd: bool) -> Model:
        b = ModelBuilder()
        model = b.finish(b.dense(b.input("x", (1, 4)), 3))
        bias = bias_of(model)
        assert bias.quantization is not None
        odd = {"axis": 3} if change == "axis" else {"zero_point": np.zeros(2, np.int64)}
        bias.quantization = replace(bias.quantization, **odd) if is_odd else bias.quantization
        return model

    assert prove(dense(True), dense(True)).proved
    assert prove(dense(True), dense(False)).proved
    assert prove(dense(False), dense(True)).status is Status.UNKNOWN


def test_a_variable_is_no_constant_no_output_and_no_handle() -> None:
    plain, output, handle, constant = (ALL["streaming_model"]() for _ in range(4))
    next(each for each in constant.graphs[1].tensors if each.is_constant).is_variable = True
    assert prove(plain, plain).proved
    output.main.outputs[0].is_variable = True
    next(each for each in handle.main.tensors if each.dtype is DType.RESOURCE).is_variable = True
    for odd in (output, handle, constant):
        assert prove(plain, odd).status is Status.UNKNOWN


def test_a_variable_is_read_as_the_type_that_it_was_given() -> None:
    plain, other = (ALL["streaming_model"]() for _ in range(2))
    zeros = next(each for each in other.graphs[1].tensors if each.name == "zeros")
    zeros.dtype = DType.UINT8
    assert not prove(plain, other).proved


def test_a_loop_hands_on_what_its_subgraphs_take() -> None:
    plain, other = (ALL["while_model"]() for _ in range(2))
    assert prove(plain, plain).proved
    taken = other.graphs[1].inputs[-1]
    taken.dtype = DType.INT64 if taken.dtype is not DType.INT64 else I32
    assert not prove(plain, other).proved
