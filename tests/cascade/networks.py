"""Networks of operators that run row by row, drawn at random: any type, window, stride, dilation and wiring."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from tests.model_builder import ModelBuilder, per_channel
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.rows import FROM_STACK, TO_STACK
from tflite_memopt.search.cascade.region import Region, region_of

TYPES = (DType.INT8, DType.FLOAT32, DType.INT16)
ZERO_POINT = -7
ENLARGING = ("transpose_conv", "nearest", "bilinear", "depth_to_space")
"""Operators that make several rows of one."""
OPERATORS = (
    "conv",
    "depthwise",
    "average",
    "max",
    "pad",
    "padv2",
    "add",
    "add",
    "concat",
    "scale",
    "relu",
    "quantize",
    *ENLARGING,
    "space_to_depth",
    "dense",
    "tanh",
    "matmul",
    "mirror",
    "mean",
    "prelu",
    "select",
)

KEEPING_ROWS = ("query", "cut", "reshape", "transpose")
"""Operators on columns and channels alone; every name here is that of a method."""
EVERY = (*OPERATORS, *KEEPING_ROWS, *KEEPING_ROWS, "found")
"""With ``found``, which has no channels and so is the last one."""


class Network:
    """Grows a graph of images; every layer takes its choices from one random generator."""

    def __init__(self, rng: random.Random, dtype: DType) -> None:
        self.rng, self.dtype = rng, dtype
        self.b = ModelBuilder()
        self.zero_point = ZERO_POINT if dtype is DType.INT8 else 0

    def image(self, name: str, shape: Sequence[int], is_input: bool = False) -> Tensor:
        """An activation of the network's type, with a zero point that is not 0 where the type has one."""
        make = self.b.input if is_input else self.b.tensor
        return make(name, shape, self.dtype, zero_point=self.zero_point)

    def layer(self, kind: str, x: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """One operator that reads ``x``, and maybe one of the earlier tensors as well."""
        if kind in ("add", "concat"):
            return self.joined(kind, x, earlier)
        if self.dtype is DType.INT16 and kind in ("bilinear", "depth_to_space", "space_to_depth", "mirror"):
            return self.quantize(x)  # TFLM has no such kernel
        layer: Tensor = getattr(self, kind)(x)
        return layer

    def joined(self, kind: str, x: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """A sum with a tensor of the same shape, or a channel concat; with a new input where nothing fits."""
        depth = 3 if kind == "add" else 2
        fitting = [each for each in earlier if each.shape[: depth + 1] == x.shape[: depth + 1]]
        fitting = fitting or [self.image(f"in{len(self.b.graph.tensors)}", x.shape, is_input=True)]
        other = self.rng.choice(fitting)
        if kind == "add":
            y = self._output("add", x.shape)
            self.b.operator("ADD", (x, other), (y,), "AddOptions", potScaleInt16=False)
            return y
        y = self._output("concat", (*x.shape[:3], x.shape[3] + other.shape[3]))
        axis = self.rng.choice((3, -1))
        self.b.operator("CONCATENATION", (x, other), (y,), "ConcatenationOptions", axis=axis)
        return y

    def conv(self, x: Tensor) -> Tensor:
        channels = self.rng.randint(1, 5)
        taps, fields, size = self._window(x, dilates=True)
        y = self._output("conv", (1, *size, channels))
        operands = self._weights(y.name, (channels, *taps, x.shape[3]), 0, channels)
        fields |= {"fusedActivationFunction": self.rng.choice((0, 1, 3))}
        self.b.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", **fields)
        return y

    def depthwise(self, x: Tensor) -> Tensor:
        multiplier = self.rng.choice((1, 1, 2)) if x.shape[3] < 6 else 1
        taps, fields, size = self._window(x, dilates=True)
        channels = x.shape[3] * multiplier
        y = self._output("depthwise", (1, *size, channels))
        operands = self._weights(y.name, (1, *taps, channels), 3, channels)
        fields |= {"depthMultiplier": multiplier}
        self.b.operator("DEPTHWISE_CONV_2D", (x, *operands), (y,), "DepthwiseConv2DOptions", **fields)
        return y

    def average(self, x: Tensor, name: str = "AVERAGE_POOL_2D") -> Tensor:
        taps, fields, size = self._window(x, dilates=False)
        y = self._output("pool", (1, *size, x.shape[3]))
        fields |= {"filterHeight": taps[0], "filterWidth": taps[1]}
        self.b.operator(name, (x,), (y,), "Pool2DOptions", **fields)
        return y

    def max(self, x: Tensor) -> Tensor:
        return self.average(x, "MAX_POOL_2D")

    def pad(self, x: Tensor, name: str = "PAD") -> Tensor:
        amounts = np.asarray([[0, 0], *([self.rng.randint(0, 3) for _ in "ab"] for _ in "hwc")], np.int32)
        amounts[3] %= 2
        y = self._output("pad", np.asarray(x.shape) + amounts.sum(axis=1))
        operands = [x, self.b.constant(f"{y.name}/paddings", amounts)]
        if name == "PADV2":
            value = np.asarray([3], self.dtype.label)
            operands.append(self.b.constant(f"{y.name}/value", value, x.quantization))
        self.b.operator(name, operands, (y,), f"{'PadV2' if name == 'PADV2' else 'Pad'}Options")
        return y

    def padv2(self, x: Tensor) -> Tensor:
        return self.pad(x, "PADV2" if self.dtype is not DType.INT16 else "PAD")

    def scale(self, x: Tensor) -> Tensor:
        """A product with one constant for each channel, or for each column."""
        shape = self.rng.choice(((x.shape[3],), (1, 1, x.shape[2], 1), (1, 1, 1, x.shape[3]), x.shape[2:]))
        values = self._values(shape)
        y = self._output("scaled", x.shape)
        quantization = None if x.quantization is None else per_tensor(0.02, 0)
        self.b.operator("MUL", (x, self.b.constant(f"{y.name}/factor", values, quantization)), (y,), "MulOptions")
        return y

    def relu(self, x: Tensor) -> Tensor:
        if self.dtype is DType.INT16:
            return self.quantize(x)
        y = self._output("relu", x.shape)
        self.b.operator("RELU", (x,), (y,))
        return y

    def quantize(self, x: Tensor) -> Tensor:
        """The same values in another scale, and from there back."""
        if self.dtype is DType.FLOAT32:
            return self.relu(x)
        y = self.b.tensor(f"quantized{len(self.b.graph.operators)}", x.shape, self.dtype, 0.06, self.zero_point)
        self.b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
        z = self._output("quantized", x.shape)
        self.b.operator("QUANTIZE", (y,), (z,), "QuantizeOptions")
        return z

    def transpose_conv(self, x: Tensor) -> Tensor:
        """Any window and stride; with VALID at times some rows more than a stride for each."""
        channels, taps, strides = self.rng.randint(1, 3), (self.rng.randint(1, 5), 2), (self.rng.choice((2, 2, 3)), 1)
        padding = self.rng.choice((SAME, VALID))
        more = [max(0, tap - step) if padding == VALID else 0 for tap, step in zip(taps, strides, strict=True)]
        size = [x.shape[1 + axis] * strides[axis] + more[axis] for axis in (0, 1)]
        y = self._output("transposed", (1, *size, channels))
        filters, bias = self._weights(y.name, (channels, *taps, x.shape[3]), 0, channels)
        shape = self.b.constant(f"{y.name}/shape", np.asarray(y.shape, np.int32))
        fields = {"padding": padding, "strideH": strides[0], "strideW": strides[1]}
        self.b.operator("TRANSPOSE_CONV", (shape, filters, x, bias), (y,), "TransposeConvOptions", **fields)
        return y

    def nearest(self, x: Tensor, name: str = "RESIZE_NEAREST_NEIGHBOR", factors: Sequence[int] = (2, 3, 4)) -> Tensor:
        """By a whole number along the rows; any width."""
        size = x.shape[1] * self.rng.choice(factors), x.shape[2] + self.rng.randint(0, 3)
        y = self._output("resized", (1, *size, x.shape[3]))
        kind = "ResizeBilinearOptions" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        wanted = self.b.constant(f"{y.name}/size", np.asarray(size, np.int32))
        self.b.operator(name, (x, wanted), (y,), kind, halfPixelCenters=self.rng.random() < 0.7, alignCorners=False)
        return y

    def bilinear(self, x: Tensor) -> Tensor:
        return self.nearest(x, "RESIZE_BILINEAR", (2, 4))

    def depth_to_space(self, x: Tensor) -> Tensor:
        """After a convolution to four times the channels."""
        y = self._output("wide", (*x.shape[:3], 4))
        operands = self._weights(y.name, (4, 1, 1, x.shape[3]), 0, 4)
        fields = {"padding": SAME, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
        self.b.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", **fields)
        z = self._output("pixels", (1, 2 * x.shape[1], 2 * x.shape[2], 1))
        self.b.operator("DEPTH_TO_SPACE", (y,), (z,), "DepthToSpaceOptions", blockSize=2)
        return z

    def space_to_depth(self, x: Tensor) -> Tensor:
        if x.shape[1] % 2 or x.shape[2] % 2:
            return self.relu(x)
        y = self._output("deep", (1, x.shape[1] // 2, x.shape[2] // 2, 4 * x.shape[3]))
        self.b.operator("SPACE_TO_DEPTH", (x,), (y,), "SpaceToDepthOptions", blockSize=2)
        return y

    def dense(self, x: Tensor) -> Tensor:
        channels = self.rng.randint(1, 4)
        y = self._output("dense", (*x.shape[:3], channels))
        filters, bias = self._weights(y.name, (channels, x.shape[3]), 0, channels)
        self.b.operator("FULLY_CONNECTED", (x, filters, bias), (y,), "FullyConnectedOptions", keepNumDims=True)
        return y

    def tanh(self, x: Tensor) -> Tensor:
        """TANH of a tensor has a fixed scale, so that it is requantized behind."""
        if self.dtype is not DType.FLOAT32:
            return self.hard_swish(x)
        y = self._output("tanh", x.shape)
        kinds = {"L2_NORMALIZATION": "L2NormOptions", "SOFTMAX": "SoftmaxOptions", "LOG_SOFTMAX": None}
        name = self.rng.choice(("TANH", "LOGISTIC", "HARD_SWISH", *kinds))
        self.b.operator(name, (x,), (y,), kinds.get(name), **({"beta": 1.0} if name == "SOFTMAX" else {}))
        return y

    def prelu(self, x: Tensor) -> Tensor:
        """With a slope for each channel, the same for all pixels."""
        if self.dtype is DType.INT16:
            return self.quantize(x)
        y = self._output("prelu", x.shape)
        scale = None if self.dtype is DType.FLOAT32 else per_tensor(0.01, 3)
        slopes = self.b.constant(f"{y.name}/slopes", self._values((1, 1, x.shape[3]), np.int8), scale)
        self.b.operator("PRELU", (x, slopes), (y,))
        return y

    def select(self, x: Tensor) -> Tensor:
        """The larger of two tensors, by a comparison."""
        if self.dtype is DType.INT16:
            return self.quantize(x)
        other, y = self.scale(x), self._output("selected", x.shape)
        is_larger = self.b.tensor(f"{y.name}/larger", x.shape, DType.BOOL)
        self.b.operator(self.rng.choice(("GREATER", "LESS_EQUAL")), (x, other), (is_larger,))
        self.b.operator("SELECT_V2", (is_larger, x, other), (y,), "SelectV2Options")
        return y

    def hard_swish(self, x: Tensor) -> Tensor:
        if self.dtype is DType.INT16:
            return self.quantize(x)
        y = self._output("swish", x.shape)
        self.b.operator("HARD_SWISH", (x,), (y,))
        return y

    def matmul(self, x: Tensor) -> Tensor:
        """Every row's matrix times one that is computed of it."""
        if self.dtype is DType.INT16:
            return self.quantize(x)
        other = self._output("transposed", (*x.shape[:2], x.shape[3], x.shape[2]))
        shape = np.asarray(other.shape, np.int32)
        operand = self.b.constant(f"{other.name}/shape", shape)
        self.b.operator("RESHAPE", (x, operand), (other,), "ReshapeOptions", newShape=shape)
        y = self._output("product", (*x.shape[:3], x.shape[2]))
        self.b.operator("BATCH_MATMUL", (x, other), (y,), "BatchMatMulOptions")
        return y

    def query(self, x: Tensor) -> Tensor:
        """Every row with one matrix, which is computed and read whole."""
        columns = self.rng.randint(1, 4)
        shape = (1, 1, columns, x.shape[3]) if (turned := self.rng.random() < 0.7) else (1, 1, x.shape[3], columns)
        keys = self.image(f"in{len(self.b.graph.tensors)}", shape, is_input=True)
        y = self._output("scores", (*x.shape[:3], columns))
        self.b.operator("BATCH_MATMUL", (x, keys), (y,), "BatchMatMulOptions", adjY=turned)
        return y

    def cut(self, x: Tensor) -> Tensor:
        """Some columns, some channels."""
        begin, size = [0, 0], [1, x.shape[1]]
        for whole in x.shape[2:]:
            begin.append(self.rng.randrange(whole))
            size.append(self.rng.randint(1, whole - begin[-1]))
        y = self._output("cut", size)
        said = [
            self.b.constant(f"{y.name}/{n}", np.asarray(v, np.int32)) for n, v in (("begin", begin), ("size", size))
        ]
        self.b.operator("SLICE", (x, *said), (y,), "SliceOptions")
        return y

    def reshape(self, x: Tensor) -> Tensor:
        """Columns as channels, or channels as columns."""
        columns, channels = x.shape[2:]
        shape = (
            *x.shape[:2],
            *self.rng.choice(((1, columns * channels), (columns * channels, 1), (channels, columns))),
        )
        y = self._output("reshaped", shape)
        said = np.asarray(shape, np.int32)
        self.b.operator("RESHAPE", (x, self.b.constant(f"{y.name}/shape", said)), (y,), "ReshapeOptions", newShape=said)
        return y

    def transpose(self, x: Tensor) -> Tensor:
        """Columns and channels change places."""
        y = self._output("transposed", (*x.shape[:2], x.shape[3], x.shape[2]))
        order = np.asarray((0, 1, 3, 2), np.int32)
        self.b.operator("TRANSPOSE", (x, self.b.constant(f"{y.name}/order", order)), (y,), "TransposeOptions")
        return y

    def found(self, x: Tensor) -> Tensor:
        """Which channel is the largest."""
        y = self.b.tensor(f"found{len(self.b.graph.operators)}", x.shape[:3], DType.INT32)
        axis = self.b.constant(f"{y.name}/axis", np.asarray([self.rng.choice((3, -1))], np.int32))
        self.b.operator("ARG_MAX", (x, axis), (y,), "ArgMaxOptions", outputType=2)
        return y

    def mirror(self, x: Tensor) -> Tensor:
        """Columns alone."""
        amounts = np.asarray([[0, 0], [0, 0], [0, min(1, x.shape[2] - 1)], [0, 0]], np.int32)
        y = self._output("mirrored", np.asarray(x.shape) + amounts.sum(axis=1))
        paddings = self.b.constant(f"{y.name}/paddings", amounts)
        self.b.operator("MIRROR_PAD", (x, paddings), (y,), "MirrorPadOptions", mode=self.rng.choice((0, 1)))
        return y

    def mean(self, x: Tensor) -> Tensor:
        """Over columns, channels or both."""
        axes = self.rng.choice(((2,), (3,), (-1,), (2, 3)))
        kept = [1 if axis in {each % 4 for each in axes} else size for axis, size in enumerate(x.shape)]
        kind = self.rng.choice(("MEAN", "SUM", "REDUCE_MAX"))
        if self.dtype is DType.INT16 and kind != "MEAN":
            return self.quantize(x)  # TFLM has no such kernel
        y = self._output("mean", kept)
        said = self.b.constant(f"{y.name}/axes", np.asarray(axes, np.int32))
        self.b.operator(kind, (x, said), (y,), "ReducerOptions", keepDims=True)
        return y

    def turned(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """The tensor with its dimensions in another order."""
        y = self._output("turned", [x.shape[axis] for axis in order])
        y.quantization = x.quantization
        said = self.b.constant(f"{y.name}/order", np.asarray(order, np.int32))
        self.b.operator("TRANSPOSE", (x, said), (y,), "TransposeOptions")
        return y

    def _output(self, kind: str, shape: Sequence[int]) -> Tensor:
        return self.image(f"{kind}{len(self.b.graph.operators)}", tuple(int(size) for size in shape))

    def _window(self, x: Tensor, dilates: bool) -> tuple[tuple[int, int], dict[str, int], tuple[int, int]]:
        """Taps, options and output size of a window; SAME where the kernel does not fit the image."""
        padding = self.rng.choice((SAME, SAME, VALID))
        taps = self.rng.choice((1, 2, 3, 3, 4, 5, 7)), self.rng.choice((1, 2, 3))
        strides = self.rng.choice((1, 1, 2, 3)), self.rng.choice((1, 1, 2))
        dilations = (self.rng.choice((1, 1, 2, 3)), self.rng.choice((1, 2))) if dilates else (1, 1)
        reach = [(tap - 1) * dilation + 1 for tap, dilation in zip(taps, dilations, strict=True)]
        if reach[0] > x.shape[1] or reach[1] > x.shape[2]:
            padding = SAME
        trims = [each - 1 if padding == VALID else 0 for each in reach]
        size = [-(-(x.shape[1 + axis] - trims[axis]) // strides[axis]) for axis in (0, 1)]
        fields = {"padding": padding, "strideH": strides[0], "strideW": strides[1]}
        if dilates:
            fields |= {"dilationHFactor": dilations[0], "dilationWFactor": dilations[1]}
        return taps, fields, (size[0], size[1])

    def _weights(self, name: str, shape: Sequence[int], axis: int, channels: int) -> list[Tensor]:
        filters = self._values(shape, np.int8)
        if self.dtype is DType.FLOAT32:
            bias = self.b.constant(f"{name}/bias", self._values((channels,)))
            return [self.b.constant(f"{name}/weights", filters), bias]
        scale = np.random.default_rng(len(name)).uniform(0.5, 1, channels).astype(np.float32) / np.float32(
            64 * np.sqrt(max(1, filters.size // channels))
        )
        wide = np.int32 if self.dtype is DType.INT8 else np.int64
        offsets = np.asarray([self.rng.randint(-2000, 2000) for _ in range(channels)], wide)
        return [
            self.b.constant(f"{name}/weights", filters, per_channel(scale, axis)),
            self.b.constant(f"{name}/bias", offsets, per_channel(scale * np.float32(0.05), 0)),
        ]

    def _values(self, shape: Sequence[int], integer: type | None = None) -> np.ndarray:
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        if self.dtype is DType.FLOAT32:
            return rng.uniform(-1, 1, shape).astype(np.float32)
        kind = np.dtype(integer or self.dtype.label)
        return rng.integers(-127, 128, shape).astype(kind)


def random_network(
    seed: int, dtype: DType, layers: int, height: int = 0, kinds: Sequence[str] = OPERATORS, stacked: bool = False
) -> Model:
    """An operator that is no part of the region, a region, and often a reader of its exit.

    ``stacked``: the region begins with the TRANSPOSE of a stack (C, H, 1, W), and may end with one to a stack.
    """
    rng = random.Random(seed)
    net = Network(rng, dtype)
    shape = [1, height or rng.randint(2, 24), rng.randint(1, 6), rng.randint(1, 3)]
    image = net.image("image", [shape[axis] for axis in TO_STACK] if stacked else shape, is_input=True)
    x = net.quantize(image) if dtype is not DType.FLOAT32 else net.relu(image)
    tensors = [net.turned(x, FROM_STACK) if stacked else x]
    for _ in range(layers):
        source = tensors[-1] if rng.random() < 0.75 else rng.choice(tensors)
        kind = rng.choice(kinds)
        if kind == "found":
            if dtype is DType.INT16:
                continue  # TFLM has no such kernel
            tensors.append(net.found(source))
            break
        if source.elements < 4000:
            tensors.append(net.layer(kind, source, tensors))
    if stacked and seed % 2 and len(tensors[-1].shape) == 4 and tensors[-1].dtype is dtype:
        tensors.append(net.turned(tensors[-1], TO_STACK))
    _drop_unread(net.b, tensors[-1])
    outputs = [tensors[-1]]
    if rng.random() < 0.5 and tensors[-1].dtype is dtype:
        outputs = [net.relu(tensors[-1])]
    if rng.random() < 0.3:
        outputs.append(x)  # the region's input lives on
    return net.b.finish(*outputs)


def _drop_unread(b: ModelBuilder, exit_: Tensor) -> None:
    """Remove what does not lead to the exit."""
    for operator in reversed(list(b.graph.operators)):
        output = operator.outputs[0]
        if output is not exit_ and not output.uses:
            b.graph.remove_operator(operator)
    doomed = [each for each in b.graph.tensors if each.producer is None and not each.uses]
    b.graph.remove_tensors([each for each in doomed if each not in b.graph.inputs and each is not exit_])
    read = tuple(each for each in b.graph.inputs if each.uses)
    unread = [each for each in b.graph.inputs if not each.uses]
    b.graph.inputs = read
    b.graph.remove_tensors(unread)


def regions(model: Model) -> list[Region]:
    """All intervals of operators that are regions."""
    operators = model.main.operators
    spans = [(i, j) for i in range(len(operators)) for j in range(i + 1, len(operators) + 1)]
    found = [region_of(model.main, operators[i:j]) for i, j in spans]
    return [each for each in found if isinstance(each, Region)]
