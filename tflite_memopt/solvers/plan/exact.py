"""Exact: a search at one capacity after the other, from the bound and from the best plan; proves its answer or a gap.

Stretches of time that nothing crosses are solved one by one, by the search over pairs (``disjunctive.py``). Capacities
that its first conclusions refute are no bound yet: they are asked first, one node each. Then searches with a node limit
follow at the lower bound, half way between the bound and the best plan, and nearer to the plan; after each round the
limit grows. A search that runs dry proves the next capacity. Limits count work, so that the answer is the same on every
machine.
Source: google/minimalloc, for limits that grow and orderings that take turns.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import accumulate
from math import gcd
from pathlib import Path
from typing import Any, Protocol

from ..graph.limits import Allowance, SearchLimit
from . import disjunctive
from .bounds import max_breadth, section_items
from .disjunctive import FOUND, FULL, LIMIT, NODES, NONE, REGISTERS, WORK
from .heuristics import greedy_by_size
from .problem import Item, PlanProblem, Solution

Entry = tuple[int, int, int]
"""(other, low, high): the difference of the offsets may not lie in the open interval; positions in the group."""
Tables = dict[str, list[int]]
"""Lists of integers by the names of the fields that take them."""
_EFFORT = 12_000_000
"""Turns of the inner loops that the searches on one problem may take together; small ones may need as many as large."""
RULES = ("weight", "room")
"""Ways for a node to choose the pair to decide, in the order in which the two are tried."""
_NUMBERS = {"room": 0, "weight": 1}
"""The numbers of the rules in ``disjunctive``."""
_SECOND_OPINION = 4
"""Nodes for each item that ``room`` gets at most: a question that it does not answer soon, it hardly ever answers."""
_GROWTH = 8
"""One more node often decides the same at every capacity: few questions, and long ones."""
_PARTS = (2, 32)
"""Questions below the best plan, by such a part of the distance to the bound: half way, then near to the plan."""
_TRAIL = ("trail_kind", "trail_at", "trail_value", "trail_cause")
_PLAIN_CHUNK = 200
_COMPILED_CHUNK = 5_000
"""Nodes between two looks at the emergency stop."""


def exact(problem: PlanProblem, limit: SearchLimit) -> Solution:
    """Return offsets in bytes with a proved lower bound; they are optimal unless the limit ended the search."""
    return improve(problem, None, limit)


def allowance_for(limit: SearchLimit) -> Allowance:
    """Return the work that searches on a problem and on parts of it may spend together."""
    return Allowance(_EFFORT, limit)


def improve(
    problem: PlanProblem, known: Sequence[int] | None, limit: SearchLimit, allowance: Allowance | None = None
) -> Solution:
    """Search for a plan below ``known`` (offsets in bytes); return the best one and a proved bound.

    The work is taken from the ``allowance``, where the search shares one with others. What is not below ``limit.below``
    is not searched for.
    """
    allowance = allowance or allowance_for(limit)
    offsets = list(known if known is not None else greedy_by_size(problem, limit).offsets)
    bound, nodes = max_breadth(problem), 0
    earlier: list[tuple[int, ...]] = []
    for indices in sorted(time_groups(problem.items), key=lambda group: -_top_of(problem, offsets, group)):
        top = _top_of(problem, offsets, indices)
        top = top if limit.below is None else min(top, limit.below)
        if top <= bound:
            continue
        best = BestOfGroup(top, bound)
        nodes += _minimize(PairSearch(group_of(problem, indices)), best, allowance)
        for found in best.found:
            for index, offset in zip(indices, found, strict=True):
                offsets[index] = offset
            earlier.append(tuple(offsets))
        bound = max(bound, best.bound)
    return Solution(tuple(offsets), bound, nodes, allowance.stopped_by_clock, tuple(earlier[:-1]))


def fit(problem: PlanProblem, capacity: int, limit: SearchLimit) -> tuple[int, ...] | None:
    """Search for offsets within ``capacity`` bytes, as a deployment or a search with a cutoff asks; None if none is."""
    allowance = allowance_for(limit)
    offsets = [item.offset or 0 for item in problem.items]
    for indices in time_groups(problem.items):
        best = BestOfGroup(capacity + 1, capacity)
        _minimize(PairSearch(group_of(problem, indices)), best, allowance)
        if not best.found:
            return None
        for index, offset in zip(indices, best.found[-1], strict=True):
            offsets[index] = offset
    return tuple(offsets)


def _minimize(search: CapacitySearch, best: BestOfGroup, allowance: Allowance) -> int:
    """Lower a group's top to its bound, or raise the bound to it, in rounds that get longer; return nodes visited."""
    run, nodes = CapacityQuestions(search, best, allowance), search.first_nodes
    run.find_bound()
    while run.is_open():
        run.raise_bound(nodes)
        run.lower_top(nodes)
        nodes *= _GROWTH
    return run.visited


