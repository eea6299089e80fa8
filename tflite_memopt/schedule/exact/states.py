"""A contracted network in bit sets: what a search needs to run one block in a given state, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..wiring import bits, union
from .block import Moment as BlockMoment
from .network import Network

_MOST_BLOCKS_BOUNDED = 3000
"""The bound of tensors alive across a block is quadratic in the number of blocks."""

Death = tuple[int, int]
"""(blocks that also read a tensor, bytes): the bytes are free once all those blocks have run."""


@dataclass(frozen=True)
class Moment:
    """``extra`` bytes less what has died of ``released``, less the largest that has died of ``reuses``."""

    extra: int
    released: tuple[Death, ...]
    reuses: tuple[Death, ...]

    @property
    def is_sure(self) -> bool:
        """Whether it needs the same in every state."""
        return not (self.released or self.reuses)


@dataclass(frozen=True)
class States:
    """Block b is bit b of every set; blocks are numbered in a topological order.

    ``need[b]`` is its need on top of the bytes alive in every state, ``moments[b]`` may ask for more in some.
    ``grow[b]`` is what it adds to them before its unsure ``deaths``. ``least_need[b]`` is a lower bound in bytes
    of the working set while it runs, in any order. ``cuts`` are the blocks that all others come before or after,
    and the last block.
    """

    orders: tuple[tuple[int, ...], ...]
    needs: tuple[int, ...]
    feeds: tuple[tuple[int, ...], ...]
    grow: tuple[int, ...]
    deaths: tuple[tuple[Death, ...], ...]
    need: tuple[int, ...]
    moments: tuple[tuple[Moment, ...], ...]
    least_need: tuple[int, ...]
    alive_at_start: int
    cuts: tuple[int, ...]

    @cached_property
    def unsure(self) -> tuple[int, ...]:
        """For each block those whose having run changes its cost."""
        return tuple(
            union(others for others, _ in deaths)
            | union(others for moment in moments for others, _ in (*moment.released, *moment.reuses))
            for deaths, moments in zip(self.deaths, self.moments, strict=True)
        )

    @cached_property
    def touches(self) -> tuple[int, ...]:
        """For each block those whose cost changes when it has run."""
        # By tensor: many blocks may share one, and each pair of them once would be quadratic.
        sharing: dict[int, int] = {}
        for b, moments in enumerate(self.moments):
            shared = (*self.deaths[b], *(death for m in moments for death in (*m.released, *m.reuses)))
            for readers in {others | 1 << b for others, _ in shared}:
                sharing[readers] = sharing.get(readers, 0) | 1 << b
        touched = [0] * len(self.needs)
        for readers, changed in sharing.items():
            for b in bits(readers):
                touched[b] |= changed & ~(1 << b)
        return tuple(touched)

    def cost(self, executed: int, b: int) -> tuple[int, int]:
        """(working set in bytes while block b runs, bytes alive after it), both less the bytes alive before it."""
        return self._need(~executed, b), self._change(~executed, b)

    def _change(self, waiting: int, b: int) -> int:
        return self.grow[b] - sum(size for others, size in self.deaths[b] if not others & waiting)

    def _need(self, waiting: int, b: int) -> int:
        need = self.need[b]
        for moment in self.moments[b]:
            extra = moment.extra - sum(size for others, size in moment.released if not others & waiting)
            extra -= max((saved for others, saved in moment.reuses if not others & waiting), default=0)
            need = max(need, extra)
        return need


def compile_states(network: Network) -> States:
    """Number the blocks and turn names into bit sets."""
    order = network.topological()
    number = {v: b for b, v in enumerate(order)}
    home = {op: number[v] for v in order for op in network.order[v]}
    needs = tuple(sum(1 << number[u] for u in network.needs[v]) for v in order)
    feeds = tuple(tuple(sorted(number[w] for w in network.feeds[v])) for v in order)
    readers = [union(1 << home[op] for op in bits(mask)) for mask in network.readers]
    before, after = _closure(needs, feeds)
    costs = [_costs(network, v, b, readers, before[b], after[b]) for b, v in enumerate(order)]
    least = [cost.least_need for cost in costs]
    if len(order) <= _MOST_BLOCKS_BOUNDED:
        writer = {t: number[v] for v in order for t in network.outputs[v]}
        least = _with_across(network, least, order, writer, before, after, readers)
    return States(
        orders=tuple(tuple(network.order[v]) for v in order),
        needs=needs,
        feeds=feeds,
        grow=tuple(cost.grow for cost in costs),
        deaths=tuple(cost.deaths for cost in costs),
        need=tuple(max((m.extra for m in cost.moments if m.is_sure), default=0) for cost in costs),
        moments=tuple(tuple(m for m in cost.moments if not m.is_sure) for cost in costs),
        least_need=tuple(least),
        alive_at_start=sum(network.sizes[t] for t in network.inputs if network.readers[t] or t in network.kept),
        cuts=_cuts(before, after),
    )


@dataclass(frozen=True)
class _Costs:
    """One block's part of ``States``; ``least_need`` is without what is alive across it."""

    grow: int
    deaths: tuple[Death, ...]
    moments: tuple[Moment, ...]
    least_need: int


