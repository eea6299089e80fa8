"""A simulation of a long run on a cluster: workers, the one process that serves them, and workers that die."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """``workers``; ``center``: seconds that the one process needs for a job, to send it and to write its row.

    ``lifetime``: mean seconds until a worker dies; ``replacement``: seconds until there is another.
    """

    workers: int
    center: float
    lifetime: float
    replacement: float = 60.0


@dataclass(frozen=True)
class Simulated:
    """``seconds`` in all; parts of the time that workers and the center were busy; jobs that were begun again."""

    seconds: float
    workers_busy: float
    centre_busy: float
    again: int


def simulate(cluster: Cluster, jobs: int, services: Sequence[float], seed: int = 0) -> Simulated:
    """Jobs whose seconds are drawn from ``services``; the center serves the workers in turn, one job at a time."""
    draw = random.Random(seed)
    free = [(0.0, worker, draw.expovariate(1 / cluster.lifetime)) for worker in range(cluster.workers)]
    heapq.heapify(free)
    centre_free = busy = last = 0.0
    left, again = jobs, 0
    while left:
        at, worker, dies = heapq.heappop(free)
        start = max(at, centre_free)
        centre_free = start + cluster.center
        seconds = draw.choice(services)
        end = centre_free + seconds
        if end > dies:
            again += 1
            reborn = max(dies, centre_free) + cluster.replacement
            heapq.heappush(free, (reborn, worker, reborn + draw.expovariate(1 / cluster.lifetime)))
            continue
        left -= 1
        busy += seconds
        last = max(last, end)
        heapq.heappush(free, (end, worker, dies))
    return Simulated(last, busy / (last * cluster.workers), (jobs + again) * cluster.center / last, again)
