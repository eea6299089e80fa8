"""The answer of a run, from what each kernel library needs."""

from __future__ import annotations

from tflite_memopt.memory.reserve import LibraryNeed
from tflite_memopt.report.answer import DeviceUse, answer_of


def need(required: int) -> LibraryNeed:
    return LibraryNeed(head=required // 2, required=required, measured=True)


def test_of_libraries_that_need_the_same_the_own_one_is_named() -> None:
    assert answer_of({"own": need(100), "other": need(100)}).most == {}
    assert answer_of({"own": need(100), "other": need(101), "least": need(1)}).most == {"other": 101}


def test_what_the_framework_takes_of_a_chip_is_not_there() -> None:
    for left, fits in ((None, True), (100, True), (99, False)):
        device = DeviceUse("board", "chip", ram_bytes=200, flash_bytes=None, left_bytes=left)
        fit = answer_of({"own": need(100)}, device=device).fit
        assert fit is not None
        assert (fit.fits, fit.limit) == (fits, left or 200)
        assert fit.spare == fit.limit - 100
