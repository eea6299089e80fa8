"""Lower bounds on the arena for a fixed order, each with a certificate: a section of time and items alive in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from ..graph.alignment import aligned
from .permissions import Intervals
from .problem import BoundCertificate, Item, PlanProblem
from .sections import maximal_sections


@dataclass(frozen=True)
class SectionBound:
    """Items of a section whose bytes add up, but for what related ones may share.

    ``padded`` are their sizes, rounded up to the ``unit`` of their offsets; ``shared`` are pairs of them and the bytes
    that the two may have in common at most. The topmost may lack up to ``spare`` bytes of its padding.
    """

    items: tuple[int, ...]
    padded: tuple[int, ...]
    shared: tuple[tuple[int, int, int], ...]
    unit: int
    spare: int

    @property
    def nbytes(self) -> int:
        """Bytes that no plan goes below: a union has at least the sum of its parts less what pairs have in common."""
        return sum(self.padded) - sum(nbytes for _, _, nbytes in self.shared) - self.spare


def max_breadth(problem: PlanProblem) -> int:
    """Bytes of ``section_bound``."""
    return section_bound(problem).nbytes


def section_bound(problem: PlanProblem) -> BoundCertificate:
    """Largest number of bytes that the items alive in one section need, found by a sweep over births and deaths.

    Without relations that is the sum of their sizes; related items may share bytes, and count for less. A given offset
    reaches as far as it does.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5.1.
    """
    if not problem.known_bounds:
        problem.known_bounds.append(_section_bound(problem))
    return problem.known_bounds[0]


def _section_bound(problem: PlanProblem) -> BoundCertificate:
    best = BoundCertificate(0)
    for index, item in enumerate(problem.items):
        if item.offset is not None and item.offset + item.size > best.nbytes:
            best = BoundCertificate(item.offset + item.size, item.start, (index,), given=True)
    # From the fullest section on: once even the plain sum of a section is below what is found, so are all others.
    for scope, breadth in sorted(maximal_sections(_padded(problem.items)), key=lambda pair: -pair[1]):
        if breadth <= best.nbytes:
            break
        alive = [i for i, item in enumerate(problem.items) if item.start <= scope < item.end and item.size]
        found = section_items(problem, alive)
        if found.nbytes > best.nbytes:
            best = BoundCertificate(found.nbytes, scope, found.items)
    return best


def _padded(items: Sequence[Item]) -> Sequence[Item]:
    """The items with their sizes rounded up to their own alignment, if there are any to round."""
    if all(item.size % item.alignment == 0 for item in items):
        return items
    return [replace(item, size=aligned(item.size, item.alignment)) for item in items]


def section_items(problem: PlanProblem, alive: Sequence[int]) -> SectionBound:
    """Items with bytes, of those that are alive at one time, for as high a bound as is found quickly.

    All that have no relation, and those whose bytes are more than what they may share with the ones taken before:
    largest first, then by turns put in or left out as long as that raises the bound.
    """
    items, permissions = problem.items, problem.permissions
    unit = gcd(*(items[i].alignment for i in alive)) or 1
    chosen = [i for i in alive if i not in permissions]
    related = sorted((i for i in alive if i in permissions), key=lambda i: (-items[i].size, i))
    shares = _shares(problem, related, unit)
    chosen += _worth_taking({i: aligned(items[i].size, unit) for i in related}, shares)
    padded = tuple(aligned(items[i].size, unit) for i in chosen)
    spare = max((full - items[i].size for i, full in zip(chosen, padded, strict=True)), default=0)
    inside = set(chosen)
    shared = ((i, j, n) for i in related if i in inside for j, n in shares[i].items() if i < j and j in inside and n)
    return SectionBound(tuple(chosen), padded, tuple(shared), unit, spare)


def _shares(problem: PlanProblem, related: Sequence[int], unit: int) -> dict[int, dict[int, int]]:
    """For each item the others that it is related to, and the bytes that the two have in common at most."""
    known, permissions = problem.known_shares, problem.permissions
    shares: dict[int, dict[int, int]] = {i: {} for i in related}
    for i in related:
        for j in permissions[i]:
            if j not in shares or i > j:
                continue
            if (i, j, unit) not in known:
                sizes = aligned(problem.items[i].size, unit), aligned(problem.items[j].size, unit)
                known[i, j, unit] = sum(sizes) - _pair_bytes(*sizes, permissions[i][j], unit)
            shares[i][j] = shares[j][i] = known[i, j, unit]
    return shares


def _worth_taking(sizes: Mapping[int, int], shares: Mapping[int, Mapping[int, int]]) -> list[int]:
    chosen: dict[int, None] = {}

    def gain(index: int) -> int:
        return sizes[index] - sum(nbytes for other, nbytes in shares[index].items() if other in chosen)

    is_better = True
    while is_better:
        is_better = False
        for index in sizes:
            if index in chosen and gain(index) < 0:
                del chosen[index]
                is_better = True
            elif index not in chosen and gain(index) > 0:
                chosen[index] = None
                is_better = True
    return list(chosen)


def _pair_bytes(size: int, other: int, forbidden: Intervals, unit: int) -> int:
    """Fewest bytes that two related items take together, over all differences that are not forbidden.

    These bytes grow as the difference leaves the range where one item holds the other: the best difference is
    one end of that range, or the permitted one next to it.
    """
    ends = {0, other - size, -size, other}
    for low, high in forbidden:
        ends |= {low // unit * unit, aligned(high, unit)}
    allowed = (d for d in ends if not any(low < d < high for low, high in forbidden))
    return min(max(d + size, other) - min(d, 0) for d in allowed)
