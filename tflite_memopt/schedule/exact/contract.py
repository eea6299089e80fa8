"""Exact reductions: blocks that may run back to back in some optimal order become one block.

With ``need`` the largest working set of a block and ``change`` what it adds to the bytes alive (negative when it
frees more than it writes), first -> second become one block when

    late     second alone waits for first, first never frees more than it writes, and its need is never above
             second's: running first earlier only holds memory (the rising case of Theorem IV.1);
    soon     second waits for first alone, second never writes more than it frees, and its need is never above
             first's: running second at once only frees memory (the falling case of Theorem IV.1);
    hill     each waits for the other alone, first rises and second falls: it never pays to stop on top
             (Theorem IV.2 on two operators).

Source: Zhong et al., "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization",
section IV.B. The paper states the rules for single-tensor chains. Here a block may have further inputs that others
read too: "never" then means in every state, and a rule is used only where it holds in all of them. That the rules
keep the optimum follows from the bytes alive being a submodular function of the set of executed operators: what an
operator adds to them can only fall when more has run before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from .block import Block
from .network import Network

_MOST_SWEEPS = 50
_MOST_MOMENTS = 24
"""Moments of a block: more than these, as where a thousand branches meet, would cost more than they save."""
_MOST_UNSURE = 6
"""Inputs whose death is unsure: all their subsets are tried, so there is a limit."""


def contract(network: Network) -> None:
    """Apply the three rules, sweep by sweep, until a sweep finds nothing."""
    for _ in range(_MOST_SWEEPS):
        found = [_contract_at(network, v) for v in sorted(network.blocks) if v in network.blocks]
        if not any(found):
            return


def _contract_at(network: Network, v: int) -> bool:
    """Join block v with its neighbours while a rule allows it; whether one did."""
    joined = False
    while v in network.blocks:
        pair = next((pair for pair in _edges_at(network, v) if _may_join(network, *pair)), None)
        if pair is None:
            break
        network.contract(*pair)
        joined = True
    return joined


def _edges_at(network: Network, v: int) -> Iterator[tuple[int, int]]:
    """Edges in and out of a block that have no detour: their ends can become one block without a cycle."""
    if len(network.feeds[v]) == 1:
        yield v, next(iter(network.feeds[v]))
    if len(network.needs[v]) == 1:
        yield next(iter(network.needs[v])), v


def _may_join(network: Network, first: int, second: int) -> bool:
    a, b, sizes = network.blocks[first], network.blocks[second], network.sizes
    if len(a.moments) + len(b.moments) > _MOST_MOMENTS:
        return False
    rises = len(network.feeds[first]) == 1 and a.change(sizes, network.may_die(first) - b.inputs) >= 0
    falls = len(network.needs[second]) == 1 and b.change(sizes, network.always_dying(second)) <= 0
    if not (rises or falls):
        return False
    if rises and falls and _is_sure(network, first, second):
        return True
    sure = network.always_dying(first) | network.always_dying(second)
    unsure = sorted((network.may_die(first) | network.may_die(second)) - sure)
    if len(unsure) > _MOST_UNSURE:
        return False
    for some in _subsets(unsure):
        need_first, need_second = _needs(a, b, sizes, sure | some)
        rises, falls = rises and need_first <= need_second, falls and need_second <= need_first
        if not (rises or falls):
            return False
    return True


def _is_sure(network: Network, first: int, second: int) -> bool:
    """Whether it is known which inputs of both blocks die, whatever ran before."""
    both = network.blocks[first].inputs & network.blocks[second].inputs
    sure = network.always_dying(first) | network.always_dying(second)
    return not both and network.may_die(first) | network.may_die(second) <= sure


def _needs(a: Block, b: Block, sizes: tuple[int, ...], dying: frozenset[int]) -> tuple[int, int]:
    """Needs of both blocks, in bytes on top of what is alive before the first, when they run back to back."""
    early = dying - b.inputs
    return a.need(sizes, early), a.change(sizes, early) + b.need(sizes, dying)


def _subsets(chosen: list[int]) -> Iterator[frozenset[int]]:
    for count in range(len(chosen) + 1):
        yield from map(frozenset, combinations(chosen, count))
