"""Rounds of a search: each that is narrower comes before."""

from __future__ import annotations

from tflite_memopt.cascade.rounds import Round, rounds
from tflite_memopt.cascade.select import SelectionLimits


def test_a_round_comes_after_all_that_it_holds() -> None:
    found = list(rounds(2, ("recompute", "rolling"), 0.5, 1000, None, 9999))
    for at, each in enumerate(found):
        assert not any(each.holds(later) for later in found[at + 1 :])
    assert found[-1] == Round(2, ("recompute", "rolling"), SelectionLimits(500, 9999))
    assert all(found[-1].holds(each) for each in found)


def test_a_search_with_wider_limits_has_all_rounds_of_a_narrower_one() -> None:
    narrow = set(rounds(0, ("rolling",), 0.1, 1000, 64, 9999))
    assert narrow <= set(rounds(1, ("recompute", "rolling"), 0.3, 1000, 64, 9999))
    assert narrow <= set(rounds(0, ("rolling",), 0.1, 1000, None, 9999))


def test_limits_between_the_fixed_ones_are_a_round_of_their_own() -> None:
    found = [each.limits for each in rounds(0, ("rolling",), 0.15, 1000, 7, 9999)]
    assert found == [SelectionLimits(macs, 7) for macs in (0, 100, 150)]
