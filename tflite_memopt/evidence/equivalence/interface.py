"""One interface in two forms: that of the original, and the integers or channels last of the optimized model.

``optimize --io int8`` removes the QUANTIZE and DEQUANTIZE at the boundary, ``--io channels-last`` the TRANSPOSE. Here
numpy computes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import EquivalenceError, ErrorKind, UsageError
from ...model.ir.model import DType, Model, Signature, Tensor
from ...model.ir.tensors import Affine, affine_of, is_channels_last
from .adapter import Array, Sample
from .inputs import numpy_type

_MOST_STEPS = 2.0**30
"""Room for any zero point within an int32."""


@dataclass(frozen=True)
class ConvertedEnd:
    """An input or an output that is ``outer`` in the original and ``inner`` in the optimized model: integers, with
    channels last, or both.

    Of one that is converted, both are quantized with one scale, the same where both are integers.
    """

    outer: Tensor
    inner: Tensor

    @property
    def is_converted(self) -> bool:
        """Whether it has another type or quantization."""
        return _in_numbers(self.outer) != _in_numbers(self.inner)

    @property
    def is_turned(self) -> bool:
        """Whether it has its channels last, and had them first."""
        return is_channels_last(self.inner.shape, self.outer.shape)

    def given(self, values: Array) -> Array:
        """Return the optimized model's input for the original's. Raises UsageError as :meth:`quantized`."""
        values = self.quantized(values) if self.is_converted else values
        return np.ascontiguousarray(np.moveaxis(values, 1, -1)) if self.is_turned else values

    def taken(self, values: Array) -> Array:
        """Return the original's output for the optimized model's."""
        values = np.ascontiguousarray(np.moveaxis(values, -1, 1)) if self.is_turned else values
        return self.restored(values) if self.is_converted else values

    @property
    def step(self) -> float:
        """The distance of two neighboring values, in units of the original."""
        return _affine(self.inner).scale if self.outer.dtype is DType.FLOAT32 else 1.0

    def quantized(self, values: Array) -> Array:
        """Return the original's values after QUANTIZE.

        Source: TFLM reference/quantize.h, ``AffineQuantize``: a float32 division, rounded half away from zero, made an
        int32, clamped. Raises UsageError for a value that no int32 stands for, which is undefined there.
        """
        if self.outer.dtype is not DType.FLOAT32:
            return _clamped(
                values.astype(np.int64) - _affine(self.outer).zero_point + _affine(self.inner).zero_point, self.inner
            )
        with np.errstate(over="ignore"):  # infinite quotients are refused next
            quotient = (values / np.float32(_affine(self.inner).scale)).astype(np.float64)
        if not np.all(np.abs(quotient) < _MOST_STEPS):
            raise UsageError(
                f"'{self.outer.name}' has a value that QUANTIZE does not define: not a number, or beyond 2**30 steps",
                ErrorKind.SAMPLES,
            )
        # In float64 the half is added without a rounding of its own.
        rounded = np.trunc(quotient + np.copysign(0.5, quotient))
        return _clamped(rounded + _affine(self.inner).zero_point, self.inner)

    def restored(self, values: Array) -> Array:
        """Return the optimized model's values after DEQUANTIZE, or after QUANTIZE between integers.

        Source: TFLM reference/dequantize.h: ``scale * (q - zero_point)``, exact until it is rounded to float32.
        """
        steps = values.astype(np.int64) - _affine(self.inner).zero_point
        if self.outer.dtype is DType.FLOAT32:
            with np.errstate(over="ignore"):  # infinite there too
                return (_affine(self.inner).scale * steps).astype(np.float32)
        return _clamped(steps + _affine(self.outer).zero_point, self.outer)


@dataclass(frozen=True)
class Interface:
    """The inputs and outputs, by position, whose types or shapes are not the same in both models."""

    inputs: Mapping[int, ConvertedEnd]
    outputs: Mapping[int, ConvertedEnd]

    def given(self, sample: Sample) -> Sample:
        """Return the optimized model's inputs for the original's."""
        return [self.inputs[at].given(array) if at in self.inputs else array for at, array in enumerate(sample)]

    def restored_outputs(self, outputs: Mapping[int, list[Array]]) -> dict[int, list[Array]]:
        """Return the outputs of the optimized model, by position and sample, as the original gives them."""
        return {
            at: [self.outputs[at].taken(array) for array in arrays] if at in self.outputs else arrays
            for at, arrays in outputs.items()
        }

    @property
    def steps(self) -> dict[int, float]:
        """By position, one step of the outputs that are integers in the optimized model only."""
        return {at: port.step for at, port in self.outputs.items() if port.is_converted}

    @property
    def is_converted(self) -> bool:
        """Whether any has another type or quantization."""
        return any(port.is_converted for port in (*self.inputs.values(), *self.outputs.values()))

    @property
    def turned(self) -> frozenset[str]:
        """The names of those with channels last."""
        return frozenset(port.outer.name for port in (*self.inputs.values(), *self.outputs.values()) if port.is_turned)


SAME = Interface({}, {})


def steps_of(model: Model) -> dict[int, float]:
    """Return one step, by position, of the float outputs that DEQUANTIZE makes of integers."""
    makers = {at: tensor.producer for at, tensor in enumerate(model.main.outputs)}
    sources = {at: each.required(0) for at, each in makers.items() if each is not None and each.name == "DEQUANTIZE"}
    return {at: found.scale for at, source in sources.items() if (found := affine_of(source)) is not None}


def interface_between(original: Model, optimized: Model) -> Interface:
    """Return the differences of the interfaces. Raises EquivalenceError if the new one is not the same in integers, or
    with channels last."""
    inputs = _ports(original.main.inputs, optimized.main.inputs, "input")
    return Interface(inputs, _ports(original.main.outputs, optimized.main.outputs, "output"))


def _ports(outer: tuple[Tensor, ...], inner: tuple[Tensor, ...], side: str) -> dict[int, ConvertedEnd]:
    if len(outer) != len(inner):
        raise EquivalenceError(
            f"the optimized model has {len(inner)} {side}s, the original {len(outer)}", ErrorKind.INTERFACE
        )
    found = {}
    for at, (before, after) in enumerate(zip(outer, inner, strict=True)):
        is_same = before.shape == after.shape
        if is_same and _in_numbers(before) == _in_numbers(after):
            continue
        end = ConvertedEnd(before, after)
        if not (is_same or end.is_turned) or (end.is_converted and not _same_in_integers(before, after)):
            raise EquivalenceError(
                f"{side} {at} '{before.name}' is not the original's in other integers or with channels last",
                ErrorKind.INTERFACE,
            )
        found[at] = end
    return found


def _in_numbers(tensor: Tensor) -> tuple[DType, Affine | None]:
    """What the elements mean."""
    return tensor.dtype, affine_of(tensor)


def _same_in_integers(outer: Tensor, inner: Tensor) -> bool:
    before, after = affine_of(outer), affine_of(inner)
    if after is None or numpy_type(inner.dtype).kind not in "iu":
        return False
    return outer.dtype is DType.FLOAT32 or (before is not None and before.scale == after.scale)


def _affine(tensor: Tensor) -> Affine:
    found = affine_of(tensor)
    assert found is not None
    return found


def _clamped(values: Array, tensor: Tensor) -> Array:
    wanted = numpy_type(tensor.dtype)
    info = np.iinfo(wanted)
    return np.clip(values, info.min, info.max).astype(wanted)


def interface_differences(before: Model, after: Model) -> tuple[str, ...]:
    """Return how names, quantization and signatures of the two entry graphs' inputs and outputs differ."""
    return (*named_otherwise(before, after), *_signatures(before, after))


