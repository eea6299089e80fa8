"""The price of a result in run time, in words: estimated instructions, by the kernel library."""

from __future__ import annotations

from collections.abc import Mapping

from ..memory.work import slowdowns

_NOTHING = 0.0005
"""Smaller shares round to 0.0 %."""


def percent(share: float) -> str:
    """``+8.9 %``; ``0 %`` for what rounds to nothing."""
    return "0 %" if abs(share) < _NOTHING else f"{100 * share:+.1f} %"


def in_short(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """``+8.9 % run time``, and ``up to`` before it where several libraries differ."""
    shares = [percent(share) for share in slowdowns(before, after).values()]
    if not any(share != "0 %" for share in shares):
        return "the same run time"
    return f"{'up to ' if len(set(shares)) > 1 else ''}{shares[0]} run time"


def by_library(before: Mapping[str, int], after: Mapping[str, int], kernels: str) -> str:
    """The share with each library, the slowest first; ``kernels``: the profile that the result is for."""
    found = slowdowns(before, after)
    if all(percent(share) == "0 %" for share in found.values()):
        return "run time as before (instructions, estimated)"
    if len(found) > 1:
        each = ", ".join(f"{percent(share)} with {name}" for name, share in found.items())
        return f"run time {each} (instructions, estimated)"
    ((name, share),) = found.items()
    stands_for = "" if name == kernels else f" as with {name} kernels: {kernels} was not measured"
    return f"run time {percent(share)} (instructions, estimated{stands_for})"
