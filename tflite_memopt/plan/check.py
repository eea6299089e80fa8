"""The slow, obvious checker of plans. It shares no code with any strategy and runs on every plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import InfeasibleError
from .problem import Item, PlanProblem, Relation


def check_plan(problem: PlanProblem, offsets: Sequence[int]) -> None:
    """Raise InfeasibleError unless ``offsets`` (bytes, one per item) keeps every rule. O(n^2) worst case.

    Rules: one offset per item, not negative, aligned, a given offset kept; two items alive at the same time
    share no byte unless a relation between them allows their difference.
    """
    if len(offsets) != len(problem.items):
        raise InfeasibleError(f"the plan has {len(offsets)} offsets for {len(problem.items)} items")
    for index, (item, offset) in enumerate(zip(problem.items, offsets, strict=True)):
        _check_item(index, item, offset)
    _check_pairs(problem, offsets, range(len(problem.items)))


def check_given(problem: PlanProblem) -> None:
    """Raise InfeasibleError when no plan can exist: a given offset breaks a rule, or two of them collide."""
    for index, item in enumerate(problem.items):
        if item.size < 0 or item.start >= item.end:
            raise InfeasibleError(f"item {index}: {item.size} bytes in [{item.start}, {item.end}) are no item")
        if item.offset is not None:
            _check_item(index, item, item.offset)
    given = [index for index, item in enumerate(problem.items) if item.offset is not None]
    try:
        _check_pairs(problem, [item.offset or 0 for item in problem.items], given)
    except InfeasibleError as error:
        raise InfeasibleError(f"given offsets collide: {error}") from error


def _check_pairs(problem: PlanProblem, offsets: Sequence[int], indices: Iterable[int]) -> None:
    relations: dict[tuple[int, int], list[Relation]] = {}
    for relation in problem.relations:
        pair = (min(relation.first, relation.second), max(relation.first, relation.second))
        relations.setdefault(pair, []).append(relation)
    # By start, so that the inner loop stops at the first item born after this one's death.
    order = sorted(indices, key=lambda i: problem.items[i].start)
    for rank, a in enumerate(order):
        for b in order[rank + 1 :]:
            if problem.items[b].start >= problem.items[a].end:
                break
            _check_pair(problem, offsets, a, b, relations.get((min(a, b), max(a, b)), []))


def _check_item(index: int, item: Item, offset: int) -> None:
    if offset < 0:
        raise InfeasibleError(f"item {index}: offset {offset} is negative")
    if offset % item.alignment:
        raise InfeasibleError(f"item {index}: offset {offset} is not a multiple of {item.alignment}")
    if item.offset is not None and offset != item.offset:
        raise InfeasibleError(f"item {index}: offset {offset}, but it is fixed at {item.offset}")


def _check_pair(problem: PlanProblem, offsets: Sequence[int], a: int, b: int, relations: list[Relation]) -> None:
    first, second = problem.items[a], problem.items[b]
    if not first.meets(second) or first.size == 0 or second.size == 0:
        return
    apart = offsets[a] + first.size <= offsets[b] or offsets[b] + second.size <= offsets[a]
    if apart or any(relation.allows(offsets[relation.first], offsets[relation.second]) for relation in relations):
        return
    both = f"[{max(first.start, second.start)}, {min(first.end, second.end)})"
    raise InfeasibleError(
        f"items {a} and {b} are both alive in {both} and share bytes: "
        f"[{offsets[a]}, {offsets[a] + first.size}) and [{offsets[b]}, {offsets[b] + second.size})"
    )
