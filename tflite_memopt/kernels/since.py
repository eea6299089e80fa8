"""Since when TFLM has an operator: firmware may be older than the runtime that a result is verified on.

Dates are those of the commits to tflite-micro's main branch. Only operators that the tool itself may add are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

SINCE: Mapping[str, date] = {"DYNAMIC_UPDATE_SLICE": date(2025, 11, 10)}
"""By the builtin's schema name; an operator that is not in here has always been there."""
LOOPS: tuple[str, ...] = ("DYNAMIC_UPDATE_SLICE", "SLICE", "WHILE")
"""What a region as a loop needs."""


def needed_since(operators: Iterable[str]) -> date | None:
    """The date of the oldest TFLM that has all these operators; None where any has them."""
    return max((SINCE[name] for name in operators if name in SINCE), default=None)


def has_operators(operators: Iterable[str], firmware: date | None) -> bool:
    """Whether firmware with a TFLM of this date has the operators; one of unknown date is taken to have them."""
    since = needed_since(operators)
    return since is None or firmware is None or since <= firmware
