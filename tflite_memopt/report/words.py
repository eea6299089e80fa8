"""Numbers, sizes of RAM, names and run times as people write them."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import printable

NOT_COMPUTED = "to try, not computed"
"""In place of the figure of an advice."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 output``, ``1,024 bytes``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def change_in_percent(before: int, after: int) -> str:
    """Return ``+12 %``, ``-0.4 %``, or that it is less than a tenth; empty without a change, or from nothing."""
    if before == after or before == 0:
        return ""
    share = 100 * (after - before) / before
    if abs(share) < 0.05:
        return f"{'more' if share > 0 else 'less'} by under 0.1 %"
    return f"{share:+.1f} %" if abs(share) < 0.95 else f"{share:+.0f} %"


_KB = 1024


def in_words(size: int) -> str:
    """Return a size as people write it: ``64 KB``, ``2 MB``; bytes where it is no whole number of KB."""
    if size % _KB:
        return f"{size:,} bytes"
    return f"{size // _KB**2} MB" if size % _KB**2 == 0 else f"{size // _KB} KB"


LONGEST = 40
"""Characters of a short name, so that a table of four columns fits a terminal."""


LONGEST_LISTED = 100
"""In lists that may wrap: a refused cascade names its region with its stripes."""


def short_name(name: str, longest: int = LONGEST) -> str:
    """Return the first of the names that the converter joined by ``;``, without leading scopes that do not fit.

    Two tensors may share a short name: show the operator's number too.
    """
    text = printable(name.partition(";")[0])
    while len(text) > longest and "/" in text[:-1]:
        text = text.partition("/")[2]
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


def file_name(name: str | None) -> str:
    """Return the name of a model's file in a title; ``model`` for bytes, which have none."""
    return printable(name or "model")


_NOTHING = 0.0005
"""Smaller shares round to 0.0 %."""


def percent(share: float) -> str:
    """Return ``+8.9 %``; ``0 %`` for what rounds to nothing."""
    return "0 %" if abs(share) < _NOTHING else f"{100 * share:+.1f} %"


Shares = Mapping[str, float]
"""Added run time by kernel library as a fraction, the slowest first (``memory.work.slowdowns``)."""


def in_short(shares: Shares) -> str:
    """Return ``+8.9 % run time``, with the bound that it is where several libraries differ."""
    share = run_time_in_short(shares)
    return "the same run time" if share is None else share.replace(" %", " % run time", 1)


def run_time_in_short(shares: Shares) -> str | None:
    """Return ``+8.9 %``, ``up to +8.9 %`` or ``-3.1 % or better``: that of the slowest library; None for no change."""
    shown = [percent(share) for share in shares.values()]
    if _is_as_before(shares):
        return None
    if len(set(shown)) == 1:
        return shown[0]
    return f"{shown[0]} or better" if next(iter(shares.values())) < 0 else f"up to {shown[0]}"


def over_libraries(shares: Shares, kernels: str) -> str:
    """Return the least and the largest share where several libraries differ; else as ``by_library`` says it."""
    shown = list(dict.fromkeys(percent(share) for share in shares.values()))
    if len(shown) < 2:
        return by_library(shares, kernels)
    return f"run time {shown[-1]} to {shown[0]}, by kernel library (estimated)"


def by_library(shares: Shares, kernels: str) -> str:
    """Return the share with each library, the slowest first; ``kernels``: the profile that the result is for."""
    if _is_as_before(shares):
        return "run time as before (instructions, estimated)"
    if len(shares) > 1:
        by_name = ", ".join(f"{percent(share)} with {name}" for name, share in shares.items())
        return f"run time {by_name} (instructions, estimated)"
    ((name, share),) = shares.items()
    stands_for = "" if name == kernels else f" as with {name} kernels: {kernels} was not measured"
    return f"run time {percent(share)} (instructions, estimated{stands_for})"


def _is_as_before(shares: Shares) -> bool:
    return all(abs(share) < _NOTHING for share in shares.values())
