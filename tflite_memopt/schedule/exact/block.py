"""Operators that run back to back, seen from outside as one: what they need, what they leave, what they release.

Memory is counted relative to what is alive when the block starts. A block's need is worked out from its *moments*:
a moment holds bytes on top of those, less the inputs that have been read for the last time before it. Whether an
input was read for the last time depends on which other blocks ran, so it is kept as a name, not as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..problem import Reuse, ScheduleProblem


@dataclass(frozen=True)
class Moment:
    """``extra`` bytes on top of what was alive at the block's start, less ``released`` and one of ``reuses``.

    ``released`` are inputs of the block that no later operator of the block reads: they are gone if no other
    block waits for them.
    """

    extra: int
    released: frozenset[int] = frozenset()
    reuses: tuple[Reuse, ...] = ()

    def settled(self, dying: frozenset[int], sizes: tuple[int, ...]) -> Moment:
        """The same moment where ``dying`` are known to die: their bytes become part of ``extra``."""
        released = sum(sizes[t] for t in self.released & dying)
        certain = max((r.saved for r in self.reuses if r.tensor in dying), default=0)
        # A certain reuse always holds; the others can only save what they save beyond it.
        reuses = tuple(Reuse(r.tensor, r.saved - certain) for r in self.reuses if r.saved > certain)
        return Moment(self.extra - released - certain, self.released - dying, reuses)

    def covers(self, other: Moment) -> bool:
        """Whether this moment needs at least as much as the other in every state."""
        return self.extra >= other.extra and self.released <= other.released and not self.reuses


@dataclass(frozen=True)
class Block:
    """``grow`` are the bytes that its operators write and leave alive, before any of ``inputs`` dies.

    ``inputs`` are the tensors it reads that other blocks write or read, or the graph gives.
    """

    moments: tuple[Moment, ...]
    grow: int
    inputs: frozenset[int]

    def need(self, sizes: tuple[int, ...], dying: frozenset[int]) -> int:
        """Largest need in bytes on top of what is alive before, when the inputs in ``dying`` have no other reader."""
        most = 0
        for moment in self.moments:
            extra = moment.extra
            if moment.released:
                extra -= sum(sizes[t] for t in moment.released & dying)
            if moment.reuses:
                extra -= max((r.saved for r in moment.reuses if r.tensor in dying), default=0)
            most = max(most, extra)
        return most

    def change(self, sizes: tuple[int, ...], dying: frozenset[int]) -> int:
        """Bytes alive after it less those alive before it, when ``dying`` have no other reader."""
        return self.grow - sum(sizes[t] for t in self.inputs & dying)


def block_of_step(problem: ScheduleProblem, index: int, unread: frozenset[int]) -> Block:
    """One operator as a block. ``unread`` are the tensors that nobody reads and the graph does not return."""
    step, sizes = problem.steps[index], problem.sizes
    written = sum(sizes[t] for t in step.outputs)
    moment = Moment(written + step.scratch, reuses=step.reuses)
    kept = sum(sizes[t] for t in step.outputs if t not in unread)
    return Block((moment,), kept, frozenset(step.inputs))


def join(first: Block, second: Block, sizes: tuple[int, ...], inner: frozenset[int]) -> Block:
    """The block that runs ``first``, then ``second``. ``inner`` are the tensors that live and die inside it:
    written by the first and read by no block but the second."""
    gone = first.inputs - second.inputs
    moments = [_still_read(moment, second.inputs) for moment in first.moments]
    for moment in second.moments:
        settled = moment.settled(inner, sizes)
        moments.append(Moment(first.grow + settled.extra, settled.released | gone, settled.reuses))
    grow = first.grow + second.grow - sum(sizes[t] for t in inner)
    return Block(_largest(moments), grow, (first.inputs | second.inputs) - inner)


def _still_read(moment: Moment, read_later: frozenset[int]) -> Moment:
    """The moment, when the tensors of ``read_later`` cannot die at it."""
    if moment.released.isdisjoint(read_later) and not moment.reuses:
        return moment
    reuses = tuple(r for r in moment.reuses if r.tensor not in read_later)
    return Moment(moment.extra, moment.released - read_later, reuses)


def _largest(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """The moments that some state can make the largest."""
    kept: list[Moment] = []
    for moment in moments:
        if any(other.covers(moment) for other in kept):
            continue
        kept = [other for other in kept if not moment.covers(other)]
        kept.append(moment)
    return tuple(kept)
