"""Applies rules: one match at a time, the graph checked before and after each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..analysis.side_effects import has_side_effects
from ..ir.change import Exactness, Refusal
from ..ir.check import check_model
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator
from ..ir.names import label
from .pattern import Match, match_at
from .rule import AnyRule, Applied, Proposal

_EXACT: tuple[Exactness, ...] = ("exact",)
_MOST_CHECKED = 500
"""Operators of a model that is checked after each rewrite; a larger one is checked where a walk ends."""


class Driver:
    """Applies rules to one model and keeps the record of it.

    ``allowed``: how far values may change; tensors with a ``pinned`` name are left as they are. ``is_trial``: the model
    is one of a search's many, and made again, checked, if it is kept. Raises ModelFormatError when a rule leaves an
    invalid graph.
    """

    def __init__(
        self,
        model: Model,
        allowed: Collection[Exactness] = _EXACT,
        pinned: Collection[str] = (),
        is_trial: bool = False,
    ) -> None:
        self.model = model
        self.applied: list[Applied] = []
        self.refused: dict[tuple[str, str], Refusal] = {}
        self._allowed = allowed
        self._pinned = pinned
        self._is_trial = is_trial
        self._check()

    def apply_everywhere(self, rules: Sequence[AnyRule]) -> None:
        """Apply the rules in every graph, first rule first, until none has a match left that it accepts."""
        for graph in self.model.graphs:
            changes = 1
            while changes:
                changes = sum(self.apply_at(rules, graph, operator) for operator in list(graph.operators))
        check_model(self.model)

    def apply_below(self, rules: Sequence[AnyRule], graph: Graph, operator: Operator) -> None:
        """Apply the rules to the readers of an operator, then to the readers of each new operator, and so on."""
        waiting, known = [operator], set(graph.operators)
        while waiting:
            for reader in _readers(waiting.pop()):
                if self.apply_at(rules, graph, reader):
                    new = [each for each in graph.operators if each not in known]
                    waiting += new
                    known.update(new)

    def apply_at(self, rules: Sequence[AnyRule], graph: Graph, anchor: Operator) -> bool:
        """Apply the first rule that accepts a match at ``anchor``. False when none does."""
        if anchor not in graph.operators:
            return False
        for rule in rules:
            match = match_at(rule.pattern, graph, anchor, self._pinned)
            proposal = None if match is None else rule.propose(match)
            if match is None or proposal is None:
                continue
            name = label(anchor)
            permitted = self._permitted(match, rule.name, proposal)
            if isinstance(permitted, Refusal):
                self.refused[rule.name, name] = permitted
                continue
            self._apply(match, permitted)
            self.applied.append(Applied(rule.name, name, permitted.exactness))
            self.refused.pop((rule.name, name), None)
            return True
        return False

    def _check(self) -> None:
        # A check looks at the whole model. After each of many rewrites it would take nearly all of the time.
        if not self._is_trial and len(self.model.main.operators) <= _MOST_CHECKED:
            check_model(self.model)

    def _permitted(self, match: Match, rule: str, proposal: Proposal | str) -> Proposal | Refusal:
        """The proposal, or what is against it: a pin, the rule itself, or values that may not change so far."""
        name, pin = label(match.anchor), self._pin_in(match)
        if pin is not None or isinstance(proposal, str):
            return Refusal(rule, name, pin or str(proposal))
        if proposal.exactness not in self._allowed:
            reason = "it would change values: integers are requantized once more (--allow-approximate permits it)"
            return Refusal(rule, name, reason, "needs_approximation")
        return proposal

    def _pin_in(self, match: Match) -> str | None:
        tensors = (tensor for operator in match.operators.values() for tensor in operator.outputs)
        return next((f"'{tensor.name}' is pinned" for tensor in tensors if tensor.name in self._pinned), None)

    def _apply(self, match: Match, proposal: Proposal) -> None:
        edit = Editor(self.model, match.graph, match.graph.operators.index(match.anchor) + 1)
        edit.remove(match.anchor)
        proposal.write(edit)
        _drop_unread(match.graph, match.anchor)
        self._check()


def _readers(operator: Operator) -> Iterator[Operator]:
    return iter({id(use.operator): use.operator for tensor in operator.outputs for use in tensor.uses}.values())


def _drop_unread(graph: Graph, removed: Operator) -> None:
    """Take out what only ``removed`` has read, and what only that has read."""
    waiting = [removed]
    while waiting:
        for tensor in waiting.pop().present_inputs():
            writer = tensor.producer
            if writer is not None and is_dead(graph, writer):
                graph.remove_operator(writer)
                waiting.append(writer)


def is_dead(graph: Graph, operator: Operator) -> bool:
    """Whether nobody needs the operator: nothing reads or returns its outputs, and it has no side effect."""
    if has_side_effects(operator) or not operator.outputs:
        return False
    return not any(tensor.uses or any(tensor is each for each in graph.outputs) for tensor in operator.outputs)
