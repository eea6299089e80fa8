"""The runs with narrower limits that a run starts from, so that wider limits never end worse.

    asked for: 30 % more MACs, thorough

        10 %, normal -> 30 %, normal -> 10 %, thorough -> 30 %, thorough      the best of the four is the answer

A search with wider limits looks at more, and may choose what seems better and then gains less by tiles, rules and the
final plan. So each of these runs goes all the way. The limits that a run has by default are where it starts: narrower
ones are not run again, since each takes as long as the run itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ..options import EFFORTS, LEAST_WORK, Options

MACS = (0.0, 0.1, 0.3, 1.0)
"""Limits on added MACs, as fractions, from which wider ones start."""
_DEFAULT = Options()


def narrower(options: Options) -> tuple[Options, ...]:
    """The options with each narrower limit, from narrow to wide; none where no limit is wider than by default."""
    if not options.cascade:
        return ()
    wanted, least = (EFFORTS.index(each) for each in (options.effort, _DEFAULT.effort))
    efforts = EFFORTS[min(wanted, least) : wanted + 1]
    shares = [each for each in MACS if _DEFAULT.max_extra_macs <= each < options.max_extra_macs]
    every = product(efforts, (*shares, options.max_extra_macs))
    found = [
        replace(options, effort=effort, max_extra_macs=share, max_extra_work=work)
        for effort, share in every
        for work in _works(options.max_extra_work, share)
    ]
    return tuple(each for each in found if each != options)


def _works(asked: float | None, share: float) -> Sequence[float | None]:
    """The limits on work to go through with a share of MACs: first what that allows by itself, if that is less."""
    return (None, asked) if asked is not None and asked > max(LEAST_WORK, share) else (asked,)
