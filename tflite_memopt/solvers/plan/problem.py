"""The offset problem and its solution, as frozen integers: no model, no tensor, no flatbuffer.

Units are bytes and scopes. All intervals are half-open: an item is alive in ``[start, end)`` and occupies
``[offset, offset + size)``.

Two items alive at the same time may not share bytes, so the difference ``offset[i] - offset[j]`` may not lie in
the open interval ``(-size[i], size[j])``. A relation cuts that interval: an overlap takes one of its ends away, a
view or in-place takes a single point out of its middle. At most a few open intervals per pair remain.

A bound comes with a certificate: a section of time, the items alive in it, and the most that these may share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..graph.interval import intersect
from ..graph.limits import SearchLimit


@dataclass(frozen=True)
class BoundCertificate:
    """The reason why no plan takes fewer than ``nbytes``, which ``check.check_bound`` verifies.

    The ``items`` are all alive at ``scope``. So their bytes add up, less the bytes that related ones may share; all
    but the topmost count with the padding that alignment forces on them. Where ``given``, the only item lies where it
    must, and the bytes are those up to its end. Of each of the ``containers``, the items behind the first one may not
    share bytes with each other: their bytes in common with the first one fit there side by side. The sum is
    one of multiples of ``unit``, which divides all alignments.
    """

    nbytes: int
    scope: int = 0
    items: tuple[int, ...] = ()
    given: bool = False
    containers: tuple[tuple[int, ...], ...] = ()
    unit: int = 1


Shares = Mapping[int, Mapping[int, int]]
"""``shares[i][j]``: bytes that two related items have in common at most."""


@dataclass(frozen=True)
class Container:
    """``members``: items that may not share bytes with each other, but with the ``item``: ``nbytes`` in all at most."""

    item: int
    members: tuple[int, ...]
    nbytes: int

    def spares(self, chosen: Collection[int], shares: Shares) -> int:
        """By how many bytes the pairs of the chosen items count too much as shared."""
        if self.item not in chosen:
            return 0
        return max(0, self._shared(chosen, shares[self.item]) - self.nbytes)

    def spares_more(self, index: int, chosen: Collection[int], shares: Shares) -> int:
        """Compute the growth of ``spares`` with one item more: the container or a member, not yet chosen."""
        pairs = shares[self.item]
        shared = self._shared(chosen, pairs)
        if index == self.item:
            return max(0, shared - self.nbytes)
        if self.item not in chosen:
            return 0
        return max(0, shared + pairs[index] - self.nbytes) - max(0, shared - self.nbytes)

    def _shared(self, chosen: Collection[int], pairs: Mapping[int, int]) -> int:
        return sum([pairs[member] for member in self.members if member in chosen])


@dataclass(frozen=True)
class SectionBound:
    """Items of a section whose bytes add up, except for bytes that related ones may share.

    No plan goes below ``nbytes``: a union has at least the sum of its parts, rounded up to the ``unit`` of their
    offsets, less the most that they have in common, pair by pair, and in ``containers`` several with one, and less the
    padding of the topmost.
    """

    items: tuple[int, ...]
    nbytes: int
    containers: tuple[Container, ...]
    unit: int


@dataclass
class KnownBounds:
    """The results of ``bounds`` for a problem, kept for the next caller.

    ``sections``: by the items that are alive together, ascending. ``shares``: bytes that (first, second, unit) may have
    in common, since a pair is alive in many sections.
    """

    bound: BoundCertificate | None = None
    sections: dict[tuple[int, ...], SectionBound] = field(default_factory=dict)
    shares: dict[tuple[int, int, int], int] = field(default_factory=dict)


Intervals = tuple[tuple[int, int], ...]
"""Open intervals ``(low, high)`` of differences in bytes that are forbidden, ascending."""
Permissions = Mapping[int, Mapping[int, Intervals]]
"""``permissions[i][j]``: forbidden values of ``offset[i] - offset[j]``; only pairs that have a relation."""
Conflict = tuple[int, int, int]
"""(other, low, high): ``offset - offset[other]`` must not lie in the open interval (low, high), in bytes."""


@dataclass(frozen=True)
class Item:
    """Something that needs ``size`` bytes at a multiple of ``alignment`` while it is alive in ``[start, end)``.

    ``offset`` is set when the place is given and only the others are open.
    """

    size: int
    start: int
    end: int
    alignment: int = ARENA_ALIGNMENT
    offset: int | None = None


@dataclass(frozen=True)
class Relation:
    """A permission to share bytes, between two items (indices) that are alive at the same time.

    They may share bytes while ``offset[first] - offset[second] >= distance``, or ``== distance`` when
    ``exact``. A view is an exact relation, in-place is exact with distance 0, an overlap is not exact. A
    planner may always keep the two disjoint instead.
    """

    first: int
    second: int
    distance: int
    exact: bool = False

    def allows(self, first_offset: int, second_offset: int) -> bool:
        """Tell whether these offsets make use of the permission rightly."""
        difference = first_offset - second_offset
        return difference == self.distance if self.exact else difference >= self.distance


@dataclass(frozen=True)
class PlanProblem:
    """Items and the relations between them; ``relations`` refer to positions in ``items``."""

    items: tuple[Item, ...]
    relations: tuple[Relation, ...] = ()

    @cached_property
    def plain(self) -> PlanProblem:
        """The same items without relations."""
        return PlanProblem(self.items) if self.relations else self

    @cached_property
    def permissions(self) -> Permissions:
        """The forbidden differences of every related pair that is alive at the same time, seen from both items."""
        pairs: dict[tuple[int, int], list[Relation]] = {}
        for relation in self.relations:
            low, high = sorted((relation.first, relation.second))
            first, second = self.items[low], self.items[high]
            if low != high and intersect(first, second) and first.size and second.size:
                pairs.setdefault((low, high), []).append(relation)
        found: dict[int, dict[int, Intervals]] = {}
        for (i, j), relations in pairs.items():
            intervals = _cut(self.items[i], self.items[j], [_seen_from(i, r) for r in relations])
            found.setdefault(i, {})[j] = intervals
            found.setdefault(j, {})[i] = tuple((-high, -low) for low, high in reversed(intervals))
        return found

    @cached_property
    def conflicts(self) -> list[list[Conflict]]:
        """The forbidden differences between every two items.

        One list for each item; a pair whose relation splits the forbidden range is there once for each part.

        An item of no bytes has none. O(pairs alive together), and as much memory.
        """
        items, permissions = self.items, self.permissions
        found: list[list[Conflict]] = [[] for _ in items]
        alive: list[int] = []
        for index in sorted(range(len(items)), key=lambda i: items[i].start):
            item = items[index]
            if item.size == 0:
                continue
            alive = [other for other in alive if items[other].end > item.start]
            related = permissions.get(index, {})
            for other in alive:
                for low, high in related[other] if other in related else ((-item.size, items[other].size),):
                    found[index].append((other, low, high))
                    found[other].append((index, -high, -low))
            alive.append(index)
        return found

    @cached_property
    def analysis(self) -> KnownBounds:
        """The bounds that are known."""
        return KnownBounds()


def arena_bytes(problem: PlanProblem, offsets: Sequence[int]) -> int:
    """max(offset + size) in bytes: TFLM's head under this plan."""
    return max((o + i.size for o, i in zip(offsets, problem.items, strict=True)), default=0)


