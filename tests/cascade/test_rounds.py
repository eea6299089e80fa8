"""Rounds of a search: those of narrower limits are among those of wider ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle.cells import cell_network
from tflite_memopt import Options, optimize
from tflite_memopt.cascade.rounds import Round, rounds
from tflite_memopt.cascade.selection import SelectionLimits
from tflite_memopt.io.writer import write_model


def test_the_limits_that_were_asked_for_come_first() -> None:
    found = rounds(("recompute", "rolling"), 0.5, 1000, 7000, None, 9999, (), 0.5)
    assert found[0] == Round(("recompute", "rolling"), SelectionLimits(500, 9999, 3150))
    assert len(set(found)) == len(found)


def test_a_search_with_wider_limits_has_all_rounds_of_a_narrower_one() -> None:
    narrow = set(rounds(("rolling",), 0.1, 1000, 7000, 64, 9999))
    assert narrow <= set(rounds(("recompute", "rolling"), 0.3, 1000, 7000, 64, 9999))
    assert narrow <= set(rounds(("rolling",), 0.1, 1000, 7000, 64, 9999, [("clamped",), ("clamped", "masked")]))


def test_limits_between_the_fixed_ones_are_a_round_of_their_own() -> None:
    found = [each.limits for each in rounds(("rolling",), 0.15, 1000, 7000, 7, 9999, (), 0.1)]
    assert found == [SelectionLimits(150, 7, 630), SelectionLimits(100, 7, 630), SelectionLimits(0, 7, 630)]


def test_where_no_macs_are_allowed_copies_and_calls_still_are() -> None:
    found = rounds(("rolling",), 0.0, 1000, 7000, 7, 9999, (), 0.1)
    assert {each.limits for each in found} == {SelectionLimits(0, 7, 630)}


def test_who_says_how_much_work_may_be_added_gets_that_in_every_round() -> None:
    found = rounds(("rolling",), 0.3, 1000, 7000, 7, 9999, (), 0.05)
    assert {each.limits.work for each in found} == {315}


def test_a_round_is_within_those_that_may_do_as_much() -> None:
    every = rounds(("recompute", "rolling"), 0.3, 1000, 7000, 64, 9999, [("clamped",), ("clamped", "masked")])
    assert all(each.is_within(every[0]) for each in every)
    assert [each for each in every if every[0].is_within(each)] == [every[0]]
    one, other = (next(each for each in every if each.halos == halo) for halo in (("recompute",), ("rolling",)))
    assert not one.is_within(other)
    assert not replace(one, loops=("peeled",)).is_within(one)
    limits = one.limits
    for more in (replace(limits, macs=301), replace(limits, operators=65), replace(limits, work=limits.work + 1)):
        assert not replace(one, limits=more).is_within(one)


@pytest.mark.parametrize(("seed", "kernels"), [(1, "cmsis-nn"), (1, "reference")])
def test_rounds_within_one_that_has_nothing_are_left_out(
    seed: int, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, left_out = write_model(cell_network(seed, width=8, resolution=16, cells=1)), []
    options = Options(kernels=kernels, verify=False)
    is_within = Round.is_within

    def noted(one: Round, other: Round) -> bool:
        found = is_within(one, other)
        left_out.append(found)
        return found

    monkeypatch.setattr(Round, "is_within", noted)
    found = optimize(model, options).model
    monkeypatch.setattr(Round, "is_within", lambda *_: False)
    assert optimize(model, options).model == found
    assert any(left_out)
