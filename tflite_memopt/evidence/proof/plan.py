"""A plan proved for all inputs: the same run, with the contents of every byte of the arena.

Each byte holds a function of the element that was written there last. Where an operator reads bytes of a tensor, they
must hold the tensor's own value; else something has overwritten them. So nothing need be known of lifetimes, views,
storages or loops: bytes that are copied onto themselves keep their values.

What a kernel writes, and in which order it reads and writes, orders.py says. A kernel writes no more than its elements:
what it leaves unwritten stays what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...model.ir.model import Model, Operator, Tensor
from .equality import inputs_of, repeated
from .orders import KEPT, NEVER, UNKNOWN, WRITTEN, Order, order_of
from .outcome import BrokenModelError, Notes, Proof, Status, UndecidedError
from .ring import Keys, Ring, U, Value, is_ring
from .run import Observer, Pair, Run

Range = tuple[int, int]
ALIGNMENT = 16
"""Bytes, of TFLM's buffers (micro/memory_helpers.h, MicroArenaBufferAlignment): some cores fault on less."""
MOST_BYTES = 1 << 27
"""Of an arena that a proof follows, with eight bytes for each."""
_STEERING = 1 << 12
"""Elements of an operand that may steer a kernel, at most."""


@dataclass(frozen=True)
class Places:
    """The offsets of tensors of all subgraphs, in bytes from the start of the arena; others have bytes of their own.

    ``library``: the kernels, by the name of their profile (``orders.py``); of another name nothing is known.
    ``scratch``: ranges that an operator's kernel writes while it runs. ``ties``: outputs of the model, by position,
    each with the input that has its value in the next invocation; nobody copies it.
    """

    offsets: Mapping[Tensor, int]
    library: str = ""
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
    wrong = next((each for each, offset in places.offsets.items() if offset < 0 or offset % ALIGNMENT), None)
    if wrong is not None:
        said = f"'{wrong.name}' lies at {places.offsets[wrong]}, which is no multiple of {ALIGNMENT} from 0 on"
        return Proof(Status.DIFFERENT, reason=said)
    far = next((each for each in places.offsets if places.range_of(each)[1] > MOST_BYTES), None)
    if far is not None:
        said = f"'{far.name}' ends at {places.range_of(far)[1]:,} bytes, and no more than {MOST_BYTES:,} are followed"
        return Proof(Status.UNKNOWN, reason=said)
    return repeated(lambda keys: _proof(model, places, invocations, keys), Keys(seed))


def _proof(model: Model, places: Places, invocations: int, keys: Keys) -> Proof:
    notes = Notes()
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
    chance = keys.chance(notes.lost) + memory.bytes_seen * 2.0**-64
    return Proof(Status.PROVED, facts=tuple(sorted(notes.facts)), chance=min(1.0, chance))


def _is_broken_anywhere(model: Model, keys: Keys) -> bool:
    """Return whether a model is broken at any offsets, so that the plan is not the cause."""
    try:
        Run(model, keys).invoke(inputs_of(keys, model.main.inputs))
    except (BrokenModelError, UndecidedError):
        return True
    return False


