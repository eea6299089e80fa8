"""What every rule of rewrite/rules is, and what is said of its use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.change import Exactness
from ..ir.editor import Editor
from .pattern import Match, Pattern


@dataclass(frozen=True)
class Rule:
    """One rewrite of one pattern.

    ``refuse`` gives the reason why a match must be left alone, or None. ``exactness`` is that of one match.
    ``rewrite`` is called when the anchor is out of the graph and the editor stands where it was; it must have every
    output of the anchor that is still read, or returned by the graph, written again or replaced.
    """

    name: str
    pattern: Pattern
    refuse: Callable[[Match], str | None]
    exactness: Callable[[Match], Exactness]
    rewrite: Callable[[Match, Editor], None]


@dataclass(frozen=True)
class Applied:
    """A rule was applied to the operator whose first output has this name."""

    rule: str
    operator: str
    exactness: Exactness


def always_exact(_: Match) -> Exactness:
    """The exactness of a rule that moves or removes operators and changes no value."""
    return "exact"
