"""Rounds of a search: those of narrower limits are among those of wider ones."""

from __future__ import annotations

from tflite_memopt.cascade.rounds import Round, rounds
from tflite_memopt.cascade.selection import SelectionLimits


def test_the_limits_that_were_asked_for_come_first() -> None:
    found = rounds(("recompute", "rolling"), 0.5, 1000, 7000, None, 9999)
    assert found[0] == Round(("recompute", "rolling"), SelectionLimits(500, 9999, 3150))
    assert len(set(found)) == len(found)


def test_a_search_with_wider_limits_has_all_rounds_of_a_narrower_one() -> None:
    narrow = set(rounds(("rolling",), 0.1, 1000, 7000, 64, 9999))
    assert narrow <= set(rounds(("recompute", "rolling"), 0.3, 1000, 7000, 64, 9999))
    assert narrow <= set(rounds(("rolling",), 0.1, 1000, 7000, 64, 9999, [("clamped",), ("clamped", "masked")]))


def test_limits_between_the_fixed_ones_are_a_round_of_their_own() -> None:
    found = [each.limits for each in rounds(("rolling",), 0.15, 1000, 7000, 7, 9999)]
    assert found == [SelectionLimits(150, 7, 945), SelectionLimits(100, 7, 630), SelectionLimits(0, 7, 630)]


def test_where_no_macs_are_allowed_copies_and_calls_still_are() -> None:
    assert {each.limits for each in rounds(("rolling",), 0.0, 1000, 7000, 7, 9999)} == {SelectionLimits(0, 7, 630)}


def test_who_says_how_much_work_may_be_added_gets_that_in_every_round() -> None:
    found = rounds(("rolling",), 0.3, 1000, 7000, 7, 9999, (), 0.05)
    assert {each.limits.work for each in found} == {315}
