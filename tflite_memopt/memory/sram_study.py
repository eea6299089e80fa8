"""A model on a chip with little fast memory: traffic to the outside, and how much the order decides.

Source: SERENITY (Ahn et al., MLSys 2020), Figures 3 and 11.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.search_limit import SearchLimit
from ..schedule.methods import solve
from ..schedule.off_chip import off_chip_traffic
from ..schedule.problem import ScheduleProblem
from ..schedule.random_orders import peaks_of_random_orders

SWEEP = tuple(1024 * size for size in (32, 64, 128, 256))
"""Sizes of Figure 11, in bytes."""
RANDOM_ORDERS = 1000


@dataclass(frozen=True)
class TrafficUse:
    """Bytes of activations that cross to the outside and back, with ``on_chip`` bytes of fast memory."""

    on_chip: int
    own_order: int
    best_order: int


@dataclass(frozen=True)
class SramStudy:
    """What the order of operators decides. ``sram``: the fast memory asked for, in bytes.

    ``own_peak``, ``best_peak``: largest working sets of the model's order and of the best one found, which is proved
    to be the best when ``is_proved``. ``random_peaks``: those of random orders, smallest first.
    """

    sram: int
    own_peak: int
    best_peak: int
    is_proved: bool
    traffic: tuple[TrafficUse, ...]
    random_peaks: tuple[int, ...]

    @property
    def fitting_share(self) -> float:
        """The share of random orders whose peak fits the fast memory."""
        return sum(peak <= self.sram for peak in self.random_peaks) / max(1, len(self.random_peaks))


def sram_study(problem: ScheduleProblem, sram: int, seed: int = 0) -> SramStudy:
    """The study of one graph."""
    limit = SearchLimit(seed=seed)
    own, best = solve(problem, "as_is", limit), solve(problem, "best_first", limit)
    traffic = tuple(
        TrafficUse(size, *(off_chip_traffic(problem, each.order, size).total for each in (own, best)))
        for size in sorted({*SWEEP, sram})
    )
    peaks = peaks_of_random_orders(problem, RANDOM_ORDERS, seed)
    return SramStudy(sram, own.peak_bytes, best.peak_bytes, best.optimal, traffic, peaks)
