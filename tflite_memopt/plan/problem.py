"""The offset problem and its solution, as frozen integers: no model, no tensor, no flatbuffer.

Units are bytes and scopes. All intervals are half-open: an item is alive in ``[start, end)`` and occupies
``[offset, offset + size)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ..graph.alignment import ARENA_ALIGNMENT
from ..graph.search_limit import SearchLimit
from .conflicts import Conflict, conflicts_of
from .permissions import Permissions, forbidden_differences

if TYPE_CHECKING:
    from .bounds import SectionBound


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

    @cached_property
    def plain(self) -> PlanProblem:
        """The same items without relations."""
        return PlanProblem(self.items) if self.relations else self

    @cached_property
    def permissions(self) -> Permissions:
        """What every related pair forbids; worked out once."""
        return forbidden_differences(self)

    @cached_property
    def conflicts(self) -> list[list[Conflict]]:
        """What every item forbids to every other one; worked out once."""
        return conflicts_of(self)

    @cached_property
    def known_bounds(self) -> list[BoundCertificate]:
        """Where ``bounds`` keeps the bound, once it is worked out."""
        return []

    @cached_property
    def known_sections(self) -> dict[tuple[int, ...], SectionBound]:
        """Where ``bounds`` keeps the bound of items that are alive together, ascending."""
        return {}

    @cached_property
    def known_shares(self) -> dict[tuple[int, int, int], int]:
        """Where ``bounds`` keeps what (first, second, unit) may share, since a pair is alive in many sections."""
        return {}


def arena_bytes(problem: PlanProblem, offsets: Sequence[int]) -> int:
    """max(offset + size) in bytes: TFLM's head under this plan."""
    return max((o + i.size for o, i in zip(offsets, problem.items, strict=True)), default=0)


@dataclass(frozen=True)
class BoundCertificate:
    """Why no plan takes fewer than ``nbytes``: what ``check.check_bound`` verifies.

    The ``items`` are all alive at ``scope``. So their bytes add up, less what the related ones of them may share; all
    but the topmost count with the padding that alignment forces on them. Where ``given``, the only item lies where it
    must, and the bytes are those up to its end. Of each of the ``rooms``, the items behind the first one may not share
    bytes with each other: what they have in common with the first one fits there beside each other.
    """

    nbytes: int
    scope: int = 0
    items: tuple[int, ...] = ()
    given: bool = False
    rooms: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Plan:
    """``offsets[i]`` is the first byte of item i; ``arena_bytes`` is max(offset + size).

    ``lower_bound`` holds for this order of operators (the ``plan_`` bound); ``optimal`` says that
    ``arena_bytes`` is proved smallest. ``certificate`` is the best bound that ``check.check_bound`` can verify; where
    ``lower_bound`` is higher than that, a search has tried all placements below it. ``method`` found the plan, in
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
        """What proves the lower bound: items that are alive together, or a search that ran dry."""
        return "section" if self.certificate.nbytes == self.lower_bound else "search"


@dataclass(frozen=True)
class FitResult:
    """Whether the items fit into a capacity: ``offsets`` if a plan was found, ``is_proved`` if there is none.

    Neither: the search gave up after so many ``nodes``, or ``stopped_by_clock``.
    """

    offsets: tuple[int, ...] | None
    is_proved: bool
    nodes: int = 0
    stopped_by_clock: bool = False


@dataclass(frozen=True)
class Candidate:
    """What a strategy returns: offsets for all items, and a bound in bytes that it proved (0 for none).

    ``steps`` is its work: nodes or moves. ``stopped_by_clock``: without the time limit it would have gone on.
    ``earlier``: offsets that a search found on its way, each better than those before; not all searches keep them.
    """

    offsets: tuple[int, ...]
    lower_bound: int = 0
    steps: int = 0
    stopped_by_clock: bool = False
    earlier: tuple[tuple[int, ...], ...] = ()


OffsetStrategy = Callable[[PlanProblem, SearchLimit], Candidate]
"""What a strategy file provides. ``methods.solve`` times, checks and wraps the answers."""

RigidGroup = tuple[tuple[int, int], ...]
"""Items that are placed at once, often a single one: (index, bytes from the group's offset to the item's)."""
