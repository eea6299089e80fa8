"""The plan of one candidate tried on a whole family: the same relative places, other sizes.

    planned    a  [....]              wider    a  [........]
               b        [...]                  b            [......]
               c  [..............]             c  [....................]

Items go as low as those that lie below them in the plan allow. Whether that is a plan is then checked for each
candidate, pair by pair, and TFLM's head under it is computed: scratch lies where TFLM puts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..graph.interval import intersect
from ..memory.in_force import offsets_in_force, offsets_to_write
from ..memory.layout import MemoryLayout, memory_layout
from ..memory.together import solve_together
from ..options import Options
from ..plan.problem import Relation
from .bound import arena_bytes
from .description import Dimension, GraphSketch, Sizes, model_of
from .facts import FactTable, facts_of, names_of

Flags = npt.NDArray[np.bool_]
_NEVER = 1 << 60
"""A distance that no plan has."""


@dataclass(frozen=True)
class _Permission:
    """As ``Relation``, with a distance for each candidate."""

    first: int
    second: int
    distance: Sizes
    exact: bool


def heads_under_one_plan(family: GraphSketch, table: FactTable, options: Options) -> Sizes:
    """For each candidate a head in bytes that a plan for its own order has, that of the first one as its model.

    -1 where these places are no plan.
    """
    model = model_of(family.candidate(0))
    layout = memory_layout(model, table.profile)
    plan = solve_together(layout.problem, layout.groups, options.planner, options.plan_limit())
    offsets = offsets_in_force(layout, offsets_to_write(model, layout, plan.offsets))
    return _FamilyReplay(family, table, layout, offsets).heads()


class _FamilyReplay:
    """Items are those of the layout, by number; scratch comes after all tensors."""

    def __init__(self, family: GraphSketch, table: FactTable, layout: MemoryLayout, planned: Sequence[int]) -> None:
        self._family, self._layout, self._planned = family, layout, planned
        self._facts = [facts_of(family, operator, table) for operator in family.operators]
        self._numbers = {tensor.name: number for number, tensor in enumerate(layout.tensors)}
        self._is_alike: Flags = np.ones(family.candidates, np.bool_)
        self._sizes = [self._each(arena_bytes(family.tensors[tensor.name])) for tensor in layout.tensors]
        self._sizes += self._scratches()
        self._permissions = list(self._permitted())
        pairs = combinations(range(len(layout.items)), 2)
        self._together = [(i, j) for i, j in pairs if intersect(layout.items[i], layout.items[j])]

    def heads(self) -> Sizes:
        """The head of each candidate."""
        offsets = self._lowered()
        self._place_scratch(offsets)
        is_plan = self._is_alike
        for i, j in self._together:
            is_plan = is_plan & self._may(i, j, offsets)
        ends = [offset + size for offset, size in zip(offsets, self._sizes, strict=True)]
        heads: Sizes = np.where(is_plan, np.max(ends, axis=0), -1)
        return heads

    def _each(self, dimension: Dimension) -> Sizes:
        return np.broadcast_to(np.asarray(dimension, np.int64), (self._family.candidates,))

    def _scratches(self) -> Iterator[Sizes]:
        """Of the requests that the first candidate makes; others that make none of them, or more, are not alike."""
        for facts, kind in self._facts:
            kinds = np.zeros(self._family.candidates, np.intp) if kind is None else kind
            own = facts[kinds[0]].scratches
            same = [[bool(size) for size in each.scratches] == [bool(size) for size in own] for each in facts]
            self._is_alike &= np.asarray(same)[kinds]
            for slot in (slot for slot, size in enumerate(own) if size):
                sizes = [each.scratches[slot] if is_same else 0 for each, is_same in zip(facts, same, strict=True)]
                yield np.asarray(sizes, np.int64)[kinds]

    def _permitted(self) -> Iterator[_Permission]:
        """What kernels permit directly, in the order of the plan; views are of whole tensors."""
        relations = set(self._layout.problem.relations)
        for operator, (facts, kind) in zip(self._family.operators, self._facts, strict=True):
            names, kinds = names_of(operator), np.zeros(self._family.candidates, np.intp) if kind is None else kind
            # Parts of other tensors may fit together in one candidate and not in another.
            is_whole = [not any(each.permits[p] for p in each.permits if p[2]) for each in facts]
            self._is_alike &= np.asarray(is_whole)[kinds]
            for permit, distance in facts[kinds[0]].permits.items():
                first, second = (self._numbers.get(str(names[slot]), -1) for slot in permit[:2])
                if first >= 0 and second >= 0 and _is_among(Relation(first, second, distance, permit[3]), relations):
                    distances = [each.permits.get(permit, _NEVER) for each in facts]
                    yield _Permission(first, second, np.asarray(distances, np.int64)[kinds], permit[3])

    def _lowered(self) -> list[Sizes]:
        """Offsets of all items, each as low as those below it in the plan allow."""
        zero = np.zeros(self._family.candidates, np.int64)
        offsets = [zero] * len(self._sizes)
        neighbors: dict[int, list[int]] = {}
        for i, j in self._together:
            neighbors.setdefault(i, []).append(j)
            neighbors.setdefault(j, []).append(i)
        done: set[int] = set()
        for i in sorted(range(len(offsets)), key=lambda i: (self._planned[i], i)):
            for j in done.intersection(neighbors.get(i, ())):
                offsets[i] = np.maximum(offsets[i], offsets[j] + self._gap(j, i))
            offsets[i] = -(-offsets[i] // self._layout.items[i].alignment) * self._layout.items[i].alignment
            done.add(i)
        return offsets

    def _gap(self, below: int, above: int) -> Sizes:
        """From the offset of one item to that of one above it, at least."""
        if self._planned[above] >= self._planned[below] + self._layout.items[below].size:
            return self._sizes[below]
        for each in self._permissions:
            if (each.first, each.second) == (above, below):
                return each.distance
            if (each.first, each.second) == (below, above) and each.exact:
                return -each.distance
        return np.full_like(self._sizes[below], -_NEVER)  # sharing sets no lower limit; the check will tell

    def _place_scratch(self, offsets: list[Sizes]) -> None:
        """Into the first gap between the tensors, as TFLM does. An operator with several requests is not done here."""
        first = len(self._layout.tensors)
        around: dict[int, list[int]] = {number: [] for number in range(first, len(offsets))}
        for i, j in self._together:
            if j >= first:
                around[j].append(i)
            if i >= first:
                self._is_alike[:] = False
        for number, tensors in around.items():
            offsets[number] = self._lowest(number, tensors, offsets)

    def _lowest(self, number: int, others: Sequence[int], offsets: Sequence[Sizes]) -> Sizes:
        """The lowest offset of an item at which it shares no byte with others."""
        size, zero = self._sizes[number], np.zeros_like(self._sizes[number])
        best = np.full_like(size, _NEVER)
        for start in (zero, *(offsets[j] + self._sizes[j] for j in others)):
            is_free = np.ones(len(size), np.bool_)
            for j in others:
                is_free &= (start + size <= offsets[j]) | (offsets[j] + self._sizes[j] <= start)
            best = np.where(is_free, np.minimum(best, start), best)
        return best

    def _may(self, i: int, j: int, offsets: Sequence[Sizes]) -> Flags:
        """Whether two items that are alive together lie apart, or share bytes as permitted."""
        found: Flags = (offsets[i] + self._sizes[i] <= offsets[j]) | (offsets[j] + self._sizes[j] <= offsets[i])
        for each in self._permissions:
            if {each.first, each.second} == {i, j}:
                between = offsets[each.first] - offsets[each.second]
                found = found | (between == each.distance if each.exact else between >= each.distance)
        return found


def _is_among(relation: Relation, relations: set[Relation]) -> bool:
    """Whether it holds in the order of the plan; views are told from either side."""
    other = Relation(relation.second, relation.first, -relation.distance, exact=True)
    return relation in relations or (relation.exact and other in relations)
