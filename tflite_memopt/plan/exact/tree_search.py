"""The search over placements, for a group in which no item may share bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm

from ...graph.search_limit import WorkAllowance
from ..compiled import Tables, code_for, zeros
from ..problem import Item
from . import tree
from .group import ItemGroup, starts_of
from .questions import STEPS, Steps
from .run import Course, SearchRun, run_in_chunks
from .settings import TreeSettings
from .tree import NODES, WORK


@dataclass(frozen=True)
class TreeSearch:
    """See :class:`run.CapacitySearch`; the rules are orderings."""

    group: ItemGroup
    settings: TreeSettings

    @property
    def refutes_at_once(self) -> bool:
        """The first node refutes hardly anything that the sections do not."""
        return False

    @property
    def rules(self) -> tuple[str, ...]:
        """See ``settings.ORDERINGS``."""
        return self.settings.orderings

    @property
    def first_nodes(self) -> int:
        """Enough to place every item."""
        return 2 * len(self.group.items)

    @property
    def growth(self) -> int:
        """Orderings differ much: short runs of each are worth their while."""
        return 2

    @property
    def steps(self) -> Steps:
        """All that there are."""
        return STEPS

    def run(self, capacity: int, rule: str, nodes: int, allowance: WorkAllowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes, with at most so many ``nodes``; work comes from the allowance."""
        code, pack = code_for(tree, self.settings.compiles)
        tables, switches = self._tables | {"order": self._orders[rule]}, self._switches
        data = code.TreeData(pack(tables) | switches | {"by_load": int(rule.startswith("T"))})
        is_compiled = code is not tree
        lengths = _state_lengths(len(tables["size"]), len(tables["row_load"]), switches["reserve"])
        changing = zeros(lengths, is_compiled)
        state = code.TreeState(changing)
        code.start(data, state, capacity)
        course = Course(state, changing, (NODES, WORK), len(self.group.items), is_compiled)
        return run_in_chunks(lambda most, work: code.run(data, state, most, work), course, nodes, allowance)

    @property
    def _switches(self) -> dict[str, int]:
        settings, group = self.settings, self.group
        return {
            "canonical": int(settings.canonical),
            "decomposes": int(settings.decomposes),
            "ranks_anew": int(settings.ranks_anew),
            "infers": int(settings.infers),
            "reserve": 4 * len(group.items) + 2 * max(map(len, group.conflicts)) + 16,
        }

    @cached_property
    def _tables(self) -> Tables:
        group = self.group
        counts: list[list[tuple[int, int]]] = [[] for _ in group.items]
        for row, (inside, section) in enumerate(zip(group.section_items, group.sections, strict=True)):
            for i, nbytes in zip(inside, section.padded, strict=True):
                counts[i].append((row, nbytes))
        tables = group.item_tables
        if not self.settings.canonical:
            tables["alignment"] = self._grid()
        return tables | {
            "first": group.first,
            "last": group.last,
            "count_from": starts_of(counts),
            "count_row": [row for own in counts for row, _ in own],
            "count_bytes": [nbytes for own in counts for _, nbytes in own],
            "row_load": [section.nbytes + section.spare for section in group.sections],
            "row_spare": [section.spare for section in group.sections],
        }

    def _grid(self) -> list[int]:
        """Alignments so that all offsets are multiples of what differences and alignments are multiples of."""
        group = self.group
        ends = (high for own in group.conflicts for _, _, high in own)
        given = (item.offset or 0 for item in group.items)
        step = gcd(*ends, *given, *(alignment for alignment in group.alignments if alignment > 1))
        return [lcm(alignment, step or 1) for alignment in group.alignments]

    @cached_property
    def _orders(self) -> dict[str, list[int]]:
        return {ordering: _ranks(self.group.items, ordering) for ordering in self.settings.orderings}


def _ranks(items: Sequence[Item], ordering: str) -> list[int]:
    """The items' ranks by life and area alone, highest first; equal ones share a rank."""
    life = [item.end - item.start for item in items]
    area = [(item.end - item.start) * item.size for item in items]
    letters = [letter for letter in ordering if letter != "T"]
    keys = [tuple({"W": life[i], "A": area[i]}[letter] for letter in letters) for i in range(len(items))]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return [ranks[key] for key in keys]


def _state_lengths(items: int, rows: int, reserve: int) -> dict[str, int]:
    lengths = dict.fromkeys(tree.TreeState.__annotations__, items + 1)
    lengths |= {"left": rows, "dirty": rows, "is_dirty": rows, "crossing": rows, "parts": 4 * items + 8, "registers": 8}
    lengths |= dict.fromkeys(("trail_kind", "trail_at", "trail_value"), 4 * reserve)
    return lengths
