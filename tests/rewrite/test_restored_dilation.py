"""Convolutions of blocks, as the converter leaves them without a batch size, become dilated ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    LITERT,
    TFLM,
    Branch,
    assert_exact,
    assert_same_bits,
    model_of,
    quantization_of,
    refusals,
    weights_quantization,
)
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver, Rule
from tflite_memopt.search.rewrite.folding import FOLDED_BIAS
from tflite_memopt.search.rewrite.pixels import RESTORED_DILATION


@dataclass(frozen=True)
class Cut:
    """One axis: pixels, block, paddings, taps, padding inside, crops."""

    size: int
    block: int = 1
    before: int = 0
    after: int = 0
    taps: int = 1
    inside: int = VALID
    first: int = 0
    last: int = 0

    @property
    def inner(self) -> int:
        return (self.size + self.before + self.after) // self.block

    @property
    def made(self) -> int:
        return self.inner if self.inside == SAME else self.inner - self.taps + 1

    @property
    def outputs(self) -> int:
        return self.made * self.block - self.first - self.last

    @property
    def is_dilated(self) -> bool:
        """Whether it has outputs, and its window never begins or ends inside the image."""
        own = (self.taps - 1) // 2 * self.block if self.inside == SAME else 0
        before = self.before - self.first + own
        after = self.outputs + (self.taps - 1) * self.block - self.size - before
        return self.made > 0 and self.outputs > 0 and min(before, after) >= 0


def random_cut(pick: Random, pads: bool, inside: int) -> Cut:
    """An axis of any size; ``pads``: with paddings of any size, else with those that fill the last block."""
    while True:
        size, block, taps = pick.randint(4, 13), pick.randint(1, 4), pick.randint(1, 3)
        before = pick.randint(0, block * taps) if pads else 0
        after = -(size + before) % block + (block * pick.randint(0, taps) if pads else 0)
        first = pick.choice((0, 0, before, pick.randint(0, before)))
        last = pick.choice((0, after, pick.randint(0, after)))
        cut = Cut(size, block, before, after, taps, inside, first, last)
        if cut.is_dilated and (pads or not after):
            return cut


def blocks(branch: Branch, kinds: tuple[DType, ...], pads: bool) -> None:
    pick = branch.random
    dtype, inside = pick.choice(kinds), SAME if pads and pick.random() < 0.2 else VALID
    image(branch, dtype, (random_cut(pick, pads, inside), random_cut(pick, pads, inside)))


def sequence(branch: Branch, kinds: tuple[DType, ...], pads: bool) -> None:
    """Blocks of three dimensions, with a row or a column of one pixel for the convolution."""
    pick = branch.random
    inside = SAME if pads and pick.random() < 0.2 else VALID
    image(branch, pick.choice(kinds), (random_cut(pick, pads, inside),))


def image(branch: Branch, dtype: DType, cuts: tuple[Cut, ...]) -> None:
    pick, batch = branch.random, branch.random.choice((1, 1, 1, 2))
    x = branch.input((batch, *(cut.size for cut in cuts), pick.choice((1, 3, 4))), dtype, **branch.quantization(dtype))
    convolved(branch, x, cuts)


def convolved(branch: Branch, x: Tensor, cuts: tuple[Cut, ...]) -> Tensor:
    """SPACE_TO_BATCH_ND, a convolution of any kind, BATCH_TO_SPACE_ND."""
    b, pick = branch.builder, branch.random
    operands = [branch.ints(*(cut.block for cut in cuts))]
    ends = ([(cut.before, cut.after) for cut in cuts], [(cut.first, cut.last) for cut in cuts])
    operands += [branch.constant(np.asarray(pairs, np.int32)) for pairs in ends]
    batch = x.shape[0] * int(np.prod([cut.block for cut in cuts]))
    y = branch.tensor((batch, *(cut.inner for cut in cuts), x.shape[-1]), x.dtype, **quantization_of(x))
    b.operator("SPACE_TO_BATCH_ND", (x, *operands[:2]), (y,), "SpaceToBatchNDOptions")
    row = pick.choice((0, 1))
    sides = list(cuts) if len(cuts) == 2 else [cuts[0], Cut(1)] if row else [Cut(1), cuts[0]]
    if len(cuts) == 1:
        y = reshaped(branch, y, (batch, *(side.inner for side in sides), x.shape[-1]), row)
    y = convolution(branch, y, sides)
    if len(cuts) == 1:
        y = reshaped(branch, y, (batch, cuts[0].made, y.shape[-1]), None)
    output = branch.tensor((x.shape[0], *(cut.outputs for cut in cuts), y.shape[-1]), x.dtype, **quantization_of(y))
    branch.run("BATCH_TO_SPACE_ND", (y, operands[0], operands[2]), output, "BatchToSpaceNDOptions")
    return output


def reshaped(branch: Branch, x: Tensor, shape: tuple[int, ...], row: int | None) -> Tensor:
    """EXPAND_DIMS or SQUEEZE at times, else a RESHAPE with the batch left open, as the converter writes it."""
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    named = branch.random.random() < 0.5
    if named and row is not None:
        axis = branch.constant(np.asarray(1 + row, np.int32))
        branch.builder.operator("EXPAND_DIMS", (x, axis), (y,), "ExpandDimsOptions")
    elif named:
        axis_of_one = 1 if x.shape[1] == 1 and x.shape[2] != 1 else 2
        if x.shape[axis_of_one] == 1 and x.shape[3 - axis_of_one] == shape[1]:
            fields = {"squeezeDims": np.asarray([axis_of_one], np.int32)}
            branch.builder.operator("SQUEEZE", (x,), (y,), "SqueezeOptions", **fields)
            return y
        branch.builder.operator("RESHAPE", (x, branch.ints(-1, *shape[1:])), (y,), "ReshapeOptions")
    else:
        branch.builder.operator("RESHAPE", (x, branch.ints(-1, *shape[1:])), (y,), "ReshapeOptions")
    return y


def convolution(branch: Branch, x: Tensor, sides: list[Cut]) -> Tensor:
    pick, depth = branch.random, x.shape[3]
    is_depthwise = pick.random() < 0.5
    channels = depth * pick.choice((1, 2)) if is_depthwise else pick.choice((1, 4))
    taps = (sides[0].taps, sides[1].taps)
    shape = (1, *taps, channels) if is_depthwise else (channels, *taps, depth)
    y = branch.tensor((x.shape[0], sides[0].made, sides[1].made, channels), x.dtype, **branch.quantization(x.dtype))
    values = branch.values(shape, F32 if x.dtype is F32 else I8)
    scales = None if x.dtype is F32 else weights_quantization(branch, channels, 3 if is_depthwise else 0)
    weights = branch.constant(values if x.dtype is F32 else np.maximum(values, -127), scales)
    bias = branch.constant(np.arange(channels, dtype={F32: np.float32, I8: np.int32, I16: np.int64}[x.dtype]))
    inside = max((side.inside for side in sides if side.taps > 1), default=VALID, key=lambda each: each == SAME)
    fields: dict[str, Any] = {"padding": inside, "strideH": 1, "strideW": 1}
    fields |= {"dilationHFactor": 1, "dilationWFactor": 1, "fusedActivationFunction": pick.choice((0, 1))}
    if is_depthwise:
        fields["depthMultiplier"] = channels // depth
    name, kind = ("DEPTHWISE_CONV_2D", "DepthwiseConv2D") if is_depthwise else ("CONV_2D", "Conv2D")
    branch.builder.operator(name, (x, weights, bias), (y,), f"{kind}Options", **fields)
    return y


BOTH = list(zip(RESTORED_DILATION, (blocks, sequence), strict=True))


@pytest.mark.few(1)
@pytest.mark.parametrize(("rule", "make"), BOTH)
def test_the_same_bits_on_both_runtimes_where_tflm_computes_blocks_rightly(rule: Rule, make: Any) -> None:
    """TFLM pads blocks with whatever its memory held, so only blocks without padding can be compared there."""
    assert_exact(rule, partial(make, kinds=(F32, I8), pads=False), 1, 60, (LITERT, TFLM))


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "make"), BOTH)
def test_the_same_bits_with_paddings_and_crops(rule: Rule, make: Any) -> None:
    assert_exact(rule, partial(make, kinds=(F32, I8, I16), pads=True), 2, 120, (LITERT,))


def small(**change: Any) -> tuple[ModelBuilder, Model]:
    """One dilated convolution of a 6x6 image, SAME: two pixels of padding in blocks of two."""
    b = ModelBuilder()
    branch = Branch(b, Random(3), 0)
    cut = replace(Cut(6, 2, 2, 2, 3), **change)
    x = b.input("x", (1, 6, 6, 2), F32)
    convolved(branch, x, (cut, cut))
    return b, b.finish(*branch.outputs)


def test_same_padding_comes_back() -> None:
    _, model = small()
    Driver(model).apply_everywhere(RESTORED_DILATION)
    (operator,) = model.main.operators
    assert operator.inputs[0] is model.main.inputs[0]
    wanted = {"padding": SAME, "dilationHFactor": 2, "dilationWFactor": 2}
    assert {name: operator.option(name) for name in wanted} == wanted


def test_two_convolutions_of_the_same_blocks_are_both_restored() -> None:
    """As in WaveNet, whose gates read the same."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2), F32)
    for number in (0, 1):
        branch = Branch(b, Random(number), number)
        convolved(branch, x, (Cut(8, 2, 2, 2, 3), Cut(8, 2, 2, 2, 3)))
        b.graph.outputs = (*b.graph.outputs, *branch.outputs)
    model = b.finish(*b.graph.outputs)
    blocks_, others = (operator for operator in model.main.operators if operator.name == "SPACE_TO_BATCH_ND")
    model.main.replace_uses(others.outputs[0], blocks_.outputs[0])
    model.main.remove_operator(others)
    Driver(model).apply_everywhere(RESTORED_DILATION)
    assert all("CONV_2D" in operator.name for operator in model.main.operators)


