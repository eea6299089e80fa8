"""The engine of rewrites: patterns, rules, and the driver that applies rules one match at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...model.analysis.side_effects import has_side_effects
from ...model.ir.change import Exactness, Refusal, RewriteUse, loosest
from ...model.ir.check import check_model
from ...model.ir.editor import label
from ...model.ir.model import Graph, Model, Operator, Tensor
from ...model.ir.tensors import quantized_alike
from ...operators.editor import Editor


@dataclass(frozen=True)
class Pattern:
    """An operator called one of ``names`` whose input slots in ``inputs`` are written by operators that fit too.

    ``role`` is the rule's name for the operator. ``any_input`` must fit one of the inputs; the first that does counts.
    Without ``names`` it is any operator.
    """

    role: str
    names: Collection[str]
    inputs: Mapping[int, Pattern] = field(default_factory=dict)
    any_input: Pattern | None = None


@dataclass(frozen=True)
class Match:
    """Operators of a graph that fit a pattern, by role; ``anchor`` is the last of them to run."""

    graph: Graph
    anchor: Operator
    operators: Mapping[str, Operator]

    def __getitem__(self, role: str) -> Operator:
        return self.operators[role]

    def is_returned(self, tensor: Tensor) -> bool:
        """Tell whether the tensor is an output of the graph."""
        return any(tensor is output for output in self.graph.outputs)

    def is_shared(self, tensor: Tensor) -> bool:
        """Tell whether more than one operand reads the tensor, or the graph returns it."""
        return len(tensor.uses) > 1 or self.is_returned(tensor)


def match_at(pattern: Pattern, graph: Graph, anchor: Operator) -> Match | None:
    """Return the match that ends in ``anchor``, if there is one."""
    found: dict[str, Operator] = {}
    return Match(graph, anchor, found) if _fits(pattern, anchor, found) else None


def _fits(pattern: Pattern, operator: Operator, found: dict[str, Operator]) -> bool:
    if pattern.names and operator.name not in pattern.names:
        return False
    found[pattern.role] = operator
    for slot, inner in pattern.inputs.items():
        tensor = operator.inputs[slot] if slot < len(operator.inputs) else None
        if not _is_written_by(inner, tensor, found):
            return False
    wanted = pattern.any_input
    return wanted is None or any(_is_written_by(wanted, tensor, found) for tensor in operator.inputs)


def _is_written_by(pattern: Pattern, tensor: Tensor | None, found: dict[str, Operator]) -> bool:
    return tensor is not None and tensor.producer is not None and _fits(pattern, tensor.producer, found)


@dataclass(frozen=True)
class Proposal:
    """A rewrite that a rule would make at one match.

    ``write`` makes it. It is called when the anchor is out of the graph and the editor stands where it was; it must
    have every output of the anchor that is still read, or returned by the graph, written again or replaced.
    ``exactness``: how far it changes values.
    """

    write: Callable[[Editor], object]
    exactness: Exactness = "exact"


Answer = Proposal | str | None
"""What a rule answers to a match: a proposal; why the match must be left alone; or nothing, where the rule is not about
such an operator."""


@dataclass(frozen=True)
class Rule:
    """One rewrite of one pattern. ``check`` answers to a match, and changes nothing."""

    name: str
    pattern: Pattern
    check: Callable[[Match], Answer]


@dataclass(frozen=True)
class Applied:
    """A rule was applied to the operator whose first output has this name."""

    rule: str
    operator: str
    exactness: Exactness


def leave_out(source: Tensor | str, output: Tensor) -> Proposal | str:
    """Propose that the readers of ``output`` read its source instead; a text is a reason against that."""
    return source if isinstance(source, str) else Proposal(lambda edit: edit.graph.replace_uses(output, source))


def read_instead(operator: Operator, source: Tensor | str, **fields: Any) -> Proposal | str:
    """Propose that an operator reads the source of the copy that is its first input; a text is a reason against that.

    ``fields``: options that are then others.
    """
    if isinstance(source, str):
        return source
    inputs = (source, *operator.inputs[1:])
    return Proposal(lambda edit: edit.twin(operator, inputs, operator.outputs, **fields))


def is_shape_computed(reshape: Operator) -> bool:
    """Tell whether an operand of a reshape is known at run time only."""
    return any(tensor is not None and not tensor.is_constant for tensor in reshape.inputs[1:])


def source_of(source: Tensor | None, copied: Tensor) -> Tensor | str:
    """``source``, where its integers mean the same numbers as those of ``copied`` and stay; or why they do not."""
    if source is None or source.is_variable or copied.is_variable:
        return "it copies a variable, which may change before the copy is read"
    if source.dtype is not copied.dtype or not quantized_alike(source.quantization, copied.quantization):
        return f"'{copied.name}' is quantized otherwise than '{source.name}': the same integers mean other numbers"
    return source


def source_for_one_reader(match: Match, copying: Operator) -> Tensor | str:
    """Return the source of ``copying``, which the match's anchor may read instead, or the reason why it must not.

    Where others read the copy too it stays, and the source would have to live longer beside it.
    """
    copied = copying.outputs[0]
    if match.is_shared(copied):
        return f"'{copied.name}' is needed by others too"
    return source_of(copying.inputs[0], copied)


EXACT: tuple[Exactness, ...] = ("exact",)
_MORE_WALKS = 100
"""Walks over a graph beyond one for each of its operators."""
_MOST_CHECKED = 500
"""Operators of a model that is checked after each rewrite; a larger one is checked where a walk ends."""


class Driver:
    """Applies rules to one model and keeps the record of it.

    ``allowed``: how far values may change. ``is_trial``: the model is one of a search's many, and made again, checked,
    if it is kept. ``names``: those that each graph has, which several drivers of one model may share. Raises
    ModelFormatError when a rule leaves an invalid graph.
    """

    def __init__(
        self,
        model: Model,
        allowed: Collection[Exactness] = EXACT,
        is_trial: bool = False,
        names: dict[Graph, set[str]] | None = None,
    ) -> None:
        self.model = model
        self.applied: list[Applied] = []
        self.refused: dict[tuple[str, str], Refusal] = {}
        self._allowed = allowed
        self._is_trial = is_trial
        self._names = {} if names is None else names
        self._check()

    def apply_everywhere(self, rules: Sequence[Rule]) -> None:
        """Apply the rules in every graph, first rule first, until none has a match left that it accepts.

        Each walk applies at least one rule. More walks than the graph has operators are a sign of rules that undo each
        other, which is a fault of this program.
        """
        for graph in self.model.graphs:
            most = len(graph.operators) + _MORE_WALKS
            while sum(self.apply_at(rules, graph, operator) for operator in list(graph.operators)):
                most -= 1
                if not most:
                    last = ", ".join(sorted({each.rule for each in self.applied[-_MORE_WALKS:]}))
                    raise AssertionError(f"rules undo each other: {last}")
        check_model(self.model)

    def apply_below(self, rules: Sequence[Rule], graph: Graph, operator: Operator) -> None:
        """Apply the rules to the readers of an operator, then to the readers of each new operator, and so on."""
        waiting, known = [operator], set(graph.operators)
        while waiting:
            made = waiting.pop().outputs
            for reader in dict.fromkeys(use.operator for tensor in made for use in tensor.uses):
                if self.apply_at(rules, graph, reader):
                    new = [each for each in graph.operators if each not in known]
                    waiting += new
                    known.update(new)

    def apply_at(self, rules: Sequence[Rule], graph: Graph, anchor: Operator) -> bool:
        """Apply the first rule that accepts a match at ``anchor``. False when none does."""
        if not _is_in(graph, anchor):
            return False
        for rule in rules:
            match = match_at(rule.pattern, graph, anchor)
            proposal = None if match is None else rule.check(match)
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

    def uses(self) -> tuple[RewriteUse, ...]:
        """Return the rules that were applied, and to what, in the order of their first operators."""
        by_rule: dict[str, list[Applied]] = {}
        for each in self.applied:
            by_rule.setdefault(each.rule, []).append(each)
        return tuple(
            RewriteUse(rule, tuple(one.operator for one in every), loosest(one.exactness for one in every), 0)
            for rule, every in by_rule.items()
        )

    def _check(self) -> None:
        # A check looks at the whole model. After each of many rewrites it would take nearly all of the time.
        if not self._is_trial and len(self.model.main.operators) <= _MOST_CHECKED:
            check_model(self.model)

    def _permitted(self, match: Match, rule: str, proposal: Proposal | str) -> Proposal | Refusal:
        """Return the proposal, or the objection: the rule itself, or values that may not change so far."""
        name = label(match.anchor)
        if isinstance(proposal, str):
            return Refusal(rule, name, proposal)
        if proposal.exactness not in self._allowed:
            reason = "it would change values: integers are requantized once more (permitted by --allow-approximate)"
            return Refusal(rule, name, reason, "needs_approximation")
        return proposal

    def _apply(self, match: Match, proposal: Proposal) -> None:
        graph = match.graph
        if graph not in self._names:
            self._names[graph] = {tensor.name for tensor in graph.tensors}
        proposal.write(Editor.in_place_of(self.model, graph, match.anchor, names=self._names[graph]))
        _drop_unread(match.graph, match.anchor)
        self._check()


def _is_in(graph: Graph, operator: Operator) -> bool:
    """Tell whether an operator that was in the graph still is; only one without outputs has to be looked for."""
    if operator.outputs:
        return operator.outputs[0].producer is operator
    return operator in graph.operators


def _drop_unread(graph: Graph, removed: Operator) -> None:
    """Remove operators that only ``removed`` has read, and recursively theirs."""
    waiting = [removed]
    while waiting:
        for tensor in waiting.pop().present_inputs():
            writer = tensor.producer
            if writer is not None and is_dead(graph, writer):
                graph.remove_operator(writer)
                waiting.append(writer)


def drop_dead(graph: Graph) -> None:
    """Remove the operators that nobody needs."""
    for operator in reversed(list(graph.operators)):
        if is_dead(graph, operator):
            graph.remove_operator(operator)


def is_dead(graph: Graph, operator: Operator) -> bool:
    """Tell whether nobody needs the operator: nothing reads or returns its outputs, and it has no side effect."""
    if has_side_effects(operator) or not operator.outputs:
        return False
    return not any(tensor.uses or any(tensor is each for each in graph.outputs) for tensor in operator.outputs)