def _costs(network: Network, v: int, b: int, readers: Sequence[int], before: int, after: int) -> _Costs:
    """Block v as number b, when ``before`` and ``after`` it the other blocks run in every order."""
    block, sizes = network.blocks[v], network.sizes
    may = frozenset(t for t in block.inputs - network.kept if not readers[t] & after)
    sure = frozenset(t for t in may if not readers[t] & ~(1 << b | before))
    others = {t: readers[t] & ~(1 << b) for t in may - sure}
    return _Costs(
        block.change(sizes, sure),
        tuple((others[t], sizes[t]) for t in sorted(others)),
        tuple(_in_bits(moment.settled(sure, sizes), others, sizes) for moment in block.moments),
        sum(sizes[t] for t in block.inputs - network.outputs[v]) + block.need(sizes, may),
    )


def _in_bits(moment: BlockMoment, others: Mapping[int, int], sizes: Sequence[int]) -> Moment:
    released = tuple((others[t], sizes[t]) for t in sorted(moment.released) if t in others)
    return Moment(
        moment.extra, released, tuple((others[r.tensor], r.saved) for r in moment.reuses if r.tensor in others)
    )


def _closure(needs: Sequence[int], feeds: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(before, after): all blocks that run before and after each block in every order."""
    before, after = [0] * len(needs), [0] * len(needs)
    for b, some in enumerate(needs):
        before[b] = union(1 << u | before[u] for u in bits(some))
    for b in reversed(range(len(needs))):
        after[b] = union(1 << w | after[w] for w in feeds[b])
    return before, after


def _cuts(before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """Blocks that every other block comes before or after, and the last one: numbers in ascending order."""
    every = (1 << len(before)) - 1
    cuts = {b for b in range(len(before)) if before[b] | after[b] | 1 << b == every}
    return tuple(sorted(cuts | {len(before) - 1})) if before else ()


def _with_across(
    network: Network,
    least: Sequence[int],
    order: Sequence[int],
    writer: Mapping[int, int],
    before: Sequence[int],
    after: Sequence[int],
    readers: Sequence[int],
) -> list[int]:
    """``least`` with every tensor that is alive across a block in all orders."""
    total = list(least)
    for t, mine in enumerate(readers):
        if t not in writer and t not in network.inputs:
            continue
        across = after[writer[t]] if t in writer else (1 << len(order)) - 1
        if t not in network.kept:
            across &= union(before[r] for r in bits(mine))
        for b in bits(across):
            if t not in network.blocks[order[b]].inputs:
                total[b] += network.sizes[t]
    return total
