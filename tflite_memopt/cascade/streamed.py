"""Causal sequences as one loop: regions longer than the search looks at, of which no tensor runs ahead.

    x -- causal convolutions, gates, sums of all levels -- y        some hundred operators, whole sequences in between

    x --+                                                           a few rows of each at a time; of what a convolution
        +--> WHILE --> y                                            reads, the rows kept that it reads again
    y, not yet set --+

In a TCN or a WaveNet every level binds alike, so that nothing is gained before all of them are in one region. Their
convolutions see the past alone: all tensors go through the sequence in step, no turn makes a row that is none, and no
product is computed twice. What has to be kept is ``(taps - 1) * dilation`` rows for each convolution (the same as
in Paine et al., Fast WaveNet, arXiv 1611.09482, section 2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from ..analysis.macs import model_macs
from ..ir.copying import copy_model
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost, cost_of
from ..memory.usage import operator_count
from ..memory.work import WorkLimit, instructions, model_work
from ..operators.table import row_by_row
from ..options import Options
from .loop.lower import turns_of
from .loop.masked import Masked
from .predict import LONGEST
from .region import region_of, start_of_region
from .rounds import limits_at
from .striped_region import StripedRegion, apply_stripes, loop_forms

_TRIES = 4
"""Numbers of rows a turn that are planned for each region: the fewest within the limits on run time, and the next."""


@dataclass(frozen=True)
class Streamed:
    """A region of a model, that model with it as a loop, and what it costs then."""

    region: StripedRegion
    model: Model
    cost: Cost


def streamed(model: Model, profile: KernelProfile, options: Options, known: Cost) -> Streamed | None:
    """The cheapest way to run a long causal region as one loop; None where none costs less than is ``known``.

    Within the limits on MACs, run time and operators, and without a tensor that is pinned. The model stays as it is.
    """
    if "rolling" not in options.halos or not loop_forms(options):
        return None
    found: list[Streamed] = []
    pinned = {name for name, _ in options.pins}
    for first, end in _long_regions(model, pinned):
        for made, region in islice(_loops(model, profile, options, first, end), _TRIES):
            found.append(Streamed(region, made, cost_of(made, profile, options)))
    cheaper = (each for each in found if each.cost < known)
    # More rows a turn take less time: where they need no more, they are better.
    return min(cheaper, key=lambda each: (each.cost.need, model_work(each.model, profile.prices)), default=None)


def _long_regions(model: Model, pinned: Collection[str]) -> Iterator[tuple[int, int]]:
    """Steps ``first`` to ``end``, half-open, of regions longer than the search looks at, none inside another one."""
    ways = [row_by_row(operator) for operator in model.main.operators]
    least = len(ways)
    for exit_ in reversed(range(len(ways))):
        first = start_of_region(model.main, exit_, ways, len(ways), pinned)
        if first < least and exit_ + 1 - first > LONGEST:
            least = first
            yield first, exit_ + 1


def _loops(
    model: Model, profile: KernelProfile, options: Options, first: int, end: int
) -> Iterator[tuple[Model, StripedRegion]]:
    """The model with these steps as a loop in which nothing runs ahead, within the limits: few rows a turn first."""
    region = region_of(model.main, model.main.operators[first:end])
    if isinstance(region, str):
        return
    height = region.exit.shape[1]
    for rows in (rows for rows in range(1, height) if height % rows == 0):
        turns = turns_of(region, rows, "masked", "rolling", "pad")
        if not isinstance(turns, Masked) or turns.first_turn < 0:
            continue
        striped = StripedRegion(first, end, tuple(range(rows, height + 1, rows)), "rolling", "pad", "masked")
        made = copy_model(model)
        apply_stripes(made, [striped])
        if is_within(made, model, profile, options):
            yield made, striped


def is_within(made: Model, model: Model, profile: KernelProfile, options: Options) -> bool:
    """Whether it keeps the limits on what may be added to the model: MACs, run time and operators."""
    macs, work, most = model_macs(model), model_work(model, profile.prices), options.max_extra_operators
    limits = limits_at(options.max_extra_macs, macs, work, 0, options.extra_work)
    if most is not None and operator_count(made) - operator_count(model) > most:
        return False
    if model_macs(made) - macs > limits.macs or model_work(made, profile.prices) - work > limits.work:
        return False
    return WorkLimit(instructions(model, profile), options.extra_work, profile).is_kept_by(made)
