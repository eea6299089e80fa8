"""Builds small models without a converter: for tests, benchmarks and the demo model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_memopt.model.ir.editor import RELU, SAME, VALID, GraphWriter
from tflite_memopt.model.ir.model import Buffer, DType, Graph, Model, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor


class ModelBuilder(GraphWriter):
    """Grows a model operator by operator; each layer method returns its output tensor."""

    def __init__(self, name: str = "main") -> None:
        self._empty = Buffer()
        graph = Graph(name)
        super().__init__(Model(3, "tflite_memopt", [graph], [], [self._empty]), graph)

    def new_graph(self, name: str) -> int:
        """Start another subgraph; the following calls build it. Returns its index."""
        self.graph = Graph(name)
        self.model.graphs.append(self.graph)
        return len(self.model.graphs) - 1

    def tensor(
        self, name: str, shape: Sequence[int], dtype: DType = DType.INT8, scale: float = 0.05, zero_point: int = 0
    ) -> Tensor:
        """An activation. Integer activations get a per-tensor quantization."""
        quantization = per_tensor(scale, zero_point) if dtype in (DType.INT8, DType.UINT8, DType.INT16) else None
        return self.graph.add_tensor(Tensor(name, tuple(shape), dtype, self._empty, quantization))

    def input(self, name: str, shape: Sequence[int], dtype: DType = DType.INT8, **quantization: Any) -> Tensor:
        """An activation that is the graph's next input."""
        tensor = self.tensor(name, shape, dtype, **quantization)
        self.graph.inputs = (*self.graph.inputs, tensor)
        return tensor

    def finish(self, *outputs: Tensor) -> Model:
        """Declare the present graph's outputs and return the model."""
        self.graph.outputs = outputs
        return self.model

    def conv(
        self,
        x: Tensor,
        channels: int,
        kernel: int = 1,
        stride: int = 1,
        padding: int = SAME,
        activation: int = RELU,
        seed: int = 0,
    ) -> Tensor:
        """int8 CONV_2D with random per-channel weights; ``x`` is NHWC, the kernel square."""
        depth = x.shape[3]
        weights = (channels, kernel, kernel, depth)
        y = self.tensor(f"conv{len(self.graph.operators)}", _spatial(x.shape, kernel, stride, padding, channels))
        filters, bias = self._weights(y.name, weights, 0, channels, seed)
        fields = {"padding": padding, "strideH": stride, "strideW": stride, "fusedActivationFunction": activation}
        self.operator("CONV_2D", (x, filters, bias), (y,), "Conv2DOptions", **fields)
        return y

    def depthwise(
        self, x: Tensor, kernel: int = 3, stride: int = 1, padding: int = SAME, multiplier: int = 1, seed: int = 0
    ) -> Tensor:
        """int8 DEPTHWISE_CONV_2D with random per-channel weights and a RELU."""
        channels = x.shape[3] * multiplier
        weights = (1, kernel, kernel, channels)
        y = self.tensor(f"depthwise{len(self.graph.operators)}", _spatial(x.shape, kernel, stride, padding, channels))
        filters, bias = self._weights(y.name, weights, 3, channels, seed)
        fields = {"padding": padding, "strideH": stride, "strideW": stride, "depthMultiplier": multiplier}
        fields["fusedActivationFunction"] = RELU
        self.operator("DEPTHWISE_CONV_2D", (x, filters, bias), (y,), "DepthwiseConv2DOptions", **fields)
        return y

    def average_pool(self, x: Tensor, kernel: int) -> Tensor:
        """AVERAGE_POOL_2D over ``kernel`` x ``kernel`` windows, stride ``kernel``, VALID."""
        y = self.tensor(f"pool{len(self.graph.operators)}", _spatial(x.shape, kernel, kernel, VALID, x.shape[3]))
        fields = {"padding": VALID, "strideH": kernel, "strideW": kernel}
        fields |= {"filterHeight": kernel, "filterWidth": kernel}
        self.operator("AVERAGE_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)
        return y

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """Elementwise sum of two tensors of one shape."""
        y = self.tensor(f"add{len(self.graph.operators)}", a.shape, a.dtype)
        self.operator("ADD", (a, b), (y,), "AddOptions")
        return y

    def concat(self, tensors: Sequence[Tensor], axis: int = 3) -> Tensor:
        """CONCATENATION along one axis; all inputs must have the same quantization."""
        shape = list(tensors[0].shape)
        shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
        y = self.tensor(f"concat{len(self.graph.operators)}", shape, tensors[0].dtype)
        self.operator("CONCATENATION", tensors, (y,), "ConcatenationOptions", axis=axis)
        return y

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """RESHAPE to a constant shape."""
        y = self.tensor(f"reshape{len(self.graph.operators)}", shape, x.dtype)
        new_shape = self.constant(f"{y.name}/shape", np.asarray(shape, dtype=np.int32))
        self.operator("RESHAPE", (x, new_shape), (y,), "ReshapeOptions", newShape=np.asarray(shape, dtype=np.int32))
        return y

    def dense(self, x: Tensor, units: int, seed: int = 0) -> Tensor:
        """int8 FULLY_CONNECTED of a [batch, depth] tensor, per-tensor weights."""
        y = self.tensor(f"dense{len(self.graph.operators)}", (x.shape[0], units))
        values = np.random.default_rng(seed).integers(-127, 128, (units, x.shape[1])).astype(np.int8)
        filters = self.constant(f"{y.name}/weights", values, per_tensor(0.01, 0))
        bias = self.constant(f"{y.name}/bias", np.zeros(units, np.int32), per_tensor(0.0005, 0))
        self.operator("FULLY_CONNECTED", (x, filters, bias), (y,), "FullyConnectedOptions")
        return y

    def softmax(self, x: Tensor) -> Tensor:
        """int8 SOFTMAX with the output quantization that TFLite requires (1/256, -128)."""
        y = self.tensor(f"softmax{len(self.graph.operators)}", x.shape, scale=1 / 256, zero_point=-128)
        self.operator("SOFTMAX", (x,), (y,), "SoftmaxOptions", beta=1.0)
        return y

    def _weights(self, name: str, shape: tuple[int, ...], axis: int, channels: int, seed: int) -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng(seed)
        values = rng.integers(-127, 128, shape).astype(np.int8)
        # Scales that keep sums of this many products within the output's range, so that bytes stay varied.
        fan_in = values.size // channels * (1 if axis == 0 else channels // max(shape[3], 1))
        scale = (rng.uniform(0.5, 1.0, channels) / (64 * np.sqrt(max(fan_in, 1)))).astype(np.float32)
        filters = self.constant(f"{name}/weights", values, per_channel(scale, axis))
        bias_values = rng.integers(-2000, 2000, channels).astype(np.int32)
        bias = self.constant(f"{name}/bias", bias_values, per_channel((scale * np.float32(0.05)), 0))
        return filters, bias


def per_channel(scale: npt.NDArray[np.float32], axis: int) -> Quantization:
    """One scale a channel, zero points 0."""
    return Quantization(scale.astype(np.float32), np.zeros(scale.size, np.int64), axis)


def _spatial(shape: Sequence[int], kernel: int, stride: int, padding: int, channels: int) -> tuple[int, ...]:
    trim = kernel - 1 if padding == VALID else 0
    return (shape[0], -(-(shape[1] - trim) // stride), -(-(shape[2] - trim) // stride), channels)
