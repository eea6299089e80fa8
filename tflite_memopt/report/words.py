"""Numbers, sizes of RAM, names and run times as people write them."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import printable
from ..memory.work import slowdowns


def counted(number: int, noun: str) -> str:
    """``1 output``, ``2 outputs``, ``1,024 bytes``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def change_in_percent(before: int, after: int) -> str:
    """``+12 %``, ``-0.4 %``, or that it is less than a tenth of one; empty without a change, or from nothing."""
    if before == after or before == 0:
        return ""
    share = 100 * (after - before) / before
    if abs(share) < 0.05:
        return f"{'more' if share > 0 else 'less'} by under 0.1 %"
    return f"{share:+.1f} %" if abs(share) < 0.95 else f"{share:+.0f} %"


_KB = 1024


def in_words(size: int) -> str:
    """A size in bytes as people write it: ``64 KB``, ``2 MB``; bytes where it is no whole number of KB."""
    if size % _KB:
        return f"{size:,} bytes"
    return f"{size // _KB**2} MB" if size % _KB**2 == 0 else f"{size // _KB} KB"


LONGEST = 40
"""Characters of a short name, so that a table of four columns fits a terminal."""


LONGEST_LISTED = 100
"""In lists that may wrap: a refused cascade names its region with its stripes."""


def short_name(name: str, longest: int = LONGEST) -> str:
    """The first of several names that the converter joined by ``;``, without leading scopes that do not fit.

    Two tensors may share a short name: show the operator's number too.
    """
    text = printable(name.partition(";")[0])
    while len(text) > longest and "/" in text[:-1]:
        text = text.partition("/")[2]
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


_NOTHING = 0.0005
"""Smaller shares round to 0.0 %."""


def percent(share: float) -> str:
    """``+8.9 %``; ``0 %`` for what rounds to nothing."""
    return "0 %" if abs(share) < _NOTHING else f"{100 * share:+.1f} %"


def in_short(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return ``+8.9 % run time``, with the bound that it is where several libraries differ."""
    share = run_time_in_short(before, after)
    return "the same run time" if share == "as before" else share.replace(" %", " % run time", 1)


def run_time_in_short(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return ``+8.9 %``, ``up to +8.9 %``, ``-3.1 % or better`` or ``as before``: that of the slowest library."""
    shares = [percent(share) for share in slowdowns(before, after).values()]
    if not any(share != "0 %" for share in shares):
        return "as before"
    if len(set(shares)) == 1:
        return shares[0]
    return f"{shares[0]} or better" if shares[0].startswith("-") else f"up to {shares[0]}"


def over_libraries(before: Mapping[str, int], after: Mapping[str, int], kernels: str) -> str:
    """The least and the largest share where several libraries differ; else as ``by_library`` says it."""
    shares = list(dict.fromkeys(percent(share) for share in slowdowns(before, after).values()))
    if len(shares) < 2:
        return by_library(before, after, kernels)
    return f"run time {shares[-1]} to {shares[0]}, by kernel library (estimated)"


def by_library(before: Mapping[str, int], after: Mapping[str, int], kernels: str) -> str:
    """The share with each library, the slowest first; ``kernels``: the profile that the result is for."""
    by_name = slowdowns(before, after)
    if all(percent(share) == "0 %" for share in by_name.values()):
        return "run time as before (instructions, estimated)"
    if len(by_name) > 1:
        each = ", ".join(f"{percent(share)} with {name}" for name, share in by_name.items())
        return f"run time {each} (instructions, estimated)"
    ((name, share),) = by_name.items()
    stands_for = "" if name == kernels else f" as with {name} kernels: {kernels} was not measured"
    return f"run time {percent(share)} (instructions, estimated{stands_for})"
