"""The slow, obvious checker of plans. It shares no code with any strategy and runs on every plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...errors import ErrorKind, InfeasibleError
from ..graph.alignment import aligned
from ..graph.interval import intersect
from .problem import BoundCertificate, Item, PlanProblem, Relation


def check_plan(problem: PlanProblem, offsets: Sequence[int]) -> None:
    """Raise InfeasibleError unless ``offsets`` (bytes, one per item) keeps every rule. O(n^2) worst case.

    Rules: one offset per item, not negative, aligned, a given offset kept; two items alive at the same time
    share no byte unless a relation between them allows their difference.
    """
    if len(offsets) != len(problem.items):
        raise InfeasibleError(f"the plan has {len(offsets)} offsets for {len(problem.items)} items", ErrorKind.COUNT)
    for index, (item, offset) in enumerate(zip(problem.items, offsets, strict=True)):
        _check_item(index, item, offset)
    _check_pairs(problem, offsets, range(len(problem.items)))


def check_in_force(problem: PlanProblem, offsets: Sequence[int]) -> None:
    """``check_plan`` for the final offsets of a runtime, including items that it places itself.

    A plan that keeps every rule can be written in part only: scratch has no name in the file, and some tensors are left
    to the runtime. Raises InfeasibleError if the result breaks a rule.
    """
    try:
        check_plan(problem, offsets)
    except InfeasibleError as error:
        raise InfeasibleError(f"the plan as the runtime completes it: {error}", error.kind) from error


def check_bound(problem: PlanProblem, certificate: BoundCertificate) -> None:
    """Raise InfeasibleError unless the certificate proves that no plan takes fewer than its bytes.

    All offsets are multiples of its unit, which divides the alignments, so that an item keeps those that may not share
    its bytes out of its padding, too. A union of bytes has at least the sum of its parts less the bytes that pairs have
    in common, and less than that where items lie beside each other in one.
    """
    items = {index: problem.items[index] for index in certificate.items}
    unit = certificate.unit
    if any(item.alignment % unit for item in items.values()):
        raise InfeasibleError(
            f"bound: {unit} divides not all alignments of the items {certificate.items}", ErrorKind.BOUND
        )
    sizes = {index: aligned(item.size, unit) for index, item in items.items()}
    if certificate.given:
        (item,) = items.values()
        proved = (item.offset or 0) + item.size
    elif any(not item.start <= certificate.scope < item.end for item in items.values()):
        raise InfeasibleError(
            f"bound: not all of the items {certificate.items} are alive at {certificate.scope}", ErrorKind.BOUND
        )
    else:
        relations = _by_pair(r for r in problem.relations if r.first in items and r.second in items)
        shared = sum(_most_shared(relations[pair], sizes, unit) for pair in relations)
        shared -= sum(_too_much(relations, sizes, each, unit) for each in _containers_in(problem, certificate))
        padding = max((sizes[index] - item.size for index, item in items.items()), default=0)
        proved = sum(sizes.values()) - shared - padding
    if proved < certificate.nbytes:
        raise InfeasibleError(f"bound: {certificate.nbytes} bytes are claimed, {proved} proved", ErrorKind.BOUND)


Related = Mapping[frozenset[int], Sequence[Relation]]
"""Relations by the two items that they are between."""


def _by_pair(relations: Iterable[Relation]) -> Related:
    """Group relations by the two items that they are between."""
    found: dict[frozenset[int], list[Relation]] = {}
    for relation in relations:
        if relation.first != relation.second:
            found.setdefault(frozenset((relation.first, relation.second)), []).append(relation)
    return found


def _most_shared(relations: Sequence[Relation], sizes: Mapping[int, int], unit: int) -> int:
    """Compute the most bytes that two items have in common, at the differences of offsets that a relation allows."""
    found = 0
    for r in relations:
        if not (r.exact and r.distance % unit):
            first, second = sizes[r.first], sizes[r.second]
            # Where any larger difference is allowed, too, the best one puts one of the two inside the other.
            difference = r.distance if r.exact else max(aligned(r.distance, unit), min(0, second - first))
            found = max(found, min(difference + first, second) - max(difference, 0))
    return found


def _containers_in(problem: PlanProblem, certificate: BoundCertificate) -> Sequence[Sequence[int]]:
    """Its containers. Raises InfeasibleError where two items of one may share bytes, or a pair of items is in two."""
    related = _by_pair(problem.relations)
    pairs: list[set[int]] = []
    for holder, *members in certificate.containers:
        if any(frozenset((a, b)) in related for a in members for b in members if a != b):
            raise InfeasibleError(f"bound: two of the items {members} may share bytes", ErrorKind.BOUND)
        pairs += [{holder, member} for member in members]
    if any(pair in pairs[:at] for at, pair in enumerate(pairs)):
        raise InfeasibleError("bound: a pair of items is in two containers", ErrorKind.BOUND)
    return certificate.containers


def _too_much(relations: Related, sizes: Mapping[int, int], container: Sequence[int], unit: int) -> int:
    """Compute the bytes by which the pairs of a container and its members exceed what the container can share."""
    holder, *members = (i for i in container if i in sizes)
    if holder != container[0]:
        return 0
    reached: set[int] = set()
    pairs = [relations.get(frozenset((holder, member)), ()) for member in members]
    for r in (r for pair in pairs for r in pair if not (r.exact and r.distance % unit)):
        reached |= _reached(r, sizes, holder, unit)
    shared = sum(_most_shared(pair, sizes, unit) for pair in pairs)
    return max(0, shared - len(reached) * unit)


def _reached(r: Relation, sizes: Mapping[int, int], holder: int, unit: int) -> set[int]:
    """Units of the holder on which the other item of a relation may lie, numbered from its start."""
    other, whole = sizes[r.first + r.second - holder], sizes[holder]
    if r.exact:
        start = r.distance if r.second == holder else -r.distance
        return set(range(max(0, start) // unit, min(whole, start + other) // unit))
    least = aligned(r.distance, unit)
    if r.second == holder:
        return set(range(max(0, least) // unit, whole // unit))
    return set(range(min(whole, other - least) // unit))


def check_given(problem: PlanProblem) -> None:
    """Raise InfeasibleError when no plan can exist: a given offset breaks a rule, or two of them collide."""
    for index, item in enumerate(problem.items):
        if item.size < 0 or item.start >= item.end:
            raise InfeasibleError(
                f"item {index}: {item.size} bytes are negative, or its interval [{item.start}, {item.end}) is empty",
                ErrorKind.PLACE,
            )
        if item.offset is not None:
            _check_item(index, item, item.offset)
    fixed = [index for index, item in enumerate(problem.items) if item.offset is not None]
    try:
        _check_pairs(problem, [item.offset or 0 for item in problem.items], fixed)
    except InfeasibleError as error:
        raise InfeasibleError(f"given offsets collide: {error}", error.kind) from error


def _check_pairs(problem: PlanProblem, offsets: Sequence[int], indices: Iterable[int]) -> None:
    relations = _by_pair(problem.relations)
    # By start, so that the inner loop stops at the first item born after this one's death.
    order = sorted(indices, key=lambda i: problem.items[i].start)
    for rank, a in enumerate(order):
        for b in order[rank + 1 :]:
            if problem.items[b].start >= problem.items[a].end:
                break
            if offsets[a] < offsets[b] + problem.items[b].size and offsets[b] < offsets[a] + problem.items[a].size:
                _check_sharing(problem, offsets, a, b, relations.get(frozenset((a, b)), []))


def _check_item(index: int, item: Item, offset: int) -> None:
    if offset < 0:
        raise InfeasibleError(f"item {index}: offset {offset} is negative", ErrorKind.PLACE)
    if offset % item.alignment:
        raise InfeasibleError(f"item {index}: offset {offset} is not a multiple of {item.alignment}", ErrorKind.PLACE)
    if item.offset is not None and offset != item.offset:
        raise InfeasibleError(f"item {index}: offset {offset}, but it is fixed at {item.offset}", ErrorKind.PLACE)


def _check_sharing(problem: PlanProblem, offsets: Sequence[int], a: int, b: int, relations: Sequence[Relation]) -> None:
    first, second = problem.items[a], problem.items[b]
    if not intersect(first, second) or first.size == 0 or second.size == 0:
        return
    if any(relation.allows(offsets[relation.first], offsets[relation.second]) for relation in relations):
        return
    both = f"[{max(first.start, second.start)}, {min(first.end, second.end)})"
    raise InfeasibleError(
        f"items {a} and {b} are both alive in {both} and share bytes: "
        f"[{offsets[a]}, {offsets[a] + first.size}) and [{offsets[b]}, {offsets[b] + second.size})",
        ErrorKind.OVERLAP,
    )
