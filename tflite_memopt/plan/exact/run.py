"""One run of a search at one capacity: its state made, its trail lengthened where that is needed, its result read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ...graph.search_limit import WorkAllowance
from .group import ItemGroup
from .tree import FOUND, FULL, LIMIT, NONE

_PLAIN_CHUNK = 200
_COMPILED_CHUNK = 5_000
"""Nodes between two looks at the emergency stop."""


@dataclass(frozen=True)
class SearchRun:
    """How a run ended (``FOUND``, ``NONE`` or ``LIMIT``), nodes, turns of its loops, and the offsets if found."""

    end: int
    nodes: int
    work: int
    offsets: tuple[int, ...] = ()

    @property
    def is_proof(self) -> bool:
        """Whether there is no plan within the capacity."""
        return self.end == NONE


class CapacitySearch(Protocol):
    """A search for a plan of one group; its ``rules`` are ways to branch, which take turns."""

    @property
    def group(self) -> ItemGroup: ...

    @property
    def rules(self) -> tuple[str, ...]: ...

    @property
    def refutes_at_once(self) -> bool:
        """Whether a single node says much."""

    @property
    def first_nodes(self) -> int:
        """Nodes of a question in the first round: enough for a plan that is found without turning back."""

    @property
    def growth(self) -> int:
        """How many times as many nodes a round gets as the one before."""

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """What ``CapacityQuestions.lower_top`` asks."""

    def run(self, capacity: int, rule: str, nodes: int, allowance: WorkAllowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes, with at most so many ``nodes``; work comes from the allowance."""


@dataclass(frozen=True)
class Course:
    """What a run works on: the ``state`` of a search, and the ``tables`` that it was made of.

    ``counters``: the registers of nodes and of work done, since the start.
    """

    state: Any
    tables: dict[str, Any]
    counters: tuple[int, int]
    items: int
    is_compiled: bool


def run_in_chunks(go_on: Callable[[int, int], int], course: Course, nodes: int, allowance: WorkAllowance) -> SearchRun:
    """Call ``go_on(nodes, work)`` until it ends, with all nodes and work since the start; the allowance pays."""
    state, (counted, worked) = course.state, course.counters
    chunk = _COMPILED_CHUNK if course.is_compiled else _PLAIN_CHUNK
    end, work = LIMIT, allowance.left
    while end in (LIMIT, FULL):
        if state.registers[counted] >= nodes or state.registers[worked] >= work or allowance.is_too_late():
            break
        end = go_on(min(nodes, state.registers[counted] + chunk), work)
        if end == FULL:
            _lengthen_trail(course)
    allowance.left -= state.registers[worked]
    offsets = tuple(state.least[k] for k in range(course.items)) if end == FOUND else ()
    return SearchRun(LIMIT if end == FULL else end, state.registers[counted], state.registers[worked], offsets)


def _lengthen_trail(course: Course) -> None:
    """Twice as long."""
    for name in ("trail_kind", "trail_at", "trail_value", "trail_cause"):
        if name in course.tables:
            course.tables[name] = course.tables[name] * 2
            setattr(course.state, name, course.tables[name])
