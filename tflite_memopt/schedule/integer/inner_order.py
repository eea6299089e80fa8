"""The best order inside a closed set, and how heavy the set is while half done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..wiring import Wiring, bits
from .closed_set import ClosedSet

MAX_STATES = 2000
"""Half-done states that are looked at before a set counts as too wide to fuse."""


@dataclass(frozen=True)
class InnerOrder:
    """``order`` has the smallest peak of the set on its own. All bytes are relative to "not begun".

    ``end``: alive when complete. ``lightest``: alive in the lightest half-done state of *any* inner order.
    ``first_need`` and ``last_need``: least working set of any operator that can come first or last. ``written`` are
    the tensors that the set writes; ``left`` those of them that outlive it.
    """

    members: int
    order: tuple[int, ...]
    peak: int
    end: int
    lightest: int
    first_need: int
    last_need: int
    written: frozenset[int]
    left: tuple[int, ...]


@dataclass(frozen=True)
class _State:
    """Some members ran: bytes alive, the smallest peak on the way here, the way."""

    alive: int
    peak: int
    order: tuple[int, ...]


def inner_order(wiring: Wiring, chosen: ClosedSet) -> InnerOrder | None:
    """Dynamic programming over all half-done states; None for a single operator or too many states."""
    size = chosen.members.bit_count()
    if size < 2:
        return None
    level = {0: _State(0, 0, ())}
    lightest: list[int] = []
    first_need = last_need = states = 0
    for ran in range(size):
        level, last_need = _advance(wiring, chosen, level)
        states += len(level)
        if states > MAX_STATES:
            return None
        first_need = first_need if ran else last_need
        lightest += [state.alive for state in level.values()]
    end = lightest.pop()
    (best,) = level.values()
    written = [t for v in bits(chosen.members) for t in wiring.problem.steps[v].outputs]
    left = tuple(t for t in written if not wiring.dies(t, chosen.after))
    return InnerOrder(
        chosen.members, best.order, best.peak, end, min(lightest), first_need, last_need, frozenset(written), left
    )


def _advance(wiring: Wiring, chosen: ClosedSet, level: dict[int, _State]) -> tuple[dict[int, _State], int]:
    """The states with one member more, and the least need of the members that ran."""
    onward: dict[int, _State] = {}
    least: list[int] = []
    for done, state in level.items():
        executed = chosen.before | done
        for v in _ready(wiring, chosen, done):
            need, alive = wiring.run(executed, state.alive, v)
            least.append(need)
            peak, reached = max(state.peak, need), done | 1 << v
            known = onward.get(reached)
            if known is None or peak < known.peak:
                onward[reached] = _State(alive, peak, (*state.order, v))
    return onward, min(least)


def _ready(wiring: Wiring, chosen: ClosedSet, done: int) -> Iterator[int]:
    executed = chosen.before | done
    return (v for v in bits(chosen.members & ~done) if not wiring.needs[v] & ~executed)
