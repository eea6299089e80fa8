"""One operator as its kernel is called: its operands' values, and the functions that it may be of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...model.ir.model import DType, Operator, OperatorOptions, Tensor
from .outcome import BrokenModelError, Notes, UndecidedError
from .ring import FIELD, WRAPPING, Arithmetic, Keys, Known, Ring, U, Value, is_ring

FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.BFLOAT16)
_OF_BYTES = "float64 float32 float16 int8 int16 int32 int64 uint8 uint16 uint32 bool"
PLAIN: Mapping[DType, np.dtype[Any]] = {
    each: np.dtype(each.label).newbyteorder("<") for each in DType if each.label in _OF_BYTES.split()
}
"""Of elements that are bytes in the file as in the arena."""
_PACKED = {DType.INT4: 4, DType.INT2: 2}
Quant = tuple[tuple[float, ...], tuple[int, ...], int]
"""Scales, zero points and the axis of them: all that kernels use of a quantization."""


class CoarseError(Exception):
    """A kernel is not followed for these operands: its outputs are functions of all elements of all its inputs."""


def constant_of(tensor: Tensor) -> Value:
    """The values that the file has for a tensor. Raises UndecidedError for a sparse one, or a type without values."""
    data = tensor.buffer.data
    if data is None or tensor.extras.get("sparsity") is not None:
        raise UndecidedError(f"the constant '{tensor.name}' is sparse")
    raw = np.ascontiguousarray(data)
    if tensor.dtype in _PACKED:
        return _unpacked(raw, _PACKED[tensor.dtype], tensor)
    plain = PLAIN.get(tensor.dtype)
    if plain is None:
        raise UndecidedError(f"the constant '{tensor.name}' is of type {tensor.dtype.label}")
    held = raw[: tensor.elements * plain.itemsize]
    return np.frombuffer(held.tobytes(), plain).reshape(tensor.shape)


def _unpacked(raw: Known, bits: int, tensor: Tensor) -> Known:
    """Signed numbers of less than a byte, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    unsigned = ((raw[:, None] >> shifts) & np.uint8((1 << bits) - 1)).ravel()[: tensor.elements].astype(np.int8)
    signed = np.where(unsigned >= 1 << (bits - 1), unsigned - (1 << bits), unsigned)
    found: Known = signed.astype(np.int8).reshape(tensor.shape)
    return found


def quantization_of(tensor: Tensor | None) -> Quant:
    """Return the part of a tensor's quantization that matters; equal scales and zero points count once."""
    found = None if tensor is None else tensor.quantization
    if found is None or not found.scale.size:
        return (), (), 0
    scales, points = tuple(map(float, found.scale)), tuple(map(int, found.zero_point))
    scales = scales[:1] if len(set(scales)) == 1 else scales
    points = points[:1] if len(set(points)) == 1 else points
    return scales, points, found.axis if max(len(scales), len(points)) > 1 else 0


def zero_point(tensor: Tensor) -> int:
    """Return the integer that stands for 0. Raises CoarseError where there are several."""
    points = quantization_of(tensor)[1]
    if len(points) > 1:
        raise CoarseError
    return points[0] if points else 0


def is_float(tensor: Tensor) -> bool:
    """Return whether its elements are floats."""
    return tensor.dtype in FLOATS


def any_value(keys: Keys, tensor: Tensor, *what: object) -> Ring:
    """Return a value that stands for any that a tensor may have."""
    found = keys.random(tensor.shape, *what)
    return keys.as_float(found) if is_float(tensor) else found


def plain(value: Any) -> Any:
    """Return an option's value as numbers, strings and tuples."""
    if isinstance(value, np.ndarray):
        return tuple(value.ravel().tolist())
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    if isinstance(value, np.generic):
        return value.item()
    return tuple(sorted((k, plain(v)) for k, v in vars(value).items())) if hasattr(value, "__dict__") else value


def _options(options: OperatorOptions | None, without: Sequence[str]) -> Any:
    if options is None:
        return None
    return options.kind, tuple(sorted((k, plain(v)) for k, v in options.fields.items() if k not in without))


