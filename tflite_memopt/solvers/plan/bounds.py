"""Lower bounds on the arena for a fixed order, each with a certificate: a section of time and items alive in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import gcd

from ..graph.alignment import aligned
from ..graph.interval import covered
from .problem import (
    BoundCertificate,
    Container,
    Intervals,
    Item,
    Permissions,
    PlanProblem,
    SectionBound,
    Shares,
    most_shared,
)


def changes_of(items: Sequence[Item]) -> dict[int, int]:
    """By time, how many bytes more are alive from then on."""
    change: dict[int, int] = {}
    for item in items:
        change[item.start] = change.get(item.start, 0) + item.size
        change[item.end] = change.get(item.end, 0) - item.size
    return change


def maximal_sections(items: Sequence[Item]) -> list[tuple[int, int]]:
    """(first scope, bytes alive) of each maximal section: items alive at any other time are a subset of one."""
    change = changes_of(items)
    births, deaths = {item.start for item in items}, {item.end for item in items}
    found: list[tuple[int, int]] = []
    breadth, latest_birth = 0, None
    for scope in sorted(change):
        if scope in deaths and latest_birth is not None:
            found.append((latest_birth, breadth))
            latest_birth = None
        breadth += change[scope]
        if scope in births:
            latest_birth = scope
    return found


def max_breadth(problem: PlanProblem) -> int:
    """Return the bytes of ``section_bound``."""
    return section_bound(problem).nbytes


def section_bound(problem: PlanProblem) -> BoundCertificate:
    """Largest number of bytes that the items alive in one section need, by a sweep over births and deaths.

    Without relations that is the sum of their sizes; related items may share bytes, and count for less. A given offset
    reaches as far as it does.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5.1.
    """
    known = problem.analysis
    known.bound = known.bound or _section_bound(problem)
    return known.bound


def _section_bound(problem: PlanProblem) -> BoundCertificate:
    best = BoundCertificate(0)
    for index, item in enumerate(problem.items):
        if item.offset is not None and item.offset + item.size > best.nbytes:
            best = BoundCertificate(item.offset + item.size, item.start, (index,), given=True)
    # From the fullest section on: once the plain sum of a section is below the best bound, so are all others.
    for scope, breadth in sorted(maximal_sections(_padded(problem.items)), key=lambda pair: -pair[1]):
        if breadth <= best.nbytes:
            break
        alive = [i for i, item in enumerate(problem.items) if item.start <= scope < item.end and item.size]
        found = section_items(problem, alive)
        if found.nbytes > best.nbytes:
            containers = tuple((container.item, *container.members) for container in found.containers)
            best = BoundCertificate(found.nbytes, scope, found.items, containers=containers, unit=found.unit)
    return best


def _padded(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items with their sizes rounded up to their own alignment, if there are any to round."""
    if all(item.size % item.alignment == 0 for item in items):
        return items
    return [replace(item, size=aligned(item.size, item.alignment)) for item in items]


def section_items(problem: PlanProblem, alive: Sequence[int]) -> SectionBound:
    """Return the items with bytes, among those alive at one time, for a high bound that is quick to compute.

    All that have no relation, and those with more bytes than they may share with the ones taken before:
    largest first, then by turns put in or left out as long as that raises the bound. And so once more, beginning with
    those that have too little container together.
    """
    together = tuple(sorted(alive))
    known = problem.analysis.sections
    if together not in known:
        known[together] = _section_items(problem, together)
    return known[together]


def _section_items(problem: PlanProblem, alive: Sequence[int]) -> SectionBound:
    items, permissions = problem.items, problem.permissions
    unit = gcd(*(items[i].alignment for i in alive)) or 1
    padded = {i: aligned(items[i].size, unit) for i in alive}
    related = sorted((i for i in alive if i in permissions), key=lambda i: (-items[i].size, i))
    among = _Related(padded, _shares(problem, related, unit), related, permissions, unit)
    chosen = [*(i for i in alive if i not in permissions), *among.worth_taking()]
    spare = max((padded[i] - items[i].size for i in chosen), default=0)
    containers = tuple(container for container in among.containers if container.spares(chosen, among.shares))
    nbytes = sum(padded[i] for i in chosen) - among.shared(chosen) - spare
    return SectionBound(tuple(chosen), nbytes, containers, unit)


