"""A plan proved for all inputs: the same run, with the contents of every byte of the arena.

Each byte holds a function of the element that was written there last. Where an operator reads bytes of a tensor, they
must hold the tensor's own value; else something has overwritten them. So nothing need be known of lifetimes, views,
storages or loops: bytes that are copied onto themselves keep their values.

Order within one kernel is the caller's word: whether an operator may write its output over an input that it
still reads, at some distance. A kernel that writes a byte which holds the same value already harms nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.model import Model, Operator, Tensor
from .equality import inputs_of
from .outcome import BrokenModelError, Notes, Proof, Status, UndecidedError
from .ring import Keys, Ring, U, Value, is_ring
from .run import Pair, Run

Range = tuple[int, int]
Permits = Callable[[Operator, Tensor, Tensor, int], bool]
"""A test whether an operator may write an output over an input that it reads, by their distance in bytes."""


def nothing_permitted(operator: Operator, read: Tensor, written: Tensor, distance: int) -> bool:
    """For unknown kernels."""
    del operator, read, written, distance
    return False


@dataclass(frozen=True)
class Places:
    """The offsets of tensors of all subgraphs, in bytes from the start of the arena; others have bytes of their own.

    ``scratch``: ranges that an operator's kernel writes while it runs. ``ties``: outputs of the model, by position,
    each with the input that has its value in the next invocation; nobody copies it.
    """

    offsets: Mapping[Tensor, int]
    permits: Permits = nothing_permitted
    scratch: Mapping[Operator, Sequence[Range]] = field(default_factory=dict)
    ties: Sequence[tuple[int, int]] = ()

    def range_of(self, tensor: Tensor) -> Range:
        """Return the bytes of a tensor that has a place."""
        return self.offsets[tensor], self.offsets[tensor] + tensor.nbytes


def prove_plan(model: Model, places: Places, *, invocations: int = 2, seed: bytes | None = None) -> Proof:
    """Prove that every operator reads the right bytes, over some invocations in sequence.

    The second invocation finds the bytes of the first one in memory, as any later one does. A plan that fails is
    DIFFERENT, with the operator and tensor in ``reason``.
    """
    keys, notes = Keys(seed), Notes()
    memory = _Memory(places, keys)
    run = Run(model, keys, notes, observer=memory)
    outputs: list[Value] = []
    try:
        for invocation in range(invocations):
            inputs: list[Value] = list(inputs_of(keys, model.main.inputs, invocation))
            for output, at in places.ties if invocation else ():
                inputs[at] = outputs[output]
            memory.tied = {model.main.inputs[at] for _, at in places.ties} if invocation else set()
            outputs = run.invoke(inputs)
    except BrokenModelError as error:
        status = Status.UNKNOWN if _is_broken_anywhere(model, keys) else Status.DIFFERENT
        return Proof(status, reason=str(error))
    except UndecidedError as error:
        return Proof(Status.UNKNOWN, reason=str(error))
    return Proof(Status.PROVED, facts=tuple(sorted(notes.facts)), elements=notes.elements + memory.bytes_seen)


def _is_broken_anywhere(model: Model, keys: Keys) -> bool:
    """Return whether a model is broken at any offsets, so that the plan is not the cause."""
    try:
        Run(model, keys).invoke(inputs_of(keys, model.main.inputs))
    except (BrokenModelError, UndecidedError):
        return True
    return False


@dataclass
class _Memory:
    """The arena as an observer of a run."""

    places: Places
    keys: Keys
    tied: set[Tensor] = field(default_factory=set)
    bytes_seen: int = 0
    _unwritten: Ring = field(default_factory=lambda: np.zeros(0, U))
    _known: dict[int, tuple[Value, Ring]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ends = [self.places.range_of(tensor)[1] for tensor in self.places.offsets]
        ends += [end for ranges in self.places.scratch.values() for _, end in ranges]
        self._bytes = self.keys.random((max(ends, default=0),), "before")
        self._fresh = 0

    def given(self, pairs: Sequence[Pair]) -> None:
        self.put([pair for pair in pairs if pair[0] not in self.tied])
        self._hold("the application", pairs, "gives")

    def read(self, who: str, pairs: Sequence[Pair]) -> None:
        self._hold(who, pairs, "reads")

    def ran(self, operator: Operator, read: Sequence[Pair], written: Sequence[Pair]) -> None:
        self._reads(operator, read, written)
        read, written = self._placed(read), self._placed(written)
        self._scratch(operator, [*read, *written])
        before = self._bytes.copy() if read and written else self._bytes
        for tensor, value in written:
            low, end = self.places.range_of(tensor)
            new = self._bytes_of(tensor, value)
            stays = np.zeros(new.size, bool)
            for source, held in read:
                stays |= self._over(operator, source, held, tensor, new)
            untouched = self._is_unwritten(tensor, value, stays)
            self._bytes[low:end] = np.where(untouched, before[low:end], new)
        self._hold("it", written, "writes")

    def _reads(self, operator: Operator, read: Sequence[Pair], written: Sequence[Pair]) -> None:
        """Look at the bytes that a kernel reads: a SLICE reads its box, an update in place nothing but the update."""
        if operator.name == "SLICE" and len(read) == 3 and not any(is_ring(value) for _, value in read[1:]):
            begin = read[1][1].ravel().tolist()
            box = np.zeros(read[0][0].shape, bool)
            box[tuple(slice(at, at + size) for at, size in zip(begin, written[0][0].shape, strict=True))] = True
            self._hold("it", read[:1], "reads", box)
            read = read[1:]
        elif self._updates_in_place(operator):
            read = read[1:]
        self._hold("it", read, "reads")

    def _updates_in_place(self, operator: Operator) -> bool:
        """Return whether it updates bytes in place: the kernel then writes the update only."""
        if operator.name != "DYNAMIC_UPDATE_SLICE" or operator.inputs[0] is None:
            return False
        places = [self.places.offsets.get(tensor) for tensor in (operator.inputs[0], operator.outputs[0])]
        return places[0] is not None and places[0] == places[1]

    def _over(self, operator: Operator, source: Tensor, held: Value, output: Tensor, new: Ring) -> Any:
        """Return the bytes of an output that a source has at the same place, where no rule is broken."""
        (first, last), (low, end) = self.places.range_of(source), self.places.range_of(output)
        stays = np.zeros(new.size, bool)
        start, stop = max(first, low), min(last, end)
        if start < stop:
            same = self._bytes_of(source, held)[start - first : stop - first] == new[start - low : stop - low]
            stays[start - low : stop - low] = same
            is_same_update = self._updates_in_place(operator) and source is operator.inputs[0]
            if not same.all() and not is_same_update and not self.places.permits(operator, source, output, first - low):
                raise BrokenModelError(
                    f"it writes '{output.name}' at {low} over '{source.name}' at {first}, which it still reads"
                )
        return stays

    def _scratch(self, operator: Operator, pairs: Sequence[Pair]) -> None:
        for low, end in self.places.scratch.get(operator, ()):
            for tensor, _ in pairs:
                first, last = self.places.range_of(tensor)
                if max(first, low) < min(last, end):
                    raise BrokenModelError(f"its scratch [{low}, {end}) lies on '{tensor.name}'")
            self._bytes[low:end] = self._garbage(end - low)

    def copied(self, source: Tensor, target: Tensor, value: Value) -> None:
        if target not in self.places.offsets or not target.nbytes:
            return
        low, end = self.places.range_of(target)
        if source in self.places.offsets:
            first, last = self.places.range_of(source)
            if first == low:
                return  # onto itself: overwritten bytes of it stay so
            self._hold("it", [(source, value)], "copies")
            if max(first, low) < min(last, end):
                raise BrokenModelError(f"it copies '{source.name}' at {first} onto a part of itself at {low}")
        self.put([(target, value)])

    def put(self, pairs: Sequence[Pair]) -> None:
        for tensor, value in self._placed(pairs):
            low, end = self.places.range_of(tensor)
            self._bytes[low:end] = self._bytes_of(tensor, value)

    def unwritten(self, value: Ring) -> None:
        self._unwritten = np.sort(np.concatenate((self._unwritten, value.ravel())))

    def fork(self) -> Any:
        return self._bytes.copy()

    def back_to(self, memory: Any) -> None:
        self._bytes = memory

    def join(self, memory: Any) -> None:
        self._bytes = np.where(self._bytes == memory, memory, self._garbage(self._bytes.size))

    def _garbage(self, count: int) -> Ring:
        self._fresh += 1
        return self.keys.random((count,), "overwritten", self._fresh)

    def _placed(self, pairs: Sequence[Pair]) -> list[Pair]:
        return [(tensor, value) for tensor, value in pairs if tensor in self.places.offsets and tensor.nbytes]

    def _hold(self, who: str, pairs: Sequence[Pair], does: str, elements: Any = None) -> None:
        """Look whether the bytes of tensors hold their values; ``elements``: which of the elements, None for all."""
        for tensor, value in self._placed(pairs):
            low, end = self.places.range_of(tensor)
            wrong = self._bytes[low:end] != self._bytes_of(tensor, value)
            if elements is not None:
                wrong &= np.repeat(elements.ravel(), tensor.dtype.arena_bytes)
            wrong &= ~self._is_unwritten(tensor, value, wrong)
            if wrong.any():
                byte = int(np.argmax(wrong))
                raise BrokenModelError(f"{who} {does} '{tensor.name}' at {low}, whose byte {byte} was overwritten")

    def _is_unwritten(self, tensor: Tensor, value: Value, which: Any) -> Any:
        """Return a mask of the bytes of elements that nothing has written: nobody may depend on them."""
        found = np.zeros(which.size, bool)
        at = np.flatnonzero(which)
        if at.size and self._unwritten.size:
            elements = self.keys.constant(value).ravel()[at // tensor.dtype.arena_bytes]
            nearest = np.searchsorted(self._unwritten, elements).clip(max=self._unwritten.size - 1)
            found[at] = self._unwritten[nearest] == elements
        return found

    def _bytes_of(self, tensor: Tensor, value: Value) -> Ring:
        """Return the contents of a tensor's bytes: functions of its elements."""
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        flat, size = self.keys.constant(value).ravel(), tensor.dtype.arena_bytes
        found = np.stack([self.keys.hash(flat, "byte", size, number) for number in range(size)], -1).ravel()
        self.bytes_seen += found.size
        if len(self._known) > 64:
            self._known.clear()
        self._known[id(value)] = (value, found)
        return found
