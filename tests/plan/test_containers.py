"""What several items have in common with one: the bound that follows, and its certificate."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.plan.problems import smallest_arena
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.solvers.plan.bounds import section_bound
from tflite_memopt.solvers.plan.check import check_bound
from tflite_memopt.solvers.plan.problem import BoundCertificate, Container, Item, PlanProblem, Relation


def above(holder: int, members: int, size: int, distance: int) -> PlanProblem:
    """Items that may lie on the holder from so many bytes on, and not on each other."""
    items = (Item(holder, 0, 1, 16), *(Item(size, 0, 1, 16) for _ in range(members)))
    return PlanProblem(items, tuple(Relation(1 + at, 0, distance) for at in range(members)))


@st.composite
def crowded_problems(draw: st.DrawFn) -> PlanProblem:
    """One item that two or three others may lie on: from some bytes on, or up to some, or at one place."""
    unit = draw(st.sampled_from((1, 2)))
    members = draw(st.integers(2, 3))
    sizes = [draw(st.integers(2, 8)), *(draw(st.integers(1, 5)) for _ in range(members))]
    items = tuple(Item(size, 0, draw(st.sampled_from((1, 1, 2))), unit) for size in sizes)
    relations = []
    for at in range(1, members + 1):
        for _ in range(draw(st.integers(1, 2))):
            ends = (at, 0) if draw(st.booleans()) else (0, at)
            relations.append(Relation(*ends, draw(st.integers(-6, 6)), draw(st.booleans())))
    if draw(st.integers(0, 4)) == 0:
        relations.append(Relation(1, 2, draw(st.integers(-3, 3))))
    return PlanProblem(items, tuple(relations))


@given(problem=crowded_problems())
@examples(300)
def test_the_bound_is_below_brute_force_and_its_certificate_holds(problem: PlanProblem) -> None:
    certificate = section_bound(problem)
    assert certificate.nbytes <= smallest_arena(problem)
    check_bound(problem, certificate)


def test_guests_lie_beside_each_other_in_one_room() -> None:
    """A result of 32,768 bytes over five inputs of 8,192, of which 11,264 are beside what is still read."""
    problem = above(32_768, 5, 8_192, 21_504)
    certificate = section_bound(problem)
    assert certificate.nbytes == 32_768 + 5 * 8_192 - 11_264
    check_bound(problem, certificate)
    assert section_bound(above(32_768, 1, 8_192, 21_504)).nbytes == 32_768


@given(st.lists(st.integers(0, 60), min_size=5, max_size=5), st.integers(0, 150), st.sets(st.integers(0, 5)))
def test_what_one_item_more_spares_is_the_difference(pairs: list[int], nbytes: int, chosen: set[int]) -> None:
    """Item 0 is the holder."""
    container, shares = Container(0, (1, 2, 3, 4), nbytes), {0: dict(enumerate(pairs, 1))}
    for index in {0, 1, 2, 3, 4} - chosen:
        more = container.spares({*chosen, index}, shares) - container.spares(chosen, shares)
        assert container.spares_more(index, chosen, shares) == more


def test_a_room_is_checked() -> None:
    problem = above(64, 2, 48, 16)
    certificate = section_bound(problem)
    assert (certificate.nbytes, certificate.containers) == (112, ((0, 1, 2),))
    with raises(InfeasibleError, ErrorKind.BOUND, "112", "64"):
        check_bound(problem, replace(certificate, containers=()))
    with raises(InfeasibleError, ErrorKind.BOUND, "containers"):
        check_bound(problem, replace(certificate, containers=((0, 1, 2), (0, 1, 2))))
    with raises(InfeasibleError, ErrorKind.BOUND, "113"):
        check_bound(problem, replace(certificate, nbytes=113))
    related = replace(problem, relations=(*problem.relations, Relation(1, 2, 16)))
    with raises(InfeasibleError, ErrorKind.BOUND, "[1, 2]"):
        check_bound(related, BoundCertificate(112, 0, (0, 1, 2), containers=((0, 1, 2),)))


def test_a_proof_counts_in_the_unit_that_it_was_found_in() -> None:
    """Another item alive then may have the smallest alignment, and be none of those that add up."""
    sizes = (8, 6, 4, 8)
    items = (*(Item(size, 0, 1, 4) for size in sizes), Item(2, 0, 1, 1))
    problem = PlanProblem(items, (Relation(0, 1, 0), Relation(0, 2, 0), Relation(3, 4, 0)))
    certificate = section_bound(problem)
    assert (certificate.nbytes, sorted(certificate.items), certificate.unit) == (20, [0, 1, 2, 3], 1)
    check_bound(problem, certificate)
    with raises(InfeasibleError, ErrorKind.BOUND, "8"):
        check_bound(problem, replace(certificate, unit=8))