@dataclass
class Call:
    """An operator, and the value of each of its inputs; None for one that is missing.

    ``cache``: values computed from constants, by operator and name: a loop calls one operator many times. ``bits``:
    that a difference of two of its sums may lose.
    """

    operator: Operator
    values: Sequence[Value | None]
    keys: Keys
    notes: Notes
    cache: dict[Any, Any] = field(default_factory=dict)
    bits: float = 2.0

    @property
    def output(self) -> Tensor:
        """The first output."""
        return self.operator.outputs[0]

    @property
    def is_float(self) -> bool:
        """Return whether the first output consists of floats."""
        return is_float(self.output)

    @property
    def arithmetic(self) -> Arithmetic:
        """Return how its sums are computed."""
        return FIELD if self.is_float and not self.keys.ordered else WRAPPING

    def has(self, slot: int) -> bool:
        """Return whether there is such an input."""
        return slot < len(self.values) and self.values[slot] is not None

    def tensor(self, slot: int) -> Tensor:
        """Return an input that the kind cannot do without. Raises BrokenModelError where it is missing."""
        found = self.operator.operand(slot)
        if found is None:
            raise BrokenModelError(f"input {slot} is missing")
        return found

    def value(self, slot: int) -> Value:
        """Return the value of an input, known or not."""
        self.tensor(slot)
        found = self.values[slot]
        assert found is not None
        return found

    def ring(self, slot: int) -> Ring:
        """Return the value of an input as ring elements: integers as they are stored."""
        value = self.value(slot)
        if is_ring(value):
            return value
        found: Ring = self.kept(("ring", slot), lambda: self.keys.constant(value), slot)
        return found

    def addend(self, slot: int) -> Ring:
        """Return the same, as a term of a sum: of real numbers, -0 is 0."""
        x = self.ring(slot)
        if self.keys.ordered or not is_float(self.tensor(slot)):
            return x
        return np.where(x == self.keys.minus_zero, U(0), x)

    def centered(self, slot: int) -> Ring:
        """Return the same, of integers the distance from the zero point."""
        zero = zero_point(self.tensor(slot))
        return self.ring(slot) - U(zero % (1 << 64)) if zero else self.ring(slot)

    def known(self, slot: int) -> Known:
        """Return the values of an input that steers, flat. Raises CoarseError where they are not known."""
        value = self.value(slot)
        if is_ring(value) or value.dtype.kind == "f":
            raise CoarseError
        return value.astype(np.int64).ravel()

    def kept(self, name: Any, made: Callable[[], Any], slot: int | None = None) -> Any:
        """Return ``made()``, computed once per operator, or at every call if input ``slot`` is not a constant."""
        if slot is not None and not self.tensor(slot).is_constant:
            return made()
        key = (id(self.operator), name)
        if key not in self.cache:
            self.cache[key] = made()
        return self.cache[key]

    def option(self, name: str, default: Any = 0) -> Any:
        """Return an option of the operator."""
        return self.operator.option(name, default)

    def loses(self, bits: float) -> None:
        """Note how many bits a difference of two of its sums may have lost."""
        self.bits = max(self.bits, bits)

    def lean_on(self, *facts: str) -> None:
        """Note facts that the result rests on."""
        self.notes.facts.update(facts)

    def parameters(self, *without: str) -> int:
        """A word for all that an elementwise kernel knows: its kind, options, and its tensors' types and quantizations.

        ``without``: names of options that say nothing of values. Raises CoarseError where scales differ from channel to
        channel: then the function of an element depends on its place.
        """
        return int(self.kept(("parameters", without), lambda: self._parameters(without, True)))

    def _parameters(self, without: Sequence[str], by_element: bool) -> int:
        operator = self.operator
        sides = []
        for tensor in (*operator.inputs, *operator.outputs, *operator.intermediates):
            quantization = quantization_of(tensor)
            if by_element and max(len(quantization[0]), len(quantization[1])) > 1:
                raise CoarseError
            sides.append(None if tensor is None else (tensor.dtype.name, quantization))
        custom = None if operator.custom_options is None else operator.custom_options.tobytes()
        options = (_options(operator.options, without), _options(operator.options2, without), custom)
        return self.keys.word("kernel", operator.name, operator.opcode.label, options, tuple(sides))

    def hashed(self, x: Ring, word: int | Ring) -> Ring:
        """A function of each element that a word names."""
        found = self.keys.hash_by(x, U(word) if isinstance(word, int) else word, self.bits)
        return self.keys.as_float(found) if self.is_float else found

    def whole(self) -> list[Ring]:
        """Return the outputs as functions of all elements of all inputs, and of each element's place."""
        return [self._place(number, tensor, "whole") for number, tensor in enumerate(self.operator.outputs)]

    def state_after(self, slot: int) -> Ring:
        """Return the next value of a state that the operator reads at ``slot``."""
        return self._place(slot, self.tensor(slot), "state")

    def effect(self) -> Ring:
        """Return the side effect of the operator: a function of the arguments of its outputs."""
        return self.keys.hash(self._all("effect"), "effect", self._parameters((), False))

    def looped(self) -> list[Ring]:
        """The outputs of a loop; the values are those of its condition and body on values that stand for any, too."""
        total = self._all("loop")
        made = []
        for at, tensor in enumerate(self.operator.outputs):
            found = self.keys.hash(self.keys.random((tensor.elements,), at) + total, "loop").reshape(tensor.shape)
            made.append(self.keys.as_float(found) if is_float(tensor) else found)
        return made

    def _all(self, name: str) -> Ring:
        total = self.keys.random((1,), name)
        for slot, value in enumerate(self.values):
            if value is not None:
                total = self.keys.hash(total + self._digest(value), "input", slot, value.shape)
        return total

    def _digest(self, value: Value) -> Ring:
        """One element for all of a value; of constants it is computed once."""
        key = ("digest", id(value))
        if key in self.cache and self.cache[key][0] is value:
            found: Ring = self.cache[key][1]
            return found
        found = self.keys.digest(self.keys.constant(value).reshape(1, -1))
        if not is_ring(value):
            self.cache[key] = (value, found)  # which keeps the value, so that no other one has its number
        return found

    def _place(self, number: int, tensor: Tensor, name: str) -> Ring:
        shapes = tuple(None if each is None else each.shape for each in (*self.operator.inputs, *self.operator.outputs))
        word = self.keys.word(name, self._parameters((), False), shapes, number)
        found = self.keys.hash(self.keys.random((tensor.elements,), "place") + self._all(name), word)
        found = found.reshape(tensor.shape)
        return self.keys.as_float(found) if is_float(tensor) else found
