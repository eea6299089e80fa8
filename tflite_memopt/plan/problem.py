"""The offset problem and its solution, as frozen integers: no model, no tensor, no flatbuffer.

Units are bytes and scopes. All intervals are half-open: an item is alive in ``[start, end)`` and occupies
``[offset, offset + size)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..graph.alignment import ARENA_ALIGNMENT
from ..graph.search_limit import SearchLimit


@dataclass(frozen=True)
class Item:
    """Something that needs ``size`` bytes at a multiple of ``alignment`` while it is alive in ``[start, end)``.

    ``offset`` is set when the place is given and only the others are to be found.
    """

    size: int
    start: int
    end: int
    alignment: int = ARENA_ALIGNMENT
    offset: int | None = None

    def meets(self, other: Item) -> bool:
        """Whether both are alive at the same time."""
        return self.start < other.end and other.start < self.end


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
        """Whether these offsets make use of the permission rightly."""
        difference = first_offset - second_offset
        return difference == self.distance if self.exact else difference >= self.distance


@dataclass(frozen=True)
class PlanProblem:
    """Items and the relations between them; ``relations`` refer to positions in ``items``."""

    items: tuple[Item, ...]
    relations: tuple[Relation, ...] = ()


def arena_bytes(problem: PlanProblem, offsets: Sequence[int]) -> int:
    """max(offset + size) in bytes: TFLM's head under this plan."""
    return max((o + i.size for o, i in zip(offsets, problem.items, strict=True)), default=0)


@dataclass(frozen=True)
class Plan:
    """``offsets[i]`` is the first byte of item i; ``arena_bytes`` is max(offset + size).

    ``lower_bound`` holds for this order of operators (the ``plan_`` bound); ``optimal`` says that
    ``arena_bytes`` is proved smallest. ``dropped`` names the strategies of ``best`` whose answer broke a rule, with
    the rule that it broke.
    """

    offsets: tuple[int, ...]
    arena_bytes: int
    lower_bound: int
    optimal: bool
    method: str
    seconds: float
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """What a strategy returns: offsets for all items, and a bound in bytes that it proved (0 for none)."""

    offsets: tuple[int, ...]
    lower_bound: int = 0


OffsetStrategy = Callable[[PlanProblem, SearchLimit], Candidate]
"""What a strategy file provides. ``methods.solve`` times, checks and wraps the answers."""

RigidGroup = tuple[tuple[int, int], ...]
"""Items that are placed at once, often a single one: (index, bytes from the group's offset to the item's)."""
