"""A search that is asked the same questions again, with more work to spend: it goes on where the work has ended it.

    first time     q1 found, q2 none, q3 found, q4 .... (no work left)
    second time    q1 found, q2 none, q3 found, q4 ....|........... none, q5 ...

Questions follow from the answers before them, so that both times begin with the same ones. The answers and the work
that is counted are those of a search that begins anew with as much work.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.search_limit import WorkAllowance
from .group import ItemGroup
from .pair_search import PairRun, PairSearch
from .run import SearchRun
from .tree import LIMIT

_Question = tuple[int, str, int]
"""Capacity, rule, nodes."""


@dataclass
class _Asked:
    """``run``: None once no more work would change its end."""

    question: _Question
    found: SearchRun
    run: PairRun | None


class ResumedSearch(PairSearch):
    """A search over disjunctions that knows what it was asked before."""

    def __init__(self, group: ItemGroup, compiles: bool = True) -> None:
        super().__init__(group, compiles)
        self._asked: list[_Asked] = []
        self._at = 0

    def begin_again(self) -> ResumedSearch:
        """Itself, to be asked the first question next; with as much work as before, or more."""
        self._at = 0
        return self

    def run(self, capacity: int, rule: str, nodes: int, allowance: WorkAllowance) -> SearchRun:
        """As ``PairSearch.run``. Raises AssertionError for another question than the first time: a fault in here."""
        question = capacity, rule, nodes
        if self._at == len(self._asked):
            self._asked.append(_Asked(question, SearchRun(LIMIT, 0, 0), self.begin(capacity, rule)))
        asked = self._asked[self._at]
        self._at += 1
        if asked.question != question:
            raise AssertionError(f"a search was asked {question} where it had been asked {asked.question}")
        if asked.run is None:
            allowance.left -= asked.found.work
        else:
            asked.found = asked.run.go_on(nodes, allowance)
            if asked.found.end != LIMIT or not allowance.is_spent():
                asked.run = None
        return asked.found
