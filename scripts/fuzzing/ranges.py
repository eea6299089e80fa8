"""Random networks of 8 bits, every tensor of every run inside of its interval: those of rewrites, those of the proof.

Networks have what intervals depend on: fused activations, scales for each channel, scales and zero points at the ends
of what there is, padding, copies to another quantization, weights of 4 bits and activations of 16 between them, and
biases that put a channel at a clamp, whatever the input. Every tensor is an output, so that TFLM shows it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.model_builder import ModelBuilder
from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.adapter import OPTIMIZED_KERNELS, REFERENCE, ModelRun, RunJob, Sample
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.evidence.proof.ranges import stored_in
from tflite_memopt.model.analysis.ranges import ranges_of
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import DType, Model, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor, zero_of
from tflite_memopt.operators.window import POOLS

ARENA = 1 << 20
_LIMITS = ProcessLimits(20.0, 4 << 30)
_RUNS = (("litert", REFERENCE), ("litert", OPTIMIZED_KERNELS), ("tflm", REFERENCE))
Array = np.ndarray[Any, Any]
Ends = tuple[Array, Array]
"""The least and the most stored integer of each channel, both included."""
Derivation = Callable[[Model], Mapping[Tensor, Ends]]


def of_rewrites(model: Model) -> Mapping[Tensor, Ends]:
    """The intervals by which channels are deleted, as stored integers."""
    return {t: (zero_of(t) + each.low, zero_of(t) + each.high) for t, each in ranges_of(model.main).items()}


def of_the_proof(model: Model) -> Mapping[Tensor, Ends]:
    """The intervals by which the proof takes a channel for constant."""
    return {tensor: (each.least, each.most) for tensor, each in stored_in(model.main).items()}


DERIVATIONS: Mapping[str, Derivation] = {"rewrites": of_rewrites, "proof": of_the_proof}


@dataclass
class Tried:
    """What was seen: by derivation the tensors that it follows and those with a constant channel; what was outside."""

    networks: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    tensors: Counter[str] = field(default_factory=Counter)
    followed: Counter[str] = field(default_factory=Counter)
    constant: Counter[str] = field(default_factory=Counter)
    outside: list[str] = field(default_factory=list)


def network(number: int, seed: int) -> tuple[Model, list[Sample]]:
    """A network of up to six operators, every computed tensor an output, and inputs that reach ends of intervals."""
    draw = random.Random(f"ranges {seed} {number}")
    b = _Layers(draw)
    x = b.quantized("x", (1, draw.randint(1, 4), draw.randint(1, 4), draw.randint(1, 5)), is_input=True)
    made = [x]
    for _ in range(draw.randint(1, 6)):
        source = made[-1] if draw.random() < 0.8 else draw.choice(made)
        made.append(draw.choice(_LAYERS)(b, source))
    model = b.finish(*dict.fromkeys(made[1:]))
    return model, _samples(x, b.first, np.random.default_rng(draw.getrandbits(32)))


def tried(count: int, first: int, seed: int) -> Tried:
    """Run networks on both wheels, LiteRT with both sorts of kernels."""
    found = Tried()
    with Interpreters(("litert", "tflm"), _LIMITS) as interpreters:
        for number in range(first, first + count):
            try:
                made, samples = network(number, seed)
                data = write_model(made)
                model = read_model(data)
                check_model(model)
            except MemoptError:
                found.runs["refused by our reader"] += 1
                continue
            found.networks += 1
            claims = {name: derive(model) for name, derive in DERIVATIONS.items()}
            for name, claim in claims.items():
                found.followed[name] += len(claim)
                found.constant[name] += sum(bool((low == high).any()) for low, high in claim.values())
            for runtime, kernels in _RUNS:
                run = interpreters[runtime].run(RunJob(data, samples, ARENA, kernels=kernels))
                label = runtime if runtime == "tflm" else f"{runtime}, {kernels}"
                found.runs[f"{label}: {'ran' if run.ran else 'refused'}"] += 1
                for name, claim in claims.items():
                    found.outside += [f"{number}: {label}: {name}: {each}" for each in outside(model, run, claim)]
            found.tensors.update(each.producer.name for each in model.main.outputs if each.producer is not None)
    return found


def outside(model: Model, run: ModelRun, claim: Mapping[Tensor, Ends]) -> list[str]:
    """Name the outputs of a run that have a value outside of what is claimed of its channel."""
    found = []
    for at, values in run.outputs.items() if run.ran else ():
        tensor = model.main.outputs[at]
        if tensor not in claim or not tensor.elements:
            continue
        low, high = claim[tensor]
        rows = np.stack(values).reshape(-1, tensor.shape[-1]).astype(np.int64)
        if (rows.min(0) < low).any() or (rows.max(0) > high).any():
            assert tensor.producer is not None
            found.append(f"{tensor.producer.name} '{tensor.name}': {rows.min(0)} to {rows.max(0)}, not {low} to {high}")
    return found


def _samples(x: Tensor, weights: Array | None, rng: np.random.Generator) -> list[Sample]:
    """Both ends, the zero point, ends at random, any values, and what makes sums of the first layer largest, least."""
    found = [np.full(x.shape, value) for value in (-128, 127, zero_of(x))]
    found += [np.where(rng.random(x.shape) < share, -128, 127) for share in (0.2, 0.5, 0.8)]
    found += [rng.integers(-128, 128, x.shape) for _ in range(3)]
    for row in [] if weights is None or weights.shape[-1] != x.shape[-1] else weights.reshape(-1, x.shape[-1])[:6]:
        found += [np.broadcast_to(np.where(row * sign > 0, 127, -128), x.shape) for sign in (1, -1)]
    return [[np.ascontiguousarray(each, np.int8)] for each in found]


class _Layers(ModelBuilder):
    """Makes layers with everything at random; ``first``: the weights of the first sum of products."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.draw = draw
        self.first: Array | None = None
        self.rng = np.random.default_rng(draw.getrandbits(32))

    def name(self) -> str:
        return f"t{len(self.graph.tensors)}"

    def scale(self) -> float:
        """Mostly that of trained networks; at times one at the end of what floats are."""
        wide = self.draw.random() < 0.1
        return float(np.float32(10 ** self.draw.uniform(*((-7, 5) if wide else (-2.5, -0.5)))))

    def point(self) -> int:
        return self.draw.choice((-128, -128, 127, 0, self.draw.randint(-128, 127)))

    def quantized(self, name: str, shape: Sequence[int], like: Tensor | None = None, is_input: bool = False) -> Tensor:
        """An activation of 8 bits; ``like``: of this quantization, mostly, where a converter writes it so."""
        fields: dict[str, Any] = {"scale": self.scale(), "zero_point": self.point()}
        if like is not None and self.draw.random() < 0.7:
            assert like.quantization is not None
            fields = {"scale": float(like.quantization.scale[0]), "zero_point": int(like.quantization.zero_point[0])}
        return (self.input if is_input else self.tensor)(name, shape, **fields)

    def operands(self, x: Tensor, y: Tensor, shape: tuple[int, ...], axis: int) -> tuple[Tensor, Tensor]:
        """Weights and a bias that puts each channel somewhere about a clamp, for some inputs or for all."""
        assert x.quantization is not None
        assert y.quantization is not None
        channels, bits = shape[axis], 4 if self.draw.random() < 0.1 else 8
        values = self.rng.integers(-(1 << (bits - 1)) + 1, 1 << (bits - 1), shape)
        values = np.where(self.rng.random(shape) < 0.2, 0, values)
        self.first = np.moveaxis(values, -1, 0)[:, None] if axis == 3 and self.first is None else self.first
        self.first = values if self.first is None else self.first
        count = channels if self.draw.random() < 0.6 else 1
        scale = np.asarray([self.scale() / 8 for _ in range(count)], np.float32)
        by_channel = np.moveaxis(values, axis, 0).reshape(channels, -1)
        ends = [-128 - zero_of(x), 127 - zero_of(x)]
        sums = np.stack([by_channel * end for end in ends])
        most, least = sums.max(0).sum(1), sums.min(0).sum(1)
        step = np.resize(scale, channels).astype(np.float64) * float(x.quantization.scale[0] / y.quantization.scale[0])
        targets = self.rng.choice((-300, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 100, 127, 300), channels)
        bias = np.where(self.rng.random(channels) < 0.5, targets / step - most, targets / step - least)
        bias = np.clip(np.where(self.rng.random(channels) < 0.2, 0, bias), -(2**31) + 1, 2**31 - 1).astype(np.int32)
        of_bias = Quantization((scale * x.quantization.scale[0]).astype(np.float32), np.zeros(count, np.int64), 0)
        return (
            self._weights_of(values, bits, Quantization(scale, np.zeros(count, np.int64), axis)),
            self.constant(f"{y.name}/bias", bias, of_bias),
        )

    def _weights_of(self, values: Array, bits: int, quantization: Quantization) -> Tensor:
        name = f"{self.name()}/weights"
        if bits == 8:
            return self.constant(name, values.astype(np.int8), quantization)
        flat = np.append(values.ravel(), [0] * (values.size % 2)).astype(np.int8).view(np.uint8) & 15
        packed = self.constant(name, (flat[0::2] | flat[1::2] << 4).astype(np.uint8), quantization)
        packed.shape, packed.dtype = values.shape, DType.INT4
        return packed

    def activation(self) -> int:
        return self.draw.choice((0, 0, 1, 1, 1, 2, 3, 3))


