"""What parts would bring, estimated without a search: one sentence among the advice of ``analyze``."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from ..ir.model import Model
from ..options import Options
from ..report.model import Advice, Analysis
from .choice import Price, Stretch, best_path
from .cutting import why_whole
from .run import MOST_PARTS
from .stretch import SHARE, StretchCosts

_CUTS = 12
"""Positions that are looked at: ``analyze`` answers at once."""
_WORTH = 0.95
"""Of what the model needs, as a share: parts that need more are not spoken of."""


def with_parts(analysis: Analysis, model: Model) -> Analysis:
    """The analysis of a model with its plan, and what parts would bring where that is worth a word.

    Each part is estimated at the largest working set of its operators as they stand, and its own structures. With
    stripes it may need less, but hardly less than what crosses its cuts, and its structures.
    """
    if why_whole(model) is not None or not analysis.tflm.runs:
        return analysis
    options = Options(target=analysis.target, kernels=analysis.kernels)
    costs = StretchCosts(model, options, lambda _: None, most_cuts=_CUTS)
    sets = {step.index: step.bytes for step in analysis.steps if step.subgraph == 0}
    as_it_stands: dict[Stretch, list[tuple[Price, int]]] = {}
    at_best: dict[Stretch, list[tuple[Price, int]]] = {}
    for stretch in combinations(costs.positions, 2):
        need, work = max(sets[at] for at in range(*stretch)) + costs.least_tail(stretch), costs.least_work(stretch)
        as_it_stands[stretch] = [(Price(need, work), 0)]
        at_best[stretch] = [(Price(min(need, costs.estimate(stretch)), work), 0)]
    found, bound = (
        best_path(prices.__getitem__, costs.positions, MOST_PARTS, SHARE) for prices in (as_it_stands, at_best)
    )
    if found is None or bound is None or not found.cuts or found.need > _WORTH * analysis.memory.required_for_target:
        return analysis
    text = (
        f"about {found.need:,} bytes in {len(found.stretches)} parts as it stands, with stripes perhaps {bound.need:,} "
        "(estimates)"
    )
    advice = (*analysis.summary.advice, Advice("tflite-memopt optimize --parts auto", text))
    return replace(analysis, summary=replace(analysis.summary, advice=advice))
