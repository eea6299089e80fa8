"""What crosses a cut is moved past everything that TFLM writes, and not a byte of it is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tflite_memopt.errors import ErrorKind, InfeasibleError, ModelFormatError
from tflite_memopt.firmware.description import Move
from tflite_memopt.run.parts.handover import Handover, PartSpace, Range, check_handover, hand_over
from tflite_memopt.solvers.graph.alignment import aligned

SIZES = st.lists(st.integers(1, 80), min_size=1, max_size=4)


@st.composite
def laid_out(draw: st.DrawFn, sizes: list[int]) -> tuple[tuple[Range, ...], int]:
    """Each somewhere, in any order, and the end of all."""
    at, found = 0, dict[int, Range]()
    for number in draw(st.permutations(range(len(sizes)))):
        at += 16 * draw(st.integers(0, 4))
        found[number] = at, at + sizes[number]
        at = aligned(at + sizes[number])
    return tuple(found[number] for number in range(len(sizes))), at


@st.composite
def part(draw: st.DrawFn, inputs: tuple[Range, ...], outputs: tuple[Range, ...], head: int) -> PartSpace:
    tail, temporaries = draw(st.integers(0, 200)), draw(st.integers(0, 200))
    places = draw(st.lists(st.tuples(st.integers(0, 10), st.integers(1, 4)), max_size=2))
    cleared = tuple((16 * at, 16 * (at + size)) for at, size in places)
    need = max([head, aligned(temporaries), *(end for _, end in cleared)]) + aligned(tail)
    return PartSpace(need, tail, temporaries, cleared, inputs, outputs)


@given(st.data(), SIZES)
def test_nothing_is_lost(data: st.DataObject, sizes: list[int]) -> None:
    (left, end), (taken, other_end) = data.draw(laid_out(sizes)), data.draw(laid_out(sizes))
    first, second = data.draw(part((), left, end)), data.draw(part(taken, (), other_end))
    arena, (moves,) = hand_over((first, second))  # which checks what it returns
    check_handover(first, second, arena, moves)
    above = max([end, aligned(second.temporaries), *(end for _, end in second.cleared)])
    enough = above + sum(map(aligned, sizes)) + aligned(second.tail)
    assert max(first.required, second.required) <= arena <= max(first.required, second.required, enough)


@given(st.data(), st.lists(st.tuples(st.integers(0, 6), st.integers(1, 80)), min_size=1, max_size=4))
def test_views_that_have_bytes_in_common_arrive_whole(data: st.DataObject, views: list[tuple[int, int]]) -> None:
    """On bytes that are moved, without the check: outputs of a part may be views of one tensor."""
    left = tuple((16 * at, 16 * at + size) for at, size in views)
    taken, end = data.draw(laid_out([size for _, size in views]))
    first, second = data.draw(part((), left, 192)), data.draw(part(taken, (), end))
    arena, (moves,) = hand_over((first, second))
    held = bytearray(number % 251 for number in range(arena))
    wanted = [bytes(held[start:stop]) for start, stop in left]
    for before, after in ((moves.before, True), (moves.after, False)):
        for move in before:
            size = move.nbytes if move.turned else aligned(move.nbytes)
            moved = held[move.source : move.source + size]
            held[move.target : move.target + size] = moved[move.turned :] + moved[: move.turned]
        for start, stop in ((0, second.temporaries), (arena - second.tail, arena), *second.cleared) if after else ():
            held[start:stop] = bytes(stop - start)
    assert [bytes(held[start:stop]) for start, stop in taken] == wanted


def space(inputs: tuple[Range, ...], outputs: tuple[Range, ...], temporaries: int = 0) -> PartSpace:
    return PartSpace(512, 64, temporaries, (), inputs, outputs)


def test_what_stays_in_its_place_is_not_moved() -> None:
    _, (moves,) = hand_over((space((), ((64, 128),)), space(((64, 128),), (), 48)))
    assert moves == Handover((), ())


def test_what_temporaries_would_overwrite_moves_up_first() -> None:
    _, (moves,) = hand_over((space((), ((0, 64),)), space(((16, 80),), (), 48)))
    assert moves == Handover((Move(0, 48, 64),), (Move(48, 16, 64),))


def test_two_that_change_places_where_there_is_no_room_for_a_third() -> None:
    first = PartSpace(400, 64, 0, (), (), ((0, 160), (160, 320)))
    second = PartSpace(400, 64, 16, (), ((160, 320), (0, 160)), ())
    arena, (moves,) = hand_over((first, second))
    assert arena == 400
    assert any(move.turned for move in moves.after)


def test_the_check_sees_what_is_overwritten() -> None:
    first, second = space((), ((0, 64),)), space(((0, 64),), (), 48)
    with raises(InfeasibleError, ErrorKind.OVERLAP, "0 to 64"):
        check_handover(first, second, 512, Handover((), ()))


def test_the_check_moves_blocks_of_16_as_firmware_does() -> None:
    first, second = space((), ((0, 8), (72, 80))), space(((64, 72), (72, 80)), (), 48)
    with raises(InfeasibleError, ErrorKind.OVERLAP, "72 to 80"):
        check_handover(first, second, 512, Handover((Move(0, 64, 8),), ()))


def test_a_part_that_gives_fewer_tensors_than_the_next_one_takes_is_named() -> None:
    with raises(ModelFormatError, ErrorKind.DAMAGED, "part 0 gives 1", "part 1 takes 2"):
        hand_over((space((), ((0, 16),)), space(((0, 16), (16, 32)), ())))


def test_an_arena_of_any_size_is_checked_by_what_crosses_it() -> None:
    far = 1 << 40
    first = PartSpace(far + 32, 0, 0, (), (), ((far, far + 20),))
    second = PartSpace(64, 0, 0, (), ((0, 20),), ())
    arena, (moves,) = hand_over((first, second))
    assert (arena, moves.nbytes) == (far + 32, 20)
