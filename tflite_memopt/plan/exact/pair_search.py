"""The search over disjunctions, for a group in which items may share bytes."""

from __future__ import annotations

from ...graph.search_limit import WorkAllowance
from ..compiled import Tables, code_for, zeros
from . import disjunctive
from .disjunctive import NODES, REGISTERS, WORK
from .group import ItemGroup, starts_of
from .questions import Steps
from .run import Course, SearchRun, run_in_chunks

_RULES = ("room", "weight")
"""Which pair a node decides; their numbers are those of ``disjunctive``."""
_SECOND_OPINION = 4
"""Nodes for each item that ``room`` gets at most: what it does not answer soon, it hardly ever does."""


class PairSearch:
    """See :class:`run.CapacitySearch`. What a run learns of the pairs' weights, the next one begins with."""

    rules = ("weight", "room")
    refutes_at_once = True
    growth = 8
    """What one node more decides it often decides at every capacity: few questions, and long ones."""
    steps: Steps = ((2, 1), (32, 1))

    def __init__(self, group: ItemGroup, compiles: bool = True) -> None:
        self.group, self._compiles = group, compiles
        _, pack = code_for(disjunctive, compiles)
        tables = _tables(group)
        self._conflicts, self._rows = len(tables["conflict_other"]), len(tables["row_need"])
        self._reserve = 2 * len(group.items) + self._conflicts + 1
        self._arrays = pack(tables)
        self._weights = pack({"weight": [1] * self._conflicts})

    @property
    def first_nodes(self) -> int:
        """What a node decides mostly decides other pairs, too: a plan takes two for each item, or an eighth of all."""
        return max(2 * len(self.group.items), self._conflicts // 8)

    def run(self, capacity: int, rule: str, nodes: int, allowance: WorkAllowance) -> SearchRun:
        """Look for offsets within ``capacity`` bytes, with at most so many ``nodes``; work comes from the allowance."""
        code = code_for(disjunctive, self._compiles)[0]  # not kept, since no module can be sent to another process
        items, is_compiled = len(self.group.items), code is not disjunctive
        data = code.PairData(self._arrays | {"rule": _RULES.index(rule), "reserve": self._reserve})
        tables = zeros(self._state_lengths(), is_compiled) | self._weights
        state = code.PairState(tables)
        code.start_pairs(data, state, capacity)
        most = min(nodes, _SECOND_OPINION * items) if rule == "room" else nodes
        course = Course(state, tables, (NODES, WORK), items, is_compiled)
        return run_in_chunks(lambda until, work: code.run_pairs(data, state, until, work), course, most, allowance)

    def _state_lengths(self) -> dict[str, int]:
        lengths = dict.fromkeys(disjunctive.PairState.__annotations__, len(self.group.items))
        lengths |= {"decided": self._conflicts, "decided_cause": self._conflicts, "registers": REGISTERS}
        lengths |= {"dirty": self._rows, "is_dirty": self._rows}
        lengths |= dict.fromkeys(("frame_conflict", "frame_mark", "frame_side"), self._conflicts + 1)
        return lengths | dict.fromkeys(("trail_kind", "trail_at", "trail_value", "trail_cause"), 2 * self._reserve)


def _tables(group: ItemGroup) -> Tables:
    entries = [(i, *entry) for i, own in enumerate(group.conflicts) for entry in own]
    place = {entry: k for k, entry in enumerate(entries)}
    rows: list[list[int]] = [[] for _ in group.items]
    for row, inside in enumerate(group.section_items):
        for i in inside:
            rows[i].append(row)
    tables = group.item_tables
    earlier = [sum(other < i for other, _, _ in own) for i, own in enumerate(group.conflicts)]
    return tables | {
        "upper_from": [begin + count for begin, count in zip(tables["conflict_from"], earlier, strict=False)],
        "conflict_owner": [i for i, _, _, _ in entries],
        "conflict_mate": [place[other, i, -high, -low] for i, other, low, high in entries],
        "row_need": [section.nbytes for section in group.sections],
        "own_from": starts_of(rows),
        "own_row": [row for own in rows for row in own],
    }
