"""Small networks whose peak no rows can cut: what a mean, a flattening or a tiny image makes of a wide tensor.

They are of the kinds that Stahl et al. (arXiv 2303.17878) tile: an embedding of text and its mean, keywords from a
spectrogram, the tail of a MobileNet; and an expansion on a tiny image. Weights are random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from scripts.makers.model_builder import ModelBuilder
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.making import RELU6
from tflite_memopt.ir.model import Model, Tensor
from tflite_memopt.ir.quantization import per_tensor


def text(words: int = 256, width: int = 64, vocabulary: int = 1000) -> Model:
    """A table of words, the mean of those of a text, two dense layers: int8."""
    b = ModelBuilder()
    ids = b.input("ids", (1, words), DType.INT32)
    values = np.random.default_rng(0).integers(-127, 128, (vocabulary, width)).astype(np.int8)
    table = b.constant("table", values, per_tensor(0.05, 0))
    embedded = b.tensor("embedded", (1, words, width))
    b.operator("GATHER", (table, ids), (embedded,), "GatherOptions", axis=0)
    mean = b.tensor("mean", (1, width), scale=0.01)
    b.operator("MEAN", (embedded, b.constant("axes", np.asarray([1], np.int32))), (mean,), "ReducerOptions")
    return b.finish(b.softmax(b.dense(b.dense(mean, 16), 4)))


def keywords(frames: int = 24, wide: int = 192) -> Model:
    """A spectrogram, separable convolutions, a wide one and the mean over all of it: int8."""
    b = ModelBuilder()
    x = b.conv(b.input("spectrogram", (1, 2 * frames, 12, 1)), 32, 3, 2)
    for _ in range(2):
        x = b.conv(b.depthwise(x), 32)
    pooled = _pooled(b, b.conv(x, wide))
    return b.finish(b.softmax(b.dense(b.reshape(pooled, (1, wide)), 12)))


def mobilenet_tail(side: int = 4, wide: int = 640) -> Model:
    """Separable convolutions down to a few pixels, then many channels for the classifier: int8."""
    b = ModelBuilder()
    x = b.conv(b.input("image", (1, 8 * side, 8 * side, 3)), 16, 3, 2)
    for channels in (48, 96):
        x = b.conv(b.depthwise(x, 3, 2), channels)
    pooled = _pooled(b, b.conv(x, wide))
    return b.finish(b.softmax(b.dense(b.reshape(pooled, (1, wide)), 10)))


def expansion(side: int = 3, channels: int = 64, times: int = 6) -> Model:
    """An inverted residual on a tiny image, its expansion as wide as MobileNetV2's: float32."""
    b = ModelBuilder()
    x = b.input("image", (1, side, side, channels), DType.FLOAT32)
    wide = _float_convolution(b, "CONV_2D", x, (channels * times, 1, 1, channels))
    wide = _float_convolution(b, "DEPTHWISE_CONV_2D", wide, (1, 3, 3, channels * times))
    return b.finish(_float_convolution(b, "CONV_2D", wide, (channels, 1, 1, channels * times)))


NETWORKS: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {"text": text, "keywords": keywords, "mobilenet_tail": mobilenet_tail, "expansion": expansion}
)


def _pooled(b: ModelBuilder, x: Tensor) -> Tensor:
    """The mean of an image, as Keras' GlobalAveragePooling2D is converted."""
    mean = b.tensor(f"mean{len(b.graph.operators)}", (1, 1, 1, x.shape[3]))
    axes = b.constant(f"{mean.name}/axes", np.asarray([1, 2], np.int32))
    b.operator("MEAN", (x, axes), (mean,), "ReducerOptions", keepDims=True)
    return mean


def _float_convolution(b: ModelBuilder, name: str, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    axis = 3 if name == "DEPTHWISE_CONV_2D" else 0
    rng = np.random.default_rng(len(b.graph.operators))
    y = b.tensor(f"y{len(b.graph.operators)}", (*x.shape[:3], shape[axis]), DType.FLOAT32)
    weights = b.constant(f"{y.name}/weights", (rng.normal(size=shape) / 16).astype(np.float32))
    bias = b.constant(f"{y.name}/bias", np.zeros(shape[axis], np.float32))
    fields = {"strideH": 1, "strideW": 1, "fusedActivationFunction": RELU6}
    if axis:
        b.operator(name, (x, weights, bias), (y,), "DepthwiseConv2DOptions", depthMultiplier=1, **fields)
    else:
        b.operator(name, (x, weights, bias), (y,), "Conv2DOptions", **fields)
    return y