def _shares(problem: PlanProblem, related: Sequence[int], unit: int) -> dict[int, dict[int, int]]:
    """For each item the others that it is related to, and the bytes that the two have in common at most."""
    known, permissions = problem.analysis.shares, problem.permissions
    shares: dict[int, dict[int, int]] = {i: {} for i in related}
    for i in related:
        for j in permissions[i]:
            if j not in shares or i > j:
                continue
            if (i, j, unit) not in known:
                sizes = aligned(problem.items[i].size, unit), aligned(problem.items[j].size, unit)
                known[i, j, unit] = most_shared(*sizes, permissions[i][j], unit)
            shares[i][j] = shares[j][i] = known[i, j, unit]
    return shares


class _Related:
    """The related items of a section: their bytes, and the bytes that they may share, in pairs and in containers."""

    def __init__(
        self, sizes: Mapping[int, int], shares: Shares, related: Sequence[int], permissions: Permissions, unit: int
    ) -> None:
        self._sizes, self.shares, self._related = sizes, shares, related
        self.containers = _containers_among(related, sizes, shares, permissions, unit)
        self._containers_of: dict[int, list[Container]] = {i: [] for i in related}
        for container in self.containers:
            for i in (container.item, *container.members):
                self._containers_of[i].append(container)

    def shared(self, chosen: Collection[int]) -> int:
        """Return the bytes that the chosen items have in common at most."""
        inside = set(chosen)
        pairs = sum(n for i in inside & self.shares.keys() for j, n in self.shares[i].items() if i < j and j in inside)
        return pairs - sum(container.spares(inside, self.shares) for container in self.containers)

    def worth_taking(self) -> list[int]:
        """Return the items that together need most, by a quick search."""
        found = self._grown({})
        if not self.containers:
            return found
        crowded = dict.fromkeys(i for container in self.containers for i in (container.item, *container.members))
        return max(
            found, self._grown(crowded), key=lambda each: sum(map(self._sizes.__getitem__, each)) - self.shared(each)
        )

    def _grown(self, chosen: dict[int, None]) -> list[int]:
        """Put each item in or leave it out by turns, from the ``chosen`` ones on, until none changes the bound."""
        common = {i: sum([nbytes for j, nbytes in self.shares[i].items() if j in chosen]) for i in self._related}

        def gain(index: int) -> int:
            """The bytes that the item, which is not chosen, adds to the need."""
            spared = [each.spares_more(index, chosen, self.shares) for each in self._containers_of[index]]
            return self._sizes[index] - common[index] + sum(spared)

        is_better = True
        while is_better:
            is_better = False
            for index in self._related:
                was_chosen = index in chosen
                if was_chosen:
                    del chosen[index]
                is_chosen = gain(index) >= (0 if was_chosen else 1)
                if is_chosen:
                    chosen[index] = None
                if is_chosen is not was_chosen:
                    is_better = True
                    sign = 1 if is_chosen else -1
                    for other, nbytes in self.shares[index].items():
                        common[other] += sign * nbytes
        return list(chosen)


def _containers_among(
    related: Sequence[int], sizes: Mapping[int, int], shares: Shares, permissions: Permissions, unit: int
) -> list[Container]:
    """Return the containers that are too small for their members, each pair of items in one of them at most.

    A loop's result may lie over its inputs, each of them above the bytes that later iterations still read:

        result    [ made | not read yet ........ ]
        inputs           [ first ][ second ][ third ][ fourth ]
                         |<--- their container --->|

    One by one each of them fits into the container. Together they do not, so that pairs alone say too little.

    ``related``: items alive at one time, containers first; ``sizes`` in bytes, multiples of ``unit``.
    """
    found: list[Container] = []
    taken: set[tuple[int, int]] = set()
    rank = {index: iteration for iteration, index in enumerate(related)}
    for holder in related:
        sharing = [i for i, nbytes in shares[holder].items() if nbytes and (i, holder) not in taken]
        members = _apart(sorted(sharing, key=rank.__getitem__), shares)
        if len(members) < 2:
            continue
        reached = (part for i in members for part in _covered(sizes[holder], sizes[i], permissions[i][holder], unit))
        container = Container(holder, tuple(members), covered(reached))
        if container.spares((holder, *members), shares):
            found.append(container)
            taken |= {(holder, i) for i in members}
    return found


def _apart(items: Sequence[int], shares: Shares) -> list[int]:
    """Items of which no two are related; earlier ones first."""
    found: list[int] = []
    for i in items:
        if not any(i in shares[other] for other in found):
            found.append(i)
    return found


def _covered(holder: int, member: int, forbidden: Intervals, unit: int) -> Iterator[tuple[int, int]]:
    """Bytes of a holder of that size that a member may lie on; ``forbidden``: for its offset less the holder's."""
    start = -member
    for low, high in forbidden:
        last = low // unit * unit
        if start <= last:
            yield max(0, start), min(holder, last + member)
        start = aligned(high, unit)
    yield max(0, start), holder
