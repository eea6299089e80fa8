"""What a rule looks for: an operator, and the operators that some of its inputs come from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..ir.model import Graph, Operator, Tensor


@dataclass(frozen=True)
class Pattern:
    """An operator called one of ``names`` whose input slots in ``inputs`` are written by operators that fit too.

    ``role`` is what the rule calls the operator. ``any_input`` must fit one of the inputs; the first that does counts.
    Without ``names`` it is any operator.
    """

    role: str
    names: Collection[str]
    inputs: Mapping[int, Pattern] = field(default_factory=dict)
    any_input: Pattern | None = None


@dataclass(frozen=True)
class Match:
    """Operators of a graph that fit a pattern, by role; ``anchor`` is the last of them to run.

    ``pinned``: names of tensors that must stay.
    """

    graph: Graph
    anchor: Operator
    operators: Mapping[str, Operator]
    pinned: Collection[str] = ()

    def __getitem__(self, role: str) -> Operator:
        return self.operators[role]

    def is_returned(self, tensor: Tensor) -> bool:
        """Whether the tensor is an output of the graph."""
        return any(tensor is output for output in self.graph.outputs)

    def must_stay(self, tensor: Tensor) -> bool:
        """Whether the tensor is returned or pinned."""
        return tensor.name in self.pinned or self.is_returned(tensor)


def match_at(pattern: Pattern, graph: Graph, anchor: Operator, pinned: Collection[str] = ()) -> Match | None:
    """The match that ends in ``anchor``, if there is one."""
    found: dict[str, Operator] = {}
    return Match(graph, anchor, found, pinned) if _fits(pattern, anchor, found) else None


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
