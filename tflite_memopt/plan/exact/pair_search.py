"""The search over disjunctions, for a group in which items may share bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...graph.search_limit import WorkAllowance
from ..compiled import Tables, code_for
from . import disjunctive
from .disjunctive import NODES, WORK
from .group import ItemGroup, starts_of
from .run import SearchRun, run_in_chunks

_RULES = ("room", "move")
"""The pair with the least room on its better side; the one that moves farthest. See ``disjunctive``."""


@dataclass(frozen=True)
class PairSearch:
    """See :class:`run.CapacitySearch`."""

    group: ItemGroup
    compiles: bool = True
    rules: tuple[str, ...] = _RULES
    refutes_at_once: bool = True

    def run(self, capacity: int, rule: str, nodes: int, allowance: WorkAllowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes, with at most so many ``nodes``; work comes from the allowance."""
        code, pack = code_for(disjunctive, self.compiles)
        tables, items = self._tables, len(self.group.items)
        reserve = 2 * items + len(tables["conflict_other"]) + 1
        data = code.PairData(pack(tables) | {"rule": _RULES.index(rule), "reserve": reserve})
        state = code.PairState(pack(_state_tables(items, len(tables["conflict_other"]), len(tables["row_need"]))))
        code.start_pairs(data, state, capacity)
        is_compiled = code is not disjunctive
        return run_in_chunks(
            lambda most, work: code.run_pairs(data, state, most, work),
            state,
            (NODES, WORK),
            len(self.group.items),
            nodes,
            allowance,
            is_compiled,
        )

    @cached_property
    def _tables(self) -> Tables:
        group = self.group
        tables = group.item_tables
        entries = [(i, *entry) for i, own in enumerate(group.conflicts) for entry in own]
        place = {entry: k for k, entry in enumerate(entries)}
        rows: list[list[int]] = [[] for _ in group.items]
        for row, inside in enumerate(group.section_items):
            for i in inside:
                rows[i].append(row)
        return tables | {
            "conflict_owner": [i for i, _, _, _ in entries],
            "conflict_mate": [place[other, i, -high, -low] for i, other, low, high in entries],
            "row_need": [section.nbytes for section in group.sections],
            "own_from": starts_of(rows),
            "own_row": [row for own in rows for row in own],
        }


def _state_tables(items: int, conflicts: int, rows: int) -> Tables:
    lengths = dict.fromkeys(disjunctive.PairState.__annotations__, items)
    lengths |= {"decided": conflicts, "dirty": rows, "is_dirty": rows, "registers": 8}
    lengths |= dict.fromkeys(("frame_conflict", "frame_mark", "frame_side"), conflicts + 1)
    lengths |= dict.fromkeys(("trail_kind", "trail_at", "trail_value"), 2 * (2 * items + conflicts + 1))
    return {name: [0] * length for name, length in lengths.items()}