def test_padding_at_one_end_stays_a_pad() -> None:
    _, model = small(before=4, after=0)
    Driver(model).apply_everywhere(RESTORED_DILATION)
    pad, convolution_ = model.main.operators
    assert (pad.name, pad.outputs[0].shape) == ("PAD", (1, 10, 10, 2))
    assert convolution_.option("padding") == VALID


def _strided(model: Model) -> None:
    model.main.operators[1].options.fields["strideH"] = 2  # type: ignore[union-attr, index]


def _computed_crops(model: Model) -> None:
    crops = model.main.operators[2].inputs[2]
    assert crops is not None
    crops.buffer = model.buffers[0]
    model.main.inputs = (*model.main.inputs, crops)


def _other_blocks(model: Model) -> None:
    block = ModelBuilder.constant(ModelBuilder(), "other", np.asarray([4, 4], np.int32))
    model.main.add_tensor(block)
    model.main.set_input(model.main.operators[2], 1, block)


def _returned(model: Model) -> None:
    model.main.outputs = (*model.main.outputs, model.main.operators[1].outputs[0])


def _wrong_batch(model: Model) -> None:
    model.main.operators[0].outputs[0].shape = (1, 5, 5, 2)
    model.main.operators[1].outputs[0].shape = (1, 3, 3, model.main.operators[1].outputs[0].shape[3])


