"""What was done to a model, what was not and why, and how far each change may alter values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .decision import NOTHING_DECIDED, Decision
from .model import Model

Exactness = Literal["exact", "reassociates", "approximates"]
EXACTNESS: tuple[Exactness, ...] = ("exact", "reassociates", "approximates")
"""From the strictest: the same bits; the same sums in another order (float); a requantized value more (integers)."""
BOUNDARY = "boundary"
"""The rule of ``--io int8``, by which the model takes and gives integers."""
INFERRED_SHAPES = "inferred_shapes"
"""The rule by which static shapes become those that LiteRT infers from the operands."""
OUT_OF_TIME = "the time limit stopped the search: a longer one, or another machine, may find another result"
"""The reason that a search gives when the clock has ended it, and not its own limit."""
Cause = Literal["judged", "out_of_time", "needs_approximation"]
"""``judged``: by the rule or the cost. ``needs_approximation``: it would change values more than is allowed."""


@dataclass(frozen=True)
class RewriteUse:
    """What was applied at one place: its rules' names, joined by `` + ``, and the operators they changed.

    ``exactness`` is that of the loosest; ``saved_bytes`` of the objective, 0 for what was not searched for.
    ``stripes``: how a region runs a few rows at a time; None for what is no region.
    """

    rule: str
    operators: tuple[str, ...]
    exactness: Exactness
    saved_bytes: int
    stripes: str | None = None


@dataclass(frozen=True)
class Refusal:
    """A rule that fits an operator, named by its first output, and was not applied.

    ``reason`` is for people; ``cause`` is what programs decide by.
    """

    rule: str
    operator: str
    reason: str
    cause: Cause = "judged"


def out_of_time(rule: str, operator: str) -> Refusal:
    """A search that the clock has ended."""
    return Refusal(rule, operator, OUT_OF_TIME, "out_of_time")


@dataclass(frozen=True)
class Changed:
    """The model that a stage hands on, what was done to it, and what was not for which reason.

    ``least``: of a search for stripes, bytes of the objective that nothing it looks at goes below, where it is known.
    ``decision``: what the stage's search chose, with which the same stage does the same again.
    """

    model: Model
    uses: tuple[RewriteUse, ...]
    refused: tuple[Refusal, ...]
    least: int | None = None
    decision: Decision = NOTHING_DECIDED


def loosest(found: Iterable[Exactness]) -> Exactness:
    """The exactness of all changes together; "exact" when there is none."""
    return max(found, key=EXACTNESS.index, default="exact")