@dataclass(frozen=True)
class Plan:
    """``offsets[i]`` is the first byte of item i; ``arena_bytes`` is max(offset + size).

    ``lower_bound`` holds for this order of operators (the ``plan_`` bound); ``optimal`` says that
    ``arena_bytes`` is proved smallest. ``certificate`` is the best bound that ``check.check_bound`` can verify; where
    ``lower_bound`` is higher than that, a search has tried all placements below it. ``method`` returned the plan, in
    ``seconds`` of its own. ``dropped`` names the strategies of ``best`` whose answer broke a rule, with the rule that
    it broke. ``stopped_by_clock`` admits that the time limit ended a search: another machine may find another plan.
    """

    offsets: tuple[int, ...]
    arena_bytes: int
    lower_bound: int
    optimal: bool
    method: str
    seconds: float
    certificate: BoundCertificate
    dropped: tuple[str, ...] = ()
    stopped_by_clock: bool = False

    @property
    def gap_bytes(self) -> int:
        """Bytes above the lower bound: 0 when the plan is optimal."""
        return self.arena_bytes - self.lower_bound

    @property
    def bound_by(self) -> Literal["section", "search"]:
        """The proof of the lower bound: items that are alive together, or a search that ran dry."""
        return "section" if self.certificate.nbytes == self.lower_bound else "search"


@dataclass(frozen=True)
class Solution:
    """The result of a strategy: offsets for all items, and a bound in bytes that it proved (0 for none).

    ``steps`` is its work: nodes or moves. ``stopped_by_clock``: without the time limit it would have gone on.
    ``earlier``: intermediate offsets of a search, each better than those before; not all searches keep them.
    """

    offsets: tuple[int, ...]
    lower_bound: int = 0
    steps: int = 0
    stopped_by_clock: bool = False
    earlier: tuple[tuple[int, ...], ...] = ()


OffsetStrategy = Callable[[PlanProblem, SearchLimit], Solution]
"""The signature of a strategy. ``methods.solve`` times, checks and wraps the answers."""

RigidGroup = tuple[tuple[int, int], ...]
"""Items that are placed at once, often a single one: (index, bytes from the group's offset to the item's)."""


def may_differ_by(difference: int, intervals: Intervals) -> bool:
    """Tell whether a difference of offsets lies in none of the forbidden intervals."""
    return not any(low < difference < high for low, high in intervals)


def most_shared(size: int, other: int, forbidden: Intervals, unit: int) -> int:
    """Return the most bytes that two related items have in common, over all differences that are not forbidden.

    These bytes fall as the difference leaves the range where one item holds the other: the best difference is one end
    of that range, or the permitted one next to it.
    """
    ends = {0, other - size, -size, other}
    for low, high in forbidden:
        ends |= {low // unit * unit, aligned(high, unit)}
    return max(min(d + size, other) - max(d, 0) for d in ends if may_differ_by(d, forbidden))


def _seen_from(index: int, relation: Relation) -> tuple[int, int, bool]:
    """(sign, difference, exact): ``offset[index]`` minus the other's, times the sign, is at least the difference."""
    sign = 1 if relation.first == index else -1
    return sign, sign * relation.distance, relation.exact


def _cut(item: Item, other: Item, permitted: Sequence[tuple[int, int, bool]]) -> Intervals:
    low, high = -item.size, other.size
    for sign, difference, exact in permitted:
        if not exact and sign > 0:
            high = min(high, difference)
        elif not exact:
            low = max(low, difference)
    points = sorted({difference for _, difference, exact in permitted if exact and low < difference < high})
    # An open interval between neighboring integers holds none of them.
    return tuple((a, b) for a, b in pairwise((low, *points, high)) if b - a > 1)
