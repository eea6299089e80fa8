"""What every rule of rewrite/rules is, and what is said of its use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ..ir.change import Exactness
from ..ir.editor import Editor
from .pattern import Match, Pattern

Findings = TypeVar("Findings")


def always_exact(_: object) -> Exactness:
    """The exactness of a rule that moves or removes operators and changes no value."""
    return "exact"


@dataclass(frozen=True)
class Proposal:
    """A rewrite that a rule would make at one match: ``write`` makes it."""

    exactness: Exactness
    write: Callable[[Editor], None]


@dataclass(frozen=True)
class Rule(Generic[Findings]):
    """One rewrite of one pattern.

    ``check`` changes nothing. It gives what it found at a match, a frozen dataclass with all that ``rewrite`` needs;
    or the reason, a text, why the match must be left alone; or None where there is nothing to report, since the rule
    is not about such an operator. ``exactness`` is that of one match.

    ``rewrite`` is called when the anchor is out of the graph and the editor stands where it was; it must have every
    output of the anchor that is still read, or returned by the graph, written again or replaced.
    """

    name: str
    pattern: Pattern
    check: Callable[[Match], Findings | str | None]
    rewrite: Callable[[Findings, Editor], None]
    exactness: Callable[[Findings], Exactness] = always_exact

    def propose(self, match: Match) -> Proposal | str | None:
        """What the rule would do at a match, the reason against it, or None where there is nothing to report."""
        found = self.check(match)
        if found is None or isinstance(found, str):
            return found
        return Proposal(self.exactness(found), partial(self.rewrite, found))


AnyRule = Rule[Any]
"""A rule among others, each of which has findings of its own type."""


@dataclass(frozen=True)
class Applied:
    """A rule was applied to the operator whose first output has this name."""

    rule: str
    operator: str
    exactness: Exactness