def _infinite(model: Model) -> None:
    weights = model.main.operators[1].inputs[1]
    assert weights is not None
    weights.buffer.data = np.full(weights.elements, np.inf, np.float32).view(np.uint8)


def _variable(model: Model) -> None:
    model.main.inputs[0].is_variable = True


REASONS = {
    _strided: "its stride is not 1",
    _computed_crops: "crops are computed",
    _other_blocks: "not the same at both ends",
    _returned: "is needed by others too",
    _wrong_batch: "the batch is not that of the blocks",
    _infinite: "weights are not finite",
    _variable: "it computes on a variable",
}


@pytest.mark.parametrize("change", list(REASONS), ids=lambda change: change.__name__)
def test_what_is_no_dilated_convolution_is_left_alone_with_the_reason(change: Any) -> None:
    _, model = small()
    change(model)
    (reason,) = refusals(model, RESTORED_DILATION[0])
    assert REASONS[change] in reason


def test_crops_beyond_the_padding_are_refused() -> None:
    _, model = small(before=0, after=0, taps=1, first=1)
    (reason,) = refusals(model, RESTORED_DILATION[0])
    assert "crops" in reason


def test_a_window_of_two_dimensions_over_a_sequence_is_refused() -> None:
    b = ModelBuilder()
    branch = Branch(b, Random(1), 0)
    convolved(branch, b.input("x", (1, 8, 2), F32), (Cut(8, 2, 0, 0, 3),))
    model = b.finish(*branch.outputs)
    weights = next(operator for operator in model.main.operators if "CONV" in operator.name).inputs[1]
    assert weights is not None
    weights.shape = (weights.shape[0], 3, 3, weights.shape[3])
    weights.buffer.data = np.ones(weights.elements, np.float32).view(np.uint8)
    (reason,) = refusals(model, RESTORED_DILATION[1])
    assert "dimensions" in reason


