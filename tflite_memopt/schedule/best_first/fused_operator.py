"""Operators that run back to back, seen from outside as one: what they need, what they leave, what they release.

Memory is counted relative to what is alive when the fused operator starts. Its need is computed from its
*candidates*: one for each operator in it that may have the largest working set. Whether an input was read for the
last time depends on which other operators ran, so a candidate keeps the input's number, not its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..problem import Reuse, ScheduleProblem


@dataclass(frozen=True)
class PeakCandidate:
    """``extra`` bytes on top of what was alive at the start, less ``released`` and one of ``reuses``.

    ``released`` are inputs of the fused operator that it has read for the last time: they are gone if nobody else
    waits for them.
    """

    extra: int
    released: frozenset[int] = frozenset()
    reuses: tuple[Reuse, ...] = ()

    def settled(self, dying: frozenset[int], sizes: tuple[int, ...]) -> PeakCandidate:
        """The same candidate where ``dying`` are known to die: their bytes become part of ``extra``."""
        released = sum(sizes[t] for t in self.released & dying)
        certain = max((r.saved for r in self.reuses if r.tensor in dying), default=0)
        # A certain reuse always holds; the others can only save what they save beyond it.
        reuses = tuple(Reuse(r.tensor, r.saved - certain) for r in self.reuses if r.saved > certain)
        return PeakCandidate(self.extra - released - certain, self.released - dying, reuses)

    def covers(self, other: PeakCandidate) -> bool:
        """Whether this one needs at least as much as the other in every state."""
        return self.extra >= other.extra and self.released <= other.released and not self.reuses


@dataclass(frozen=True)
class FusedOperator:
    """``grow`` are the bytes that its operators write and leave alive, before any of ``inputs`` dies.

    ``inputs`` are the tensors it reads that others write or read, or the graph gives.
    """

    candidates: tuple[PeakCandidate, ...]
    grow: int
    inputs: frozenset[int]

    def need(self, sizes: tuple[int, ...], dying: frozenset[int]) -> int:
        """Largest need in bytes on top of what is alive before, when the inputs in ``dying`` have no other reader."""
        most = 0
        for candidate in self.candidates:
            extra = candidate.extra
            if candidate.released:
                extra -= sum(sizes[t] for t in candidate.released & dying)
            if candidate.reuses:
                extra -= max((r.saved for r in candidate.reuses if r.tensor in dying), default=0)
            most = max(most, extra)
        return most

    def change(self, sizes: tuple[int, ...], dying: frozenset[int]) -> int:
        """Bytes alive after it less those alive before it, when ``dying`` have no other reader."""
        return self.grow - sum(sizes[t] for t in self.inputs & dying)


def single_operator(problem: ScheduleProblem, index: int, unread: frozenset[int]) -> FusedOperator:
    """One operator by itself. ``unread`` are the tensors that nobody reads and the graph does not return."""
    step, sizes = problem.steps[index], problem.sizes
    written = sum(sizes[t] for t in step.outputs)
    candidate = PeakCandidate(written + step.scratch, reuses=step.reuses)
    kept = sum(sizes[t] for t in step.outputs if t not in unread)
    return FusedOperator((candidate,), kept, frozenset(step.inputs))


def joined(first: FusedOperator, second: FusedOperator, sizes: tuple[int, ...], inner: frozenset[int]) -> FusedOperator:
    """What runs ``first``, then ``second``. ``inner`` are the tensors that live and die inside it: written by the
    first and read by nobody but the second."""
    gone = first.inputs - second.inputs
    candidates = [_still_read(candidate, second.inputs) for candidate in first.candidates]
    for candidate in second.candidates:
        settled = candidate.settled(inner, sizes)
        candidates.append(PeakCandidate(first.grow + settled.extra, settled.released | gone, settled.reuses))
    grow = first.grow + second.grow - sum(sizes[t] for t in inner)
    return FusedOperator(_largest(candidates), grow, (first.inputs | second.inputs) - inner)


def _still_read(candidate: PeakCandidate, read_later: frozenset[int]) -> PeakCandidate:
    """The candidate, when the tensors of ``read_later`` cannot die at it."""
    if candidate.released.isdisjoint(read_later) and not candidate.reuses:
        return candidate
    reuses = tuple(r for r in candidate.reuses if r.tensor not in read_later)
    return PeakCandidate(candidate.extra, candidate.released - read_later, reuses)


def _largest(candidates: Iterable[PeakCandidate]) -> tuple[PeakCandidate, ...]:
    """Those that some state can make the largest."""
    kept: list[PeakCandidate] = []
    for candidate in candidates:
        if any(other.covers(candidate) for other in kept):
            continue
        kept = [other for other in kept if not candidate.covers(other)]
        kept.append(candidate)
    return tuple(kept)