@dataclass
class _Memory(Observer):
    """The arena as an observer of a run."""

    has_places = True

    places: Places
    keys: Keys
    tied: set[Tensor] = field(default_factory=set)
    bytes_seen: int = 0
    _unwritten: Ring = field(default_factory=lambda: np.zeros(0, U))
    _whole: dict[int, list[Ring]] = field(default_factory=dict)
    _known: dict[int, tuple[Value, Ring]] = field(default_factory=dict)
    _orders: dict[Any, Order | None] = field(default_factory=dict)
    _words: dict[int, Ring] = field(default_factory=dict)
    _lost: dict[tuple[int, Tensor, Tensor], Any] = field(default_factory=dict)
    _faulty: dict[Tensor, Operator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ranges = {tensor: self.places.range_of(tensor) for tensor in self.places.offsets if tensor.nbytes}
        ends = [end for _, end in self._ranges.values()]
        ends += [end for ranges in self.places.scratch.values() for _, end in ranges]
        self._bytes = self.keys.random((max(ends, default=0),), "before")
        self._fresh = 0

    def given(self, pairs: Sequence[Pair]) -> None:
        self.put([pair for pair in pairs if pair[0] not in self.tied])
        last = dict(pairs)  # of an input that is listed twice, what is given last stays
        self._hold("the application", [*last.items()], "gives")

    def read(self, who: str, pairs: Sequence[Pair]) -> None:
        self._hold(who, pairs, "reads")

    def ran(self, operator: Operator, read: Sequence[Pair], written: Sequence[Pair]) -> None:
        order = self._order(operator, dict(read))
        slots = (slot for slot, tensor in enumerate(operator.inputs) if tensor is not None)
        for slot, pair in zip(slots, read, strict=True):
            # A SLICE reads its box, an update in place nothing but the update.
            self._hold("it", [pair], "reads", None if order is None else order.reads.get(slot))
        placed, written = self._placed(read), self._placed(written)
        self._scratch(operator, [*placed, *written])
        is_faulty = order is not None and order.mask is not None and bool((order.mask == UNKNOWN).any())
        before = [self._place(tensor).copy() for tensor, _ in written]
        for (tensor, value), held in zip(written, before, strict=True):
            mask, place = self._mask(operator, order, placed, tensor, value, held), self._place(tensor)
            place[:] = self._bytes_of(tensor, value)
            if mask is None:
                continue
            np.copyto(place, held, where=mask == KEPT)
            if is_faulty:
                self._faulty[tensor] = operator
                np.copyto(place, self._garbage(place.size), where=mask == UNKNOWN)
        if not is_faulty:
            self._hold("it", written, "writes")

    def _place(self, tensor: Tensor) -> Ring:
        """Return the contents of the bytes of a tensor that has a place, as they are in memory."""
        low, end = self._ranges[tensor]
        return self._bytes[low:end]

    def _mask(
        self, operator: Operator, order: Order | None, read: Sequence[Pair], output: Tensor, value: Value, before: Ring
    ) -> Any:
        """Return what a kernel does to each byte of an output that holds ``before``; None: it writes all of them.

        ``read``: what it reads of tensors with a place.

            mask       WRITTEN                  KEPT                                    UNKNOWN
            after      a function of the value  the byte of ``before``                  a function of nothing else
            where      elsewhere                no write of the kernel reaches it, or   the order says so
                                                nothing has ever written the element
                                                and its bytes are copied onto themselves

        Raises BrokenModelError where a byte of an input is lost before it is read.
        """
        new, size = self._bytes_of(output, value), output.dtype.arena_bytes
        under = [(source, held) for source, held in read if _meet(self._ranges[source], self._ranges[output])]
        copied = [self._over(operator, order, source, held, output, new) for source, held in under]
        if not copied and (order is None or order.mask is None):
            return None
        mask = np.full(new.size, WRITTEN) if order is None or order.mask is None else np.repeat(order.mask, size)
        if copied:
            mask[self._is_unwritten(output, value, np.logical_or.reduce(copied) & (before != new))] = KEPT
        return mask

    def _order(self, operator: Operator, values: Mapping[Tensor, Value]) -> Order | None:
        """Return the order of a kernel: once for an operator whose operands that steer are constants."""
        inputs = [(slot, tensor) for slot, tensor in enumerate(operator.inputs) if tensor is not None]
        held = [(slot, tensor, values[tensor]) for slot, tensor in inputs]
        known = [each for each in held if not is_ring(each[2]) and each[2].dtype.kind == "i"]
        key = (operator, *(value.tobytes() for _, tensor, value in known if not tensor.is_constant))
        if key not in self._orders:
            steering = {slot: value.ravel().tolist() for slot, _, value in known if value.size <= _STEERING}
            self._orders[key] = order_of(self.places.library, operator, steering, self._is_in_place(operator))
        return self._orders[key]

    def _is_in_place(self, operator: Operator) -> bool:
        """Return whether the output lies exactly at the first input."""
        ends = [*operator.inputs[:1], *operator.outputs[:1]]
        places = [None if each is None else self.places.offsets.get(each) for each in ends]
        return len(places) == 2 and places[0] is not None and places[0] == places[1]

    def _over(
        self, operator: Operator, order: Order | None, source: Tensor, held: Value, output: Tensor, new: Ring
    ) -> Any:
        """Return the bytes of an output that a source, which lies under it, has at the same place.

        Raises BrokenModelError where a byte of the source is lost before it is read.
        """
        (first, last), (low, end) = self._ranges[source], self._ranges[output]
        stays = np.zeros(new.size, bool)
        start, stop = max(first, low), min(last, end)
        same = self._bytes_of(source, held)[start - first : stop - first] == new[start - low : stop - low]
        stays[start - low : stop - low] = same
        is_lost = self._is_lost(operator, order, source, output, (start, stop))
        if order is not None and order.is_final:
            is_lost = is_lost & ~same
        if is_lost.any():
            raise BrokenModelError(
                f"it writes '{output.name}' at {low} over '{source.name}' at {first}, which it still reads"
            )
        return stays

    def _is_lost(self, operator: Operator, order: Order | None, source: Tensor, output: Tensor, shared: Range) -> Any:
        """Return which of the bytes that a source and an output share are written before they were read.

        The same in every iteration of a loop, as an order belongs to one operator: computed once.
        """
        if order is None or output is not operator.outputs[0]:
            return np.ones(shared[1] - shared[0], bool)
        key = id(order), source, output
        if key not in self._lost:
            self._lost[key] = self._lost_in_order(operator, order, source, output, shared)
        return self._lost[key]

    def _lost_in_order(self, operator: Operator, order: Order, source: Tensor, output: Tensor, shared: Range) -> Any:
        (first, _), (low, _), (start, stop) = self._ranges[source], self._ranges[output], shared
        is_alike = (source.dtype, source.shape, first) == (output.dtype, output.shape, low)
        if order.is_in_place and is_alike:
            return np.zeros(stop - start, bool)
        at = np.arange(start, stop)
        writes = order.writes[(at - low) // output.dtype.arena_bytes]
        slots = [slot for slot, tensor in enumerate(operator.inputs) if tensor is source]
        reads = [order.reads[slot] if slot in order.reads else np.full(source.elements, NEVER) for slot in slots]
        last = np.maximum.reduce(reads)[(at - first) // source.dtype.arena_bytes]
        return (writes < last) & (writes != NEVER)

    def _scratch(self, operator: Operator, pairs: Sequence[Pair]) -> None:
        for low, end in self.places.scratch.get(operator, ()):
            for tensor, _ in pairs:
                if _meet(self._ranges[tensor], (low, end)):
                    raise BrokenModelError(f"its scratch [{low}, {end}) lies on '{tensor.name}'")
            self._bytes[low:end] = self._garbage(end - low)

    def copied(self, source: Tensor, target: Tensor, value: Value) -> None:
        if target not in self._ranges:
            return
        low, end = self._ranges[target]
        if source in self._ranges:
            first, last = self._ranges[source]
            if first == low:
                return  # onto itself: overwritten bytes of it stay so
            self._hold("it", [(source, value)], "copies")
            if _meet((first, last), (low, end)):
                raise BrokenModelError(f"it copies '{source.name}' at {first} onto a part of itself at {low}")
        self.put([(target, value)])

    def put(self, pairs: Sequence[Pair]) -> None:
        for tensor, value in self._placed(pairs):
            self._place(tensor)[:] = self._bytes_of(tensor, value)

    def unwritten(self, value: Ring) -> None:
        self._unwritten = np.sort(np.concatenate((self._unwritten, value.ravel())))
        self._whole.setdefault(value.size, []).append(value.ravel())

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
        return [(tensor, value) for tensor, value in pairs if tensor in self._ranges]

    def _hold(self, who: str, pairs: Sequence[Pair], does: str, last: Any = None) -> None:
        """Look whether the bytes of tensors hold their values; ``last``: the step of each element's last read."""
        for tensor, value in self._placed(pairs):
            low, _ = self._ranges[tensor]
            wrong = self._place(tensor) != self._bytes_of(tensor, value)
            if not wrong.any():
                continue
            if last is not None:
                wrong &= np.repeat(last >= 0, tensor.dtype.arena_bytes)
            wrong &= ~self._is_unwritten(tensor, value, wrong)
            if not wrong.any():
                continue
            if tensor in self._faulty:
                raise UndecidedError(
                    f"{who} {does} '{tensor.name}', parts of which {self._faulty[tensor].name} of TFLM "
                    "fills with what memory held before"
                )
            byte = int(np.argmax(wrong))
            raise BrokenModelError(f"{who} {does} '{tensor.name}' at {low}, whose byte {byte} was overwritten")

    def _is_unwritten(self, tensor: Tensor, value: Value, which: Any) -> Any:
        """Return a mask of the bytes of elements that nothing has written: nobody may depend on them."""
        if not self._unwritten.size or not which.any():
            return np.zeros(which.size, bool)
        size, flat = tensor.dtype.arena_bytes, self.keys.constant(value).ravel()
        touched = which.reshape(-1, size).any(1)
        found = np.zeros(touched.size, bool)
        for garbage in self._whole.get(flat.size, ()):  # what a loop carries is mostly where it was
            found |= flat == garbage
        at = np.flatnonzero(touched & ~found)
        nearest = np.searchsorted(self._unwritten, flat[at]).clip(max=self._unwritten.size - 1)
        found[at] = self._unwritten[nearest] == flat[at]
        return np.repeat(found, size) & which

    def _bytes_of(self, tensor: Tensor, value: Value) -> Ring:
        """Return the contents of a tensor's bytes: each its element, and a random word for the byte's number.

        Two bytes of different elements, or of different numbers, agree with a chance of ``2**-64``.
        """
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        flat, size = self.keys.constant(value).ravel(), tensor.dtype.arena_bytes
        if size not in self._words:
            self._words[size] = np.asarray([self.keys.word("byte", size, number) for number in range(size)], U)
        found = (flat[:, None] ^ self._words[size]).ravel()
        self.bytes_seen += found.size
        if len(self._known) > 64:
            self._known.clear()
        self._known[id(value)] = (value, found)
        return found


def _meet(one: Range, other: Range) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
