"""How much a search may spend: shared by schedulers and planners."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchLimit:
    """``time_limit`` in seconds of wall time; ``seed`` makes a randomised method repeatable."""

    time_limit: float = 60.0
    seed: int = 0