def _image(b: _Layers, x: Tensor) -> Tensor:
    return x if len(x.shape) == 4 else _reshaped(b, x, (1, 1, x.elements // x.shape[-1], x.shape[-1]))


def _reshaped(b: _Layers, x: Tensor, shape: Sequence[int]) -> Tensor:
    y = b.quantized(b.name(), shape, x)
    sizes = np.asarray(shape, np.int32)
    b.operator("RESHAPE", (x, b.constant(f"{y.name}/shape", sizes)), (y,), "ReshapeOptions", newShape=sizes)
    return y


def _convolved(b: _Layers, x: Tensor) -> Tensor:
    x = _image(b, x)
    kernel, padding, channels = b.draw.choice((1, 1, 2, 3)), b.draw.randint(0, 1), b.draw.randint(1, 6)
    kernel = min(kernel, *x.shape[1:3])
    size = [each if padding == 0 else each - kernel + 1 for each in x.shape[1:3]]
    fields = {"padding": padding, "strideH": 1, "strideW": 1, "fusedActivationFunction": b.activation()}
    if b.draw.random() < 0.5:
        y = b.quantized(b.name(), (1, *size, channels))
        operands = b.operands(x, y, (channels, kernel, kernel, x.shape[3]), 0)
        b.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", **fields)
        return y
    times = b.draw.choice((1, 1, 2))
    y = b.quantized(b.name(), (1, *size, times * x.shape[3]))
    operands = b.operands(x, y, (1, kernel, kernel, times * x.shape[3]), 3)
    b.operator("DEPTHWISE_CONV_2D", (x, *operands), (y,), "DepthwiseConv2DOptions", depthMultiplier=times, **fields)
    return y


def _dense(b: _Layers, x: Tensor) -> Tensor:
    units = b.draw.randint(1, 6)
    y = b.quantized(b.name(), (x.elements // x.shape[-1], units))
    operands = b.operands(x, y, (units, x.shape[-1]), 0)
    fields = {"fusedActivationFunction": b.activation()}
    b.operator("FULLY_CONNECTED", (x, *operands), (y,), "FullyConnectedOptions", **fields)
    return y


def _added(b: _Layers, x: Tensor) -> Tensor:
    same = [each for each in b.graph.tensors if each.shape == x.shape and each.dtype is DType.INT8]
    other = b.draw.choice([each for each in same if not each.is_constant])
    if b.draw.random() < 0.2:  # broadcast
        values = b.rng.integers(-128, 128, x.shape[-1:]).astype(np.int8)
        other = b.constant(f"{b.name()}/c", values, per_tensor(b.scale(), b.point()))
    y = b.quantized(b.name(), x.shape)
    b.operator("ADD", (x, other), (y,), "AddOptions", fusedActivationFunction=b.activation())
    return y


def _pooled(b: _Layers, x: Tensor) -> Tensor:
    x, name = _image(b, x), b.draw.choice(POOLS)
    taps, padding = min(2, *x.shape[1:3]), b.draw.randint(0, 1)
    size = [each if padding == 0 else each - taps + 1 for each in x.shape[1:3]]
    y = b.quantized(b.name(), (1, *size, x.shape[3]), x)
    fields = {"filterHeight": taps, "filterWidth": taps, "strideH": 1, "strideW": 1, "padding": padding}
    b.operator(name, (x,), (y,), "Pool2DOptions", fusedActivationFunction=b.activation(), **fields)
    return y


def _averaged(b: _Layers, x: Tensor) -> Tensor:
    x, keep = _image(b, x), b.draw.random() < 0.5
    y = b.quantized(b.name(), (1, 1, 1, x.shape[3]) if keep else (1, x.shape[3]))
    axes = b.constant(f"{y.name}/axes", np.asarray(b.draw.choice(((1, 2), (2, 1), (-3, -2))), np.int32))
    b.operator("MEAN", (x, axes), (y,), "ReducerOptions", keepDims=keep)
    return y


def _padded(b: _Layers, x: Tensor) -> Tensor:
    x = _image(b, x)
    around = [[0, 0], *([b.draw.randint(0, 1), b.draw.randint(0, 1)] for _ in range(2)), [0, b.draw.random() < 0.1]]
    amounts = np.asarray(around, np.int32)
    y = b.quantized(
        b.name(), [size + before + after for size, (before, after) in zip(x.shape, amounts, strict=True)], x
    )
    b.operator("PAD", (x, b.constant(f"{y.name}/around", amounts)), (y,), "PadOptions")
    return y


def _spread(b: _Layers, x: Tensor) -> Tensor:
    """RESHAPE: to rows, or to channels that repeat."""
    return _reshaped(b, x, b.draw.choice(((1, x.elements), (x.elements // x.shape[-1], x.shape[-1]))))


def _activated(b: _Layers, x: Tensor) -> Tensor:
    name = b.draw.choice(("RELU", "RELU6", "QUANTIZE"))
    y = b.quantized(b.name(), x.shape, x if name == "RELU6" else None)
    b.operator(name, (x,), (y,), "QuantizeOptions" if name == "QUANTIZE" else None)
    return y


def _in_16_bits(b: _Layers, x: Tensor) -> Tensor:
    """To 16 bits and back."""
    wide, y = b.tensor(b.name(), x.shape, DType.INT16, scale=b.scale()), b.quantized(f"{b.name()}b", x.shape)
    b.operator("QUANTIZE", (x,), (wide,), "QuantizeOptions")
    b.operator("QUANTIZE", (wide,), (y,), "QuantizeOptions")
    return y


_LAYERS: Sequence[Callable[[_Layers, Tensor], Tensor]] = (
    *(_convolved, _convolved, _convolved, _dense, _added, _added, _pooled, _averaged),
    *(_padded, _spread, _activated, _activated, _in_16_bits),
)