def _top_of(problem: PlanProblem, offsets: Sequence[int], indices: Sequence[int]) -> int:
    return max((offsets[i] + problem.items[i].size for i in indices), default=0)


@dataclass(frozen=True)
class SearchRun:
    """The end of a run (``FOUND``, ``NONE`` or ``LIMIT``), its nodes, and its offsets, if any."""

    end: int
    nodes: int
    offsets: tuple[int, ...] = ()


class CapacitySearch(Protocol):
    """A search for a plan of one group. ``first_nodes``: enough to find a plan without turning back."""

    @property
    def group(self) -> ItemGroup: ...

    @property
    def first_nodes(self) -> int: ...

    def run(self, capacity: int, rule: str, nodes: int, allowance: Allowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes in at most so many ``nodes``; work comes from the allowance."""


@dataclass
class BestOfGroup:
    """The fewest bytes of one group, and the proved bound; ``found``: offsets, each better than the last."""

    top: int
    bound: int
    found: list[tuple[int, ...]] = field(default_factory=list)


@dataclass
class CapacityQuestions:
    """Asks whether a group fits into so many bytes, at one capacity after the other; ``visited`` counts nodes."""

    search: CapacitySearch
    best: BestOfGroup
    allowance: Allowance
    visited: int = 0

    def is_open(self) -> bool:
        """Tell whether the best plan is above the bound and there is work left."""
        return self.best.top > self.best.bound and not self.allowance.is_spent()

    def find_bound(self) -> None:
        """Raise the bound to the smallest capacity that a single node does not refute, by bisection."""
        best, grain = self.best, self.search.group.grain
        high = best.top
        while best.bound < high and self.is_open():
            capacity = max(best.bound, (best.bound + high - 1) // 2 // grain * grain)
            if self._ask(capacity, 1, RULES[:1]) != NONE:
                high = min(capacity, best.top)

    def raise_bound(self, nodes: int) -> None:
        """Ask at the bound; where nothing fits, right below the best plan, then ever further above the bound.

        Where the best plan is the smallest, one answer below it stands for all the others. And a bound that is far too
        low does not creep up by a few bytes a time.
        """
        best, step = self.best, self.search.group.grain
        grain = step
        if not self.is_open() or self._ask(best.bound, nodes) != NONE:
            return
        if self.is_open():
            self._ask(max(best.bound, (best.top - 1) // grain * grain), nodes)
        while self.is_open():
            capacity = best.bound + min(step, (best.top - best.bound - 1) // 2 // grain * grain)
            if self._ask(capacity, nodes) != NONE:
                break
            step *= 2

    def lower_top(self, nodes: int) -> None:
        """Ask half way between the bound and the best plan, as long as there is an answer; then nearer to the plan.

        A plan may be easy to find a little below the best one where half the way is too far. A question always gets
        enough nodes to place every item once.
        """
        best, grain = self.best, self.search.group.grain
        for part in _PARTS:
            end = NONE
            while end != LIMIT and self.is_open():
                capacity = (best.top - 1 - (best.top - 1 - best.bound) // part) // grain * grain
                if capacity <= best.bound:
                    return
                end = self._ask(capacity, max(self.search.first_nodes, nodes))

    def _ask(self, capacity: int, nodes: int, rules: Sequence[str] = RULES) -> int:
        """Ask each rule in turn until one has an answer; return how the last one ended."""
        end = LIMIT
        for rule in rules:
            if end != LIMIT or self.allowance.is_spent():
                break
            found = self.search.run(capacity, rule, nodes, self.allowance)
            self.visited += found.nodes
            self._learn(capacity, found)
            end = found.end
        return end

    def _learn(self, capacity: int, found: SearchRun) -> None:
        """Take over a plan or a proof."""
        group = self.search.group
        if found.offsets:
            self.best.found.append(found.offsets)
            self.best.top = max(offset + item.size for offset, item in zip(found.offsets, group.items, strict=True))
        elif found.end == NONE:
            # All arenas are multiples of the grain.
            self.best.bound = capacity - capacity % group.grain + group.grain


class PairSearch:
    """The search over pairs at one capacity. A run begins with the pairs' weights that the last one has learned."""

    def __init__(self, group: ItemGroup, compiles: bool = True) -> None:
        self.group, self._compiles = group, compiles
        tables = _tables(group)
        self._conflicts, self._rows = len(tables["conflict_other"]), len(tables["row_need"])
        self._reserve = 2 * len(group.items) + self._conflicts + 1
        self._arrays = self._packed(tables)
        self._weights = self._packed({"weight": [1] * self._conflicts})

    @property
    def first_nodes(self) -> int:
        """Return enough nodes to find a plan: a node mostly decides other pairs, too, so a plan takes two for each
        item, or an eighth of all.
        """
        return max(2 * len(self.group.items), self._conflicts // 8)

    @property
    def _code(self) -> Any:  # not kept, since no module can be sent to another process
        return code(self._compiles)

    def _packed(self, tables: Tables) -> dict[str, Any]:
        if self._code is disjunctive:
            return dict(tables)
        return {name: array("q", values) for name, values in tables.items()}

    def _zeros(self, length: int) -> Any:
        return [0] * length if self._code is disjunctive else array("q", bytes(length * array("q").itemsize))

    def run(self, capacity: int, rule: str, nodes: int, allowance: Allowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes in at most so many ``nodes``; work comes from the allowance."""
        code, items = self._code, len(self.group.items)
        data = code.PairData(self._arrays | {"rule": _NUMBERS[rule], "reserve": self._reserve})
        zeros = {name: self._zeros(length) for name, length in self._state_lengths().items()}
        tables = zeros | self._weights
        state = code.PairState(tables)
        code.start_pairs(data, state, capacity)
        most = min(nodes, _SECOND_OPINION * items) if rule == "room" else nodes
        chunk = _PLAIN_CHUNK if code is disjunctive else _COMPILED_CHUNK
        end, work, registers = LIMIT, allowance.left, state.registers
        while end in (LIMIT, FULL):
            if registers[NODES] >= most or registers[WORK] >= work or allowance.is_too_late():
                break
            end = code.run_pairs(data, state, min(most, registers[NODES] + chunk), work)
            if end == FULL:
                tables |= {name: 2 * tables[name] for name in _TRAIL}
                state.trail_kind, state.trail_at = tables["trail_kind"], tables["trail_at"]
                state.trail_value, state.trail_cause = tables["trail_value"], tables["trail_cause"]
        allowance.left -= registers[WORK]
        offsets = tuple(state.least[k] for k in range(items)) if end == FOUND else ()
        return SearchRun(LIMIT if end == FULL else end, registers[NODES], offsets)

    def _state_lengths(self) -> dict[str, int]:
        lengths = dict.fromkeys(disjunctive.PairState.__annotations__, len(self.group.items))
        lengths |= {"decided": self._conflicts, "decided_cause": self._conflicts, "registers": REGISTERS}
        lengths |= {"dirty": self._rows, "is_dirty": self._rows}
        lengths |= dict.fromkeys(("frame_conflict", "frame_mark", "frame_side"), self._conflicts + 1)
        return lengths | dict.fromkeys(_TRAIL, 2 * self._reserve)


def code(compiles: bool = True) -> Any:
    """Return the module of the search: its compiled copy, where the package was built with Cython, or the source.

    ``setup.py`` builds the copy under the same name with an underscore in front. Both do the same steps in the same
    order, so that the choice between them never changes an answer.
    """
    return (compiles and compiled_copy(disjunctive.__name__, disjunctive.__file__)) or disjunctive


@cache
def compiled_copy(name: str, path: str) -> Any:
    """Return the compiled copy of a module; None, with a warning, if it is made from another version of the source.

    None without a word where it is missing: Cython or a compiler was.
    """
    package, _, own = name.rpartition(".")
    try:
        module = import_module(f"{package}._{own}")
    except ImportError:
        return None
    source = Path(path)
    # Without the source, as in an archive, there is no newer one either.
    if not source.exists() or sha256(source.read_bytes()).hexdigest() == module.SOURCE_DIGEST:
        return module
    said = f"{module.__file__} was compiled from another {source.name}: the planner is slow until it is built again"
    warnings.warn(said, RuntimeWarning, stacklevel=2)
    return None


@dataclass(frozen=True)
class ItemGroup:
    """Items that must be placed together, by their position in the group.

    ``sections``: of items that are alive together, with the bytes that these need at least. ``alignments`` are 1 where
    offsets are aligned anyway. All arenas are multiples of ``grain`` bytes.
    """

    items: tuple[Item, ...]
    alignments: tuple[int, ...]
    conflicts: list[list[Entry]]
    sections: list[tuple[list[int], int]]
    grain: int


def time_groups(items: Sequence[Item]) -> list[list[int]]:
    """Return the positions of the items that have bytes, parted at the times that no item is alive across."""
    found: list[list[int]] = []
    end = 0
    for index in sorted((i for i, item in enumerate(items) if item.size), key=lambda i: items[i].start):
        if not found or items[index].start >= end:
            found.append([])
            end = items[index].end
        found[-1].append(index)
        end = max(end, items[index].end)
    return found


def group_of(problem: PlanProblem, indices: Sequence[int]) -> ItemGroup:
    """Return the group of these items. O(pairs alive together + items alive in each section)."""
    items = [problem.items[i] for i in indices]
    conflicts = _conflicts(problem, indices)
    step = gcd(*(high for own in conflicts for _, _, high in own), *(item.offset or 0 for item in items))
    alignments = [1 if step % item.alignment == 0 else item.alignment for item in items]
    times = sorted({item.start for item in items} | {item.end for item in items})
    rank = {time: number for number, time in enumerate(times)}
    alive: list[list[int]] = [[] for _ in times[:-1]]
    for index, item in zip(indices, items, strict=True):
        for section in range(rank[item.start], rank[item.end]):
            alive[section].append(index)
    position = {index: k for k, index in enumerate(indices)}
    bounds = [section_items(problem, each) for each in alive]
    sections = [([position[i] for i in bound.items], bound.nbytes) for bound in bounds]
    grain = gcd(step, *(a for a in alignments if a > 1), *(item.size for item in items))
    return ItemGroup(tuple(items), tuple(alignments), conflicts, sections, grain)


def starts_of(lists: Sequence[Sequence[object]]) -> list[int]:
    """Return the beginning of each list when all are joined, and the end."""
    return [0, *accumulate(map(len, lists))]


def _tables(group: ItemGroup) -> Tables:
    """Return the columns that ``disjunctive.PairData`` describes, in bytes: of items, of conflicts, and of sections."""
    items = {
        "size": [item.size for item in group.items],
        "alignment": list(group.alignments),
        "fixed": [-1 if item.offset is None else item.offset for item in group.items],
    }
    return items | _conflict_columns(group.conflicts) | _row_columns(group)


def _conflict_columns(conflicts: Sequence[Sequence[Entry]]) -> Tables:
    """Columns with one entry for each conflict of each item: each conflict has two, one by each item.

    entry    owner    other    low      high     mate
    k        a        b        low      high     m
    m        b        a        -high    -low     k
    """
    entries = [(owner, *entry) for owner, own in enumerate(conflicts) for entry in own]
    place = {entry: k for k, entry in enumerate(entries)}
    begins = starts_of(conflicts)
    earlier = [sum(other < owner for other, _, _ in own) for owner, own in enumerate(conflicts)]
    return {
        "conflict_from": begins,
        "upper_from": [begin + count for begin, count in zip(begins, earlier, strict=False)],
        "conflict_owner": [owner for owner, _, _, _ in entries],
        "conflict_other": [other for _, other, _, _ in entries],
        "conflict_low": [low for _, _, low, _ in entries],
        "conflict_high": [high for _, _, _, high in entries],
        "conflict_mate": [place[other, owner, -high, -low] for owner, other, low, high in entries],
    }


def _row_columns(group: ItemGroup) -> Tables:
    """Columns of the rows, one for each section: the items that are alive in it, and for each item its rows."""
    own_rows: list[list[int]] = [[] for _ in group.items]
    for row, (inside, _) in enumerate(group.sections):
        for item in inside:
            own_rows[item].append(row)
    return {
        "row_from": starts_of([inside for inside, _ in group.sections]),
        "row_item": [item for inside, _ in group.sections for item in inside],
        "row_need": [nbytes for _, nbytes in group.sections],
        "own_from": starts_of(own_rows),
        "own_row": [row for own in own_rows for row in own],
    }


def _conflicts(problem: PlanProblem, indices: Sequence[int]) -> list[list[Entry]]:
    """Conflicts inside the group, by position, rounded to possible differences of aligned offsets."""
    position = {index: k for k, index in enumerate(indices)}
    alignments = [item.alignment for item in problem.items]
    found: list[list[Entry]] = []
    for index in indices:
        own: list[Entry] = []
        # A permission leaves several parts, or one that rounding may close.
        parts: dict[int, list[tuple[int, int]]] = {other: [] for other in problem.permissions.get(index, ())}
        for other, low, high in problem.conflicts[index]:
            unit = gcd(alignments[index], alignments[other])
            low, high = low // unit * unit, -(-high // unit) * unit
            if other in parts:
                parts[other].append((low, high))
            else:
                own.append((position[other], low, high))
        for other, forbidden in parts.items():
            unit = gcd(alignments[index], alignments[other])
            own += [(position[other], low, high) for low, high in _merged(forbidden) if high - low > unit]
        found.append(sorted(own))
    return found


def _merged(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending open intervals as few as possible: two that overlap become one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
