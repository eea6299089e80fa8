"""What plans of a problem within narrow limits leave for the same plan within wider ones: the answer is the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from .cores import Core
from .exact.strategy import Searches
from .hill_climb.strategy import Runs
from .problem import Candidate


@dataclass
class PlanMemory:
    """``answers``: of strategies that know no limit, by name. ``searches``: of ``exact``. ``climbs``: of hill climbs.

    ``cores``: None as long as nobody has asked for them; ``of_cores``: what is left of each, by its items.
    """

    answers: dict[str, Candidate] = field(default_factory=dict)
    searches: Searches = field(default_factory=dict)
    climbs: Runs = field(default_factory=dict)
    cores: tuple[Core, ...] | None = None
    of_cores: dict[tuple[int, ...], PlanMemory] = field(default_factory=dict)
