"""One run of the tree: its tables made, its trail lengthened where that is needed, its result read."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

from ...graph.search_limit import WorkAllowance
from ..compiled import Tables, code_for
from . import tree
from .group import TreeGroup
from .tree import FOUND, FULL, LIMIT, NODES, WORK

_PLAIN_CHUNK = 200
_COMPILED_CHUNK = 5_000
"""Nodes between two looks at the emergency stop."""
_TRAIL_TABLES = ("trail_kind", "trail_item", "trail_value")


@dataclass(frozen=True)
class TreeRun:
    """How a run ended (``tree.FOUND``, ``NONE`` or ``LIMIT``), nodes, turns of its loops, and the offsets if found."""

    end: int
    nodes: int
    work: int
    offsets: tuple[int, ...] = ()


def run_tree(
    group: TreeGroup,
    capacity: int,
    ordering: str,
    nodes: int,
    allowance: WorkAllowance,
    compiles: bool = True,
) -> TreeRun:
    """Look for offsets within ``capacity`` bytes by one ordering, with at most so many ``nodes``.

    The work is taken from the allowance.
    """
    code, pack = code_for(tree, compiles)
    chunk = _PLAIN_CHUNK if code is tree else _COMPILED_CHUNK
    tables = group.tables | {"order": group.orders[ordering]}
    switches = group.switches | {"by_load": int(ordering.startswith("T"))}
    data = code.TreeData(pack(tables) | switches)
    state = code.TreeState(pack(_state_tables(len(group.indices), len(tables["row_load"]), switches["reserve"])))
    code.start(data, state, capacity)
    end, work = LIMIT, allowance.left
    while _may_go_on(end, state, nodes, work) and not allowance.is_too_late():
        end = code.run(data, state, min(nodes, state.registers[NODES] + chunk), work)
        if end == FULL:
            _lengthen_trail(state)
    offsets = tuple(state.least[k] for k in range(len(group.indices))) if end == FOUND else ()
    allowance.left -= state.registers[WORK]
    return TreeRun(LIMIT if end == FULL else end, state.registers[NODES], state.registers[WORK], offsets)


def _may_go_on(end: int, state: Any, nodes: int, work: int) -> bool:
    return end in (LIMIT, FULL) and state.registers[NODES] < nodes and state.registers[WORK] < work


def _state_tables(items: int, rows: int, reserve: int) -> Tables:
    lengths = dict.fromkeys(tree.TreeState.__annotations__, items + 1)
    lengths |= {"left": rows, "dirty": rows, "is_dirty": rows, "crossing": rows, "parts": 4 * items + 8, "registers": 8}
    lengths |= dict.fromkeys(_TRAIL_TABLES, 4 * reserve)
    return {name: [0] * length for name, length in lengths.items()}


def _lengthen_trail(state: Any) -> None:
    """Twice as long."""
    for name in _TRAIL_TABLES:
        old = getattr(state, name)
        setattr(state, name, old * 2 if isinstance(old, list) else array("q", [*old, *old]))
