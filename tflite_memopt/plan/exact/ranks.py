"""Rankings for the exact search: which of two items that can start at the same offset goes first.

No single ranking serves all problems, so restarts take turns, each with fresh noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .group import Group, Ints

_KINDS = 4
_FIRM = 1e6
"""Factor that puts one class of items before all others, whatever the noise."""
_NOISE = 0.4


def ranking(model: Group, failures: NDArray[np.float64], turn: int, rng: np.random.Generator) -> Ints:
    """A permutation: ``rank[i]`` is the turn of item i among equals. The first four turns are free of noise."""
    sections = (model.last - model.first).astype(np.float64)
    kind, noise = turn % _KINDS, (0.0 if turn < _KINDS else _NOISE)
    tight = _tight_sections(model)
    if kind == 0:
        weight = sections + _FIRM * tight
    elif kind == 1:
        weight = sections * model.size * np.where(tight > 0, _FIRM, 1)
    elif kind == 2:
        weight = sections * np.where(tight > 0, _FIRM, 1)
    else:
        weight = sections * _learned(model, failures)
    weight = weight * (1 + noise * (rng.random(len(sections)) - 0.5))
    rank = np.empty(len(weight), dtype=np.int64)
    rank[np.argsort(-weight, kind="stable")] = np.arange(len(weight))
    return rank


def _tight_sections(model: Group) -> NDArray[np.float64]:
    """For each item how many sections of the largest load it is alive in: there no byte may be wasted."""
    before = np.concatenate(([0.0], np.cumsum(model.load == model.load.max())))
    return np.asarray(before[model.last] - before[model.first])


def _learned(model: Group, failures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of the sections that ended branches so far, summed over the item's life; 1 when there are none."""
    share = failures / max(float(failures.sum()), 1.0) * len(failures)
    sums = np.concatenate(([0.0], np.cumsum(share)))
    return 1 + np.asarray(sums[model.last] - sums[model.first])
