"""Convolutions and pools of every shape, type and group count, with the path that CMSIS-NN's wrappers take for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scripts.kernel_probes.probe import Case
from scripts.makers.model_builder import ModelBuilder, per_channel
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.making import SAME, VALID
from tflite_memopt.ir.model import Buffer, Quantization, Tensor

CONV, DEPTHWISE, AVERAGE, MAXIMUM = "CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"
_FLOAT = np.float32


@dataclass(frozen=True)
class Window:
    """One operator: an input of ``batches`` x ``height`` x ``width`` x ``depth``, a kernel of ``rows`` x ``columns``.

    ``channels`` are of the output. ``weights`` is the type of the filter; pools have none.
    """

    name: str
    height: int
    width: int
    depth: int
    channels: int
    rows: int
    columns: int
    stride: int = 1
    dilation: int = 1
    padding: int = SAME
    groups: int = 1
    batches: int = 1
    dtype: DType = DType.INT8
    weights: DType = DType.INT8

    @property
    def is_possible(self) -> bool:
        """Whether a VALID window fits into the input."""
        reaches = ((self.rows - 1) * self.dilation, (self.columns - 1) * self.dilation)
        return self.padding == SAME or (reaches[0] < self.height and reaches[1] < self.width)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Batch, rows, columns, channels."""
        trims = [(taps - 1) * self.dilation if self.padding == VALID else 0 for taps in (self.rows, self.columns)]
        spatial = [
            -(-(size - trim) // self.stride) for size, trim in zip((self.height, self.width), trims, strict=True)
        ]
        return self.batches, spatial[0], spatial[1], self.channels

    @property
    def path(self) -> str:
        """The group in which the tables count it: operator, type and what CMSIS-NN's wrappers tell apart."""
        kind = self.dtype.label if self.weights in (DType.INT8, self.dtype) else f"{self.weights.label} weights"
        batch = " batched" if self.batches > 1 else ""
        return f"{self.name} {self._shape_path()}{batch} {kind}"

    def _shape_path(self) -> str:
        if self.name == CONV:
            return self._convolution_path()
        if self.name != DEPTHWISE:
            return "pool"
        if self.depth == 1 and self.channels > 1:
            return "of one channel"
        if self.channels != self.depth or self.dilation > 1:
            return "generic"
        if self.channels > 124:
            return "over 124 channels"
        return "3x3" if self.rows == self.columns == 3 else "other kernels"

    def _convolution_path(self) -> str:
        if self.groups > 1:
            return "grouped"
        if self.dilation == 1 and self.rows == self.columns == 1:
            return "1x1" if self.stride == 1 else "1x1 strided"
        flat = self.dilation == 1 and self.height == self.rows == 1 and self.stride * self.depth % 4 == 0
        return "1xN" if flat else "im2col"

    @property
    def case(self) -> Case:
        """The operator alone in a model."""
        label = (
            f"{self.name} {self.rows}x{self.columns} stride {self.stride} dilation {self.dilation} "
            f"{'SAME' if self.padding == SAME else 'VALID'} {self.batches}x{self.height}x{self.width}x{self.depth}"
            f"->{self.channels} groups {self.groups} {self.dtype.label}/{self.weights.label}"
        )
        return Case(label, self._build, self.path)

    def _build(self, b: ModelBuilder) -> tuple[Tensor, ...]:
        x = b.input("x", (self.batches, self.height, self.width, self.depth), self.dtype)
        y = b.tensor("y", self.output_shape, self.dtype)
        fields = {"padding": self.padding, "strideH": self.stride, "strideW": self.stride}
        if self.name in (AVERAGE, MAXIMUM):
            b.operator(
                self.name, (x,), (y,), "Pool2DOptions", **fields, filterHeight=self.rows, filterWidth=self.columns
            )
            return (y,)
        fields |= {"dilationHFactor": self.dilation, "dilationWFactor": self.dilation}
        operands = (x, *self._filter_and_bias(b))
        if self.name == CONV:
            b.operator(self.name, operands, (y,), "Conv2DOptions", **fields)
        else:
            fields["depthMultiplier"] = self.channels // self.depth
            b.operator(self.name, operands, (y,), "DepthwiseConv2DOptions", **fields)
        return (y,)

    def _filter_and_bias(self, b: ModelBuilder) -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng(self.rows * 31 + self.columns)
        depth = self.depth // self.groups
        shape = (self.channels, self.rows, self.columns, depth)
        if self.name == DEPTHWISE:
            shape = (1, self.rows, self.columns, self.channels)
        if self.dtype is DType.FLOAT32:
            filters = b.constant("filter", rng.standard_normal(shape).astype(_FLOAT))
            return filters, b.constant("bias", rng.standard_normal(self.channels).astype(_FLOAT))
        limit = 7 if self.weights is DType.INT4 else 127
        values = rng.integers(-limit, limit + 1, shape).astype(np.int8)
        fan_in = self.rows * self.columns * (1 if self.name == DEPTHWISE else depth)
        # Scales that keep the sums within the output's range, so that its bytes stay varied.
        scale = (rng.uniform(0.5, 1.0, self.channels) / (0.5 * limit * np.sqrt(fan_in))).astype(_FLOAT)
        quantization = per_channel(scale, 3 if self.name == DEPTHWISE else 0)
        wide = np.int64 if self.dtype is DType.INT16 else np.int32
        bias = b.constant(
            "bias", rng.integers(-2000, 2000, self.channels).astype(wide), per_channel(scale * _FLOAT(0.05), 0)
        )
        if self.weights is DType.INT4:
            return _int4(b, values, quantization), bias
        return b.constant("filter", values, quantization), bias


def _int4(b: ModelBuilder, values: npt.NDArray[np.int8], quantization: Quantization) -> Tensor:
    """Two values a byte, the first in the low half."""
    nibbles = np.append(values.reshape(-1), [0] * (values.size % 2)).astype(np.uint8) & 15
    buffer = Buffer((nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8))
    b.model.buffers.append(buffer)
    return b.graph.add_tensor(Tensor("filter", values.shape, DType.INT4, buffer, quantization))


def library_windows() -> list[Window]:
    """A grid over every path of CMSIS-NN and esp-nn: kernels, strides, paddings, channels that are no multiple of 4."""
    return [w for w in [*_convolutions(), *_depthwise(), *_pools(), *_other_types()] if w.is_possible]


def _convolutions() -> list[Window]:
    found = [
        Window(CONV, 6, 6, depth, channels, 1, 1, stride)
        for depth, channels in ((4, 8), (8, 8), (16, 8), (8, 16), (3, 5), (7, 3), (24, 24), (64, 64))
        for stride in (1, 2)
    ]
    found += [
        Window(CONV, 7, 6, depth, channels, 3, 3, stride, 1, padding)
        for depth, channels in ((3, 8), (8, 8), (8, 16), (16, 8), (5, 7), (16, 17))
        for stride in (1, 2)
        for padding in (SAME, VALID)
    ]
    found += [
        Window(CONV, 1, 20, depth, channels, 1, columns, stride, 1, padding)
        for depth, channels in ((8, 8), (8, 12), (16, 8))
        for columns in (3, 5)
        for stride in (1, 2)
        for padding in (SAME, VALID)
    ]
    found += [Window(CONV, 8, 8, 4, 6, 5, 5), Window(CONV, 10, 8, 1, 8, 10, 4, 2), Window(CONV, 20, 1, 8, 8, 3, 1)]
    found += [
        Window(CONV, 8, 8, 4, 4, 3, 3, 1, 2),
        Window(CONV, 8, 8, 8, 8, 1, 1, 1, 2),
        Window(CONV, 1, 1, 32, 16, 1, 1),
    ]
    found += [
        Window(CONV, 6, 6, depth, channels, k, k, s, groups=2)
        for depth, channels in ((8, 8), (6, 10), (12, 6))
        for k in (1, 3)
        for s in (1, 2)
    ]
    return found + [Window(CONV, 5, 5, 8, 8, k, k, s, batches=2) for k in (1, 3) for s in (1, 2)]


def _depthwise() -> list[Window]:
    found = [
        Window(DEPTHWISE, 7, 6, depth, depth, kernel, kernel, stride, 1, padding)
        for depth in (5, 8, 16, 20)
        for kernel in (3, 5)
        for stride in (1, 2)
        for padding in (SAME, VALID)
    ]
    found += [Window(DEPTHWISE, 4, 4, 64, 64, 3, 3), Window(DEPTHWISE, 12, 1, 16, 16, 5, 1, 1, 1, VALID)]
    found += [Window(DEPTHWISE, 3, 3, depth, depth, k, k) for depth in (124, 125, 130) for k in (2, 3)]
    found += [Window(DEPTHWISE, 1, 12, 16, 16, 1, 5), Window(DEPTHWISE, 8, 8, 8, 8, 3, 3, 1, 2)]
    found += [Window(DEPTHWISE, 6, 6, d, d * m, 3, 3, s) for d, m in ((4, 2), (3, 4), (5, 3)) for s in (1, 2)]
    found += [Window(DEPTHWISE, 8, 8, 1, c, k, k, s) for c in (8, 16) for k in (1, 3) for s in (1, 2)]
    found += [Window(DEPTHWISE, 10, 8, 1, 8, 10, 8, 2), Window(DEPTHWISE, 1, 20, 1, 8, 1, 5)]
    return found + [Window(DEPTHWISE, 5, 5, 8, 8, 3, 3, s, batches=2) for s in (1, 2)]


def _pools() -> list[Window]:
    found = [
        Window(name, 7, 6, depth, depth, kernel, kernel, stride, 1, padding)
        for name in (AVERAGE, MAXIMUM)
        for depth in (3, 8, 20)
        for kernel, stride in ((2, 2), (3, 1), (3, 2), (6, 1))
        for padding in (SAME, VALID)
    ]
    return found + [Window(name, 5, 5, 8, 8, 3, 3, batches=2) for name in (AVERAGE, MAXIMUM)]


def _other_types() -> list[Window]:
    found = []
    for dtype, weights in ((DType.INT16, DType.INT8), (DType.FLOAT32, DType.FLOAT32), (DType.INT8, DType.INT4)):
        found += [
            Window(CONV, 6, 6, 8, c, k, k, s, 1, SAME, 1, 1, dtype, weights)
            for c in (8, 16)
            for k in (1, 3)
            for s in (1, 2)
        ]
        found += [Window(DEPTHWISE, 6, 6, 8, 8, k, k, s, 1, SAME, 1, 1, dtype, weights) for k in (3, 5) for s in (1, 2)]
        found += [Window(DEPTHWISE, 6, 6, 4, 8, 3, 3, 1, 1, SAME, 1, 1, dtype, weights)]
        found += [Window(CONV, 1, 20, 8, 8, 1, 3, 1, 1, SAME, 1, 1, dtype, weights)]
    for dtype in (DType.INT16, DType.FLOAT32):
        found += [
            Window(n, 6, 6, 8, 8, 3, 3, s, 1, SAME, 1, 1, dtype, dtype) for n in (AVERAGE, MAXIMUM) for s in (1, 2)
        ]
    return found


KINDS = ("int8", "int16", "int4", "batched")
"""Of random operators: int16 activations, 4-bit filters, and int8 with two or three batches, beside plain int8."""


def random_windows(count: int, seed: int, kind: str = "int8") -> list[Window]:
    """``count`` random operators of a kind, of at most 4,000 values of input and of output."""
    rng = np.random.default_rng(seed)
    found: list[Window] = []
    while len(found) < count:
        window = _of_kind(_random_window(rng), kind, rng)
        if kind == "int4" and window.name in (AVERAGE, MAXIMUM):
            continue
        if not window.is_possible or min(window.output_shape) < 1:
            continue
        sizes = window.batches * window.height * window.width * window.depth, int(np.prod(window.output_shape))
        if max(sizes) <= 4000:
            found.append(window)
    return found


def _of_kind(window: Window, kind: str, rng: np.random.Generator) -> Window:
    if kind == "int16":
        weights = DType.INT16 if window.name in (AVERAGE, MAXIMUM) else DType.INT8
        return replace(window, dtype=DType.INT16, weights=weights)
    if kind == "int4":
        return replace(window, weights=DType.INT4)
    return replace(window, batches=int(rng.integers(2, 4))) if kind == "batched" else window


def _random_window(rng: np.random.Generator) -> Window:
    name = str(rng.choice((CONV, CONV, CONV, CONV, DEPTHWISE, DEPTHWISE, DEPTHWISE, AVERAGE, MAXIMUM)))
    height, width, depth, channels = (int(n) for n in rng.integers(1, (10, 10, 25, 25)))
    rows, columns, stride = (int(n) for n in rng.integers(1, (5, 5, 4)))
    shape = int(rng.integers(8))
    if shape in (0, 1):
        rows = columns = 1
    if shape in (2, 3):
        rows = columns = 3
    if shape == 4:
        height, rows, width = 1, 1, int(rng.integers(4, 31))
    dilation = 2 if stride == 1 and name in (CONV, DEPTHWISE) and rng.integers(5) == 0 else 1
    if name == DEPTHWISE:
        if rng.integers(10) == 0:
            depth, height, width = int(rng.integers(60, 141)), min(height, 4), min(width, 4)
        if rng.integers(6) == 0:
            depth = 1
        channels = depth * (int(rng.integers(1, 5)) if depth < 60 and rng.integers(3) == 0 else 1)
    elif name != CONV:
        channels = depth
    return Window(name, height, width, depth, channels, rows, columns, stride, dilation, int(rng.integers(2)))