def named_otherwise(before: Model, after: Model) -> Iterator[str]:
    """Yield how names and quantization of inputs and outputs differ; those that ``after`` has besides are its own."""
    one, other = before.main, after.main
    for side, old, new in (("input", one.inputs, other.inputs), ("output", one.outputs, other.outputs)):
        for at, (a, b) in enumerate(zip(old, new, strict=False)):
            if a.name != b.name:
                yield f"{side} {at} is called '{a.name}' in one, '{b.name}' in the other"
            elif affine_of(a) != affine_of(b):
                yield f"{side} {at} '{a.name}' is quantized otherwise: {_scale(a)} in one, {_scale(b)} in the other"


def _scale(tensor: Tensor) -> str:
    found = affine_of(tensor)
    return "not at all" if found is None else f"scale {found.scale:g}, zero point {found.zero_point}"


def _signatures(before: Model, after: Model) -> Iterator[str]:
    old, new = ({each.key: each for each in model.signatures or ()} for model in (before, after))
    if set(old) != set(new):
        yield f"the signatures are {sorted(old)} in one, {sorted(new)} in the other"
        return
    for key, signature in old.items():
        if _bindings(signature) != _bindings(new[key]):
            yield f"signature '{key}' gives other names to inputs or outputs, or names others"


def _bindings(signature: Signature) -> tuple[frozenset[tuple[str, int]], ...]:
    graph = signature.graph
    sides = ((signature.inputs, graph.inputs), (signature.outputs, graph.outputs))
    return tuple(
        frozenset((name, next((at for at, each in enumerate(ports) if each is tensor), -1)) for name, tensor in bound)
        for bound, ports in sides
    )
