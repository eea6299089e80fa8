"""Steps that every order passes in the same state: a problem falls apart there without loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import or_

from .bit_sets import set_of
from .closure import TransitiveClosure


def forced_cuts(closure: TransitiveClosure) -> list[int]:
    """All steps, from 0 to the end, before which every order runs the same vertices. O(vertices).

    These are the first so many of ``closure.order``.
    """
    count, cuts, reached = len(closure.order), [0], 0
    for step, v in enumerate(closure.order, start=1):
        # The latest step at whose end v has run; once all of the first ones must have run, nothing else can have.
        reached = max(reached, count - closure.after[v].bit_count())
        if reached == step:
            cuts.append(step)
    return cuts


def single_vertex_cuts(closure: TransitiveClosure) -> list[int]:
    """Those forced cuts that follow on a vertex that every path crosses, and the two ends.

    Source: Ahn et al., "Ordering Chaos" (MLSys 2020), section 3.2, after Wilken et al. (PLDI 2000).
    """
    cuts = forced_cuts(closure)
    chosen = (cut for earlier, cut in pairwise(cuts) if cut - earlier == 1)
    return sorted({0, len(closure.order), *chosen})


def sets_at(order: Sequence[int], steps: Sequence[int], done: int = 0) -> list[int]:
    """What has come before each of some ascending steps of an order, the first of which is 0, that goes on from a set.

    O(vertices), but for the width of the sets.
    """
    between = (set_of(order[start:end]) for start, end in pairwise(steps))
    return list(accumulate(between, or_, initial=done))
