"""Move the tensors that cross a cut to where the next part reads them, past the bytes that TFLM writes in between.

AllocateTensors of the next part writes its temporaries from the start of the arena, sets variables to zero at their
places, and puts its structures at the end. Tensors that cross the cut lie clear of all three while that happens:

    part i has run         [ ......... | a | .............. | structures of i ]
    first moves                  [ a ]
    part i + 1 is made     [temp.] a    [variable]     | structures of i + 1  ]
    second moves                 [ a ] --> its place
    part i + 1 runs

Most tensors are moved once or not at all: to their new place at once, where that is clear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...errors import ErrorKind, InfeasibleError, ModelFormatError
from ...firmware.description import Move
from ...solvers.graph.alignment import aligned

Range = tuple[int, int]
"""Bytes ``[start, end)`` of the arena."""


@dataclass(frozen=True)
class PartSpace:
    """The layout of the arena of one part, in bytes.

    ``required``: the arena that it needs by itself. ``tail``: at the end of the arena, from the first allocation on.
    ``temporaries``: from its start, until the plan is in force. ``cleared``: bytes that are set to zero then.
    ``inputs``, ``outputs``: where they lie, each aligned.
    """

    required: int
    tail: int
    temporaries: int
    cleared: tuple[Range, ...]
    inputs: tuple[Range, ...]
    outputs: tuple[Range, ...]


@dataclass(frozen=True)
class Handover:
    """The moves ``before`` a part's interpreter is made, in order, and those ``after`` its tensors are allocated."""

    before: tuple[Move, ...]
    after: tuple[Move, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that are moved."""
        return sum(move.nbytes for move in (*self.before, *self.after))


def hand_over(parts: Sequence[PartSpace]) -> tuple[int, tuple[Handover, ...]]:
    """Return the arena in bytes for parts that run one after another, and the moves before all but the first.

    The inputs of a part are the first outputs of the one before, in the same order: a fed part has more. Raises
    ModelFormatError where it has fewer.
    """
    for number, (before, after) in enumerate(pairwise(parts)):
        if len(before.outputs) < len(after.inputs):
            raise ModelFormatError(
                f"part {number} gives {len(before.outputs)} tensors, and part {number + 1} takes {len(after.inputs)}: "
                "run optimize --parts again",
                ErrorKind.DAMAGED,
            )
    arena = max(part.required for part in parts)
    moves: list[Handover] = []
    for before, after in pairwise(parts):
        while (found := _between(before, after, arena)) is None:
            arena += 16  # the part's structures move up with the end
        moves.append(found)
    for (before, after), found in zip(pairwise(parts), moves, strict=True):
        check_handover(before, after, arena, found)
    return arena, tuple(moves)


def least_arena(part: PartSpace) -> int:
    """The arena in bytes that a part needs behind another one: its inputs have to lie somewhere while it is made."""
    written = ((0, aligned(part.temporaries)), *part.cleared)
    ends = (end for _, end in _packed(part.inputs, written))
    return max(part.required, aligned(max(ends, default=0)) + aligned(part.tail))


def check_handover(before: PartSpace, after: PartSpace, arena: int, moves: Handover) -> None:
    """Carry the moves out on marks, one for each byte that crosses. Raises InfeasibleError where one is lost.

    A mark is where the byte was: outputs that are views of one tensor have bytes in common.
    """
    marks: dict[int, int | None] = {}
    crossing = _crossing(before, after)
    for start, end in crossing:
        marks.update(zip(range(start, end), range(start, end), strict=True))
    _carry_out(moves.before, marks)
    for start, end in _written(after, arena):
        for at in range(start, end):
            marks.pop(at, None)
    _carry_out(moves.after, marks)
    for (start, end), (first, _) in zip(after.inputs, crossing, strict=True):
        if [marks.get(at) for at in range(start, end)] != [*range(first, first + end - start)]:
            raise InfeasibleError(
                f"tensors that cross the cut are lost in bytes {start} to {end} of the arena", ErrorKind.OVERLAP
            )


def _carry_out(moves: Sequence[Move], marks: dict[int, int | None]) -> None:
    for move in moves:
        nbytes = move.nbytes if move.turned else aligned(move.nbytes)  # firmware moves blocks of 16
        moved = [marks.get(at) for at in range(move.source, move.source + nbytes)]
        turned = moved[move.turned :] + moved[: move.turned]
        marks.update(zip(range(move.target, move.target + nbytes), turned, strict=True))


def _crossing(before: PartSpace, after: PartSpace) -> tuple[Range, ...]:
    return before.outputs[: len(after.inputs)]


def _written(part: PartSpace, arena: int) -> tuple[Range, ...]:
    """Return the bytes that AllocateTensors of a part writes."""
    return (0, aligned(part.temporaries)), (arena - aligned(part.tail), arena), *part.cleared


def _between(before: PartSpace, after: PartSpace, arena: int) -> Handover | None:
    """Return the moves with the fewest of them; None if the arena has no place for the tensors."""
    written, sources, targets = _written(after, arena), _crossing(before, after), after.inputs

    def is_clear(shelter: Sequence[Range]) -> bool:
        fits = all(start >= 0 and end <= arena for start, end in shelter)
        return fits and not any(_meet(one, other) for one in shelter for other in written)

    found = []
    for shelter in filter(is_clear, _shelters(sources, targets, written)):
        first, second = _in_order(sources, shelter), _in_order(shelter, targets)
        if first is not None and second is not None:
            found.append(Handover(first, second))
    if found:
        return min(found, key=lambda each: len(each.before) + len(each.after))
    block = _block(sources, written)
    return _through_block(sources, targets, block) if is_clear(block) else None


def _block(sources: Sequence[Range], written: Sequence[Range]) -> tuple[Range, ...]:
    """Room for the sources side by side, in the order in which they lie."""
    order = sorted(range(len(sources)), key=lambda at: sources[at])
    ((start, _),) = _packed([(0, sum(aligned(end - start) for start, end in sources))], written)
    found = dict[int, Range]()
    for at in order:
        found[at] = start, start + sources[at][1] - sources[at][0]
        start = aligned(found[at][1])
    return tuple(found[at] for at in range(len(sources)))


def _through_block(sources: Sequence[Range], targets: Sequence[Range], block: tuple[Range, ...]) -> Handover | None:
    """Pushed together, turned into the order of their new places, and pulled apart, none of which loses anything.

    Sorted ranges that go to sorted ranges can always be moved one by one: those that go up from the top.
    """
    sizes = [aligned(end - start) for start, end in block]
    order, wanted = (sorted(range(len(block)), key=lambda at: side[at]) for side in (block, targets))
    base, turns = min(start for start, _ in block), []
    for place, at in enumerate(wanted):  # bring each to its place, past those that come after it
        now = order.index(at)
        start = base + sum(sizes[each] for each in order[:place])
        passed = sum(sizes[each] for each in order[place:now])
        if passed:
            turns.append(Move(start, start, passed + sizes[at], passed))
        order.insert(place, order.pop(now))
    starts = {at: base + sum(sizes[each] for each in order[:place]) for place, at in enumerate(order)}
    turned = tuple((starts[at], starts[at] + end - start) for at, (start, end) in enumerate(block))
    first, last = _in_order(sources, block), _in_order(turned, targets)
    # Targets that meet, as in a damaged program, have no order.
    return None if first is None or last is None else Handover(first, (*turns, *last))


def _shelters(
    sources: Sequence[Range], targets: Sequence[Range], written: Sequence[Range]
) -> Iterator[tuple[Range, ...]]:
    """Choose where tensors that cross the cut wait: at their new place, at their old one, or in any free bytes.

    One tensor may overlap its own old and new place; among several, room that meets neither is tried, too.
    """
    yield tuple(targets)
    yield tuple(sources)
    yield _packed(targets, written)
    yield _packed(targets, (*written, *sources, *targets))


def _packed(tensors: Sequence[Range], taken: Sequence[Range]) -> tuple[Range, ...]:
    """Return the lowest room for tensors, clear of the bytes that are taken."""
    found: list[Range] = []
    for start, end in tensors:
        at = 0
        for low, high in sorted((*taken, *found)):
            if at + end - start <= low:
                break
            at = max(at, aligned(high))
        found.append((at, at + end - start))
    return tuple(found)


def _in_order(sources: Sequence[Range], targets: Sequence[Range]) -> tuple[Move, ...] | None:
    """Return the moves in an order in which none overwrites bytes that another still has to move; None without one."""
    left = [(source, target) for source, target in zip(sources, targets, strict=True)]
    moves = []
    while left:
        free = next(
            (each for each in left if not any(_meet(each[1], other[0]) for other in left if other is not each)), None
        )
        if free is None:
            return None
        left.remove(free)
        if free[0] != free[1]:
            moves.append(Move(free[0][0], free[1][0], free[0][1] - free[0][0]))
    return tuple(moves)


def _meet(one: Range, other: Range) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