def test_hybrid_and_other_quantizations_are_refused() -> None:
    b, model = small()
    weights = model.main.operators[1].inputs[1]
    assert weights is not None
    weights.dtype = I8
    weights.buffer.data = np.ones(weights.elements, np.uint8)
    (reason,) = refusals(model, RESTORED_DILATION[0])
    assert "hybrid" in reason
    _, model = small()
    model.main.operators[0].outputs[0].quantization = b.tensor("like", (), scale=0.3).quantization
    (reason,) = refusals(model, RESTORED_DILATION[0])
    assert "quantized" in reason


def biased(branch: Branch, reshapes: bool) -> None:
    """A float convolution with a bias of zeros, and the ADD that the converter left behind it."""
    pick = branch.random
    cut = Cut(pick.randint(3, 6), taps=pick.choice((1, 3)))
    x = branch.input((1, cut.size, cut.size, pick.choice((1, 4))), F32)
    channels = 4
    weights = branch.values((channels, cut.taps, cut.taps, x.shape[3]), F32)
    operands = [branch.constant(each) for each in (weights, np.zeros(channels, np.float32))]
    y = branch.tensor((1, cut.made, cut.made, channels), F32)
    fields = {"padding": VALID, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    branch.builder.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", **fields)
    if reshapes:
        y = reshaped(branch, y, (1, cut.made * cut.made, channels), None)
    bias = branch.constant(branch.values(pick.choice(((4,), (1, 4), (1, 1, 4))), F32))
    z = branch.tensor(y.shape, F32)
    pair = (y, bias) if pick.random() < 0.5 else (bias, y)
    branch.run("ADD", pair, z, "AddOptions", fusedActivationFunction=pick.choice((0, 1, 3)))


@pytest.mark.few(1)
@pytest.mark.parametrize("reshapes", [False, True])
def test_a_bias_that_is_folded_gives_the_same_bits(reshapes: bool) -> None:
    model, owners = model_of(partial(biased, reshapes=reshapes), 5, 40)
    original, driver = write_model(model), Driver(model)
    driver.apply_everywhere(FOLDED_BIAS)
    assert len(driver.applied) == 40
    assert "ADD" not in {operator.name for operator in model.main.operators}
    assert_same_bits(original, write_model(model), owners, 5)


def _with_bias(change: str) -> Model:
    b = ModelBuilder()
    x, y, z = (b.tensor(name, (1, 4, 4, 2), F32) for name in "xyz")
    b.graph.inputs = (x,)
    bias = np.asarray([0.0, 0.5 if change == "bias" else 0.0], np.float32)
    weights = np.full((2, 1, 1, 2), 1e30 if change == "overflow" else 1, np.float32)
    operands = (b.constant("w", weights), b.constant("b", bias))
    fields = {"strideH": 1, "strideW": 1, "fusedActivationFunction": int(change == "activation")}
    b.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", **fields)
    shape = (1, 1, 1, 2) if change != "pixels" else (1, 4, 1, 2)
    b.operator("ADD", (y, b.constant("c", np.ones(shape, np.float32))), (z,), "AddOptions")
    return b.finish(z, y) if change == "returned" else b.finish(z)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("bias", "a bias of its own"),
        ("activation", "an activation of its own"),
        ("returned", "is needed by others too"),
        ("overflow", "may overflow, which a convolution clamps"),
    ],
)
def test_a_bias_that_would_round_otherwise_stays(change: str, reason: str) -> None:
    (found,) = refusals(_with_bias(change), FOLDED_BIAS[0])
    assert reason in found


def test_a_constant_for_each_pixel_is_no_bias() -> None:
    assert refusals(_with_bias("pixels"), FOLDED_BIAS[0]) == []
