"""The search over disjunctions, for a group in which items may share bytes."""

from __future__ import annotations

from ...graph.search_limit import WorkAllowance
from ..compiled import Tables, code_for
from . import disjunctive
from .disjunctive import NODES, WORK
from .group import ItemGroup, starts_of
from .run import SearchRun, run_in_chunks

_RULES = ("room", "weight")
"""Which pair a node decides; their numbers are those of ``disjunctive``."""


class PairSearch:
    """See :class:`run.CapacitySearch`. What a run learns of the pairs' weights, the next one begins with."""

    rules = ("weight", "room")
    refutes_at_once = True

    def __init__(self, group: ItemGroup, compiles: bool = True) -> None:
        self.group = group
        self._code, self._pack = code_for(disjunctive, compiles)
        tables = _tables(group)
        self._conflicts, self._rows = len(tables["conflict_other"]), len(tables["row_need"])
        self._reserve = 2 * len(group.items) + self._conflicts + 1
        self._arrays = self._pack(tables)
        self._weights = [1] * self._conflicts

    def run(self, capacity: int, rule: str, nodes: int, allowance: WorkAllowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes, with at most so many ``nodes``; work comes from the allowance."""
        code = self._code
        data = code.PairData(self._arrays | {"rule": _RULES.index(rule), "reserve": self._reserve})
        state = code.PairState(self._pack(self._state_tables()))
        code.start_pairs(data, state, capacity)
        found = run_in_chunks(
            lambda most, work: code.run_pairs(data, state, most, work),
            state,
            (NODES, WORK),
            len(self.group.items),
            nodes,
            allowance,
            code is not disjunctive,
        )
        self._weights = list(state.weight)
        return found

    def _state_tables(self) -> Tables:
        lengths = dict.fromkeys(disjunctive.PairState.__annotations__, len(self.group.items))
        lengths |= {"decided": self._conflicts, "dirty": self._rows, "is_dirty": self._rows, "registers": 8}
        lengths |= dict.fromkeys(("frame_conflict", "frame_mark", "frame_side"), self._conflicts + 1)
        lengths |= dict.fromkeys(("trail_kind", "trail_at", "trail_value"), 2 * self._reserve)
        return {name: [0] * length for name, length in lengths.items()} | {"weight": self._weights}


def _tables(group: ItemGroup) -> Tables:
    entries = [(i, *entry) for i, own in enumerate(group.conflicts) for entry in own]
    place = {entry: k for k, entry in enumerate(entries)}
    rows: list[list[int]] = [[] for _ in group.items]
    for row, inside in enumerate(group.section_items):
        for i in inside:
            rows[i].append(row)
    return group.item_tables | {
        "conflict_owner": [i for i, _, _, _ in entries],
        "conflict_mate": [place[other, i, -high, -low] for i, other, low, high in entries],
        "row_need": [section.nbytes for section in group.sections],
        "own_from": starts_of(rows),
        "own_row": [row for own in rows for row in own],
    }
