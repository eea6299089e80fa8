"""The values that a run left: outputs and inner tensors, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ir.model import Graph, Tensor
from .inputs import is_exchanged
from .tolerance import Array


@dataclass
class Trace:
    """By position of the output, and by position of the tensor in the entry graph: its value for each sample.

    A tensor that a runtime has no value of is missing.
    """

    outputs: dict[int, list[Array]] = field(default_factory=dict)
    tensors: dict[int, list[Array]] = field(default_factory=dict)

    def extend(self, other: Trace) -> None:
        """Append the samples of another run of the same model."""
        for mine, theirs in ((self.outputs, other.outputs), (self.tensors, other.tensors)):
            for key, values in theirs.items():
                mine.setdefault(key, []).extend(values)

    def sample(self, number: int) -> Trace:
        """The trace of one sample alone."""
        sides = ({key: [values[number]] for key, values in side.items()} for side in (self.outputs, self.tensors))
        return Trace(*sides)


def trace_of(arrays: Mapping[str, Array], samples: int) -> Trace:
    """The trace in an interpreter's arrays, which are named as :class:`.adapter.Outcome` says."""
    found = Trace()
    kinds = {"o": found.outputs, "t": found.tensors}
    for name, array in arrays.items():
        sample, _, key = name[1:].partition("_")
        values = kinds[key[0]].setdefault(int(key[1:]), [])
        if len(values) == int(sample):  # else an earlier sample has no value
            values.append(array)
    for each in kinds.values():
        for key_of_gap in [key for key, values in each.items() if len(values) < samples]:
            del each[key_of_gap]
    return found


def computed_tensors(graph: Graph) -> tuple[int, ...]:
    """Positions of the tensors that a run gives values to, inputs included, as far as interpreters hand them out."""
    inputs = {id(tensor) for tensor in graph.inputs}
    return tuple(index for index, tensor in enumerate(graph.tensors) if id(tensor) in inputs or _is_computed(tensor))


def _is_computed(tensor: Tensor) -> bool:
    has_value = tensor.producer is not None and not tensor.is_constant and tensor.elements > 0
    return has_value and is_exchanged(tensor.dtype)
