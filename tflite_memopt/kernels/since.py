"""Since when TFLM has an operator: firmware may be older than the runtime that a result is verified on.

Dates are those of the commits to tflite-micro's main branch. Only operators that the tool itself may add are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

SINCE: Mapping[str, date] = {"DYNAMIC_UPDATE_SLICE": date(2025, 11, 10)}
"""By the builtin's schema name; an operator that is not in here has always been there."""
RELEASES: Mapping[str, date] = {
    "arduino-2023": date(2023, 1, 1),
    "esp-tflite-micro-1.3": date(2023, 12, 1),
    "zephyr-3.7": date(2024, 7, 26),
    "zephyr-4.1": date(2025, 3, 7),
    "zephyr-4.2": date(2025, 7, 18),
}
"""Packaged copies of TFLM by name, with a day before which their source was taken, so that no operator of a copy is
assumed that it may lack: Zephyr's days are those of its releases (``submanifests/optional.yaml`` pins an older commit);
esp-tflite-micro 1.3.x has no ``dynamic_update_slice.cc`` (read in November 2026), its day is that of 1.3.0."""
LOOPS: tuple[str, ...] = ("DYNAMIC_UPDATE_SLICE", "SLICE", "WHILE")
"""Operator kinds of a region that runs as a loop."""


def needed_since(operators: Iterable[str]) -> date | None:
    """Return the date of the oldest TFLM that has all these operators; None where any has them."""
    return max((SINCE[name] for name in operators if name in SINCE), default=None)


def has_operators(operators: Iterable[str], firmware: date | None) -> bool:
    """Return whether firmware with a TFLM of this date has the operators; one of unknown date is taken to have them."""
    since = needed_since(operators)
    return since is None or firmware is None or since <= firmware
