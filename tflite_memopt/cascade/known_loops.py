"""What regions need as loops, for all searches of a run: other orders and other models have many of the same regions.

A region is known by its operators. Copies of a model share operator codes, options, buffers and quantisation, which
nothing changes in place: each has a number here, by which it is the same or another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ..ir.model import Graph, Model, Operator, Tensor
from ..kernels.profile import KernelProfile

Key = tuple[object, ...]
"""Equal for regions of which the same loop needs the same. It pickles: numbers, shapes and types."""


@dataclass(frozen=True)
class Totals:
    """Of a model of a region alone: its tail and temporaries in bytes, and what it runs."""

    tail: int
    temporaries: int
    macs: int
    operators: int
    work: int


@dataclass(frozen=True)
class Counted:
    """Of a region as a loop, alone: a lower bound on its head in bytes, and its totals."""

    bound: int
    totals: Totals


@dataclass
class KnownLoops:
    """``found``: by the region, its kernel profile and what is done to it, in the order in which they were found.

    An object that has a number is kept, so that no other one takes its place in memory.
    """

    found: dict[Key, Counted] = field(default_factory=dict)
    _numbered: dict[int, tuple[int, object]] = field(default_factory=dict)

    def number(self, shared: object) -> int:
        """The number of an object that copies of a model share."""
        return self._numbered.setdefault(id(shared), (len(self._numbered), shared))[0]

    def since(self, count: int) -> dict[Key, Counted]:
        """What was found after so many."""
        return dict(islice(self.found.items(), count, None))


class RegionKeys:
    """The keys of one model's intervals, for one kernel profile. All its operators are numbered at once."""

    def __init__(self, model: Model, profile: KernelProfile, known: KnownLoops) -> None:
        self._known, self._profile = known, known.number(profile)
        self._operators = tuple(model.main.operators)
        self._described = [self._of_operator(operator) for operator in self._operators]
        self._tensors = {t: self._of_tensor(t) for operator in self._operators for t in _tensors_of(operator)}
        self._last_read = _last_reads(model.main)

    def of(self, first: int, end: int) -> Key:
        """Of steps ``first`` to ``end``, half-open: tensors by numbers in order, and whether they live on."""
        places: dict[Tensor, int] = {}
        edges: list[tuple[int, ...]] = []
        for operator in self._operators[first:end]:
            ends = (*operator.inputs, *operator.outputs)
            edges.append(tuple(-1 if t is None else places.setdefault(t, len(places)) for t in ends))
        tensors = tuple((self._tensors[t], self.lives_on(t, end)) for t in places)
        return self._profile, tuple(self._described[first:end]), tuple(edges), tensors

    def lives_on(self, tensor: Tensor, end: int) -> bool:
        """Whether step ``end`` or a later one reads the tensor, or the graph returns it."""
        return self._last_read.get(tensor, -1) >= end

    def _of_operator(self, operator: Operator) -> Key:
        shared = (operator.opcode, operator.options, operator.options2, operator.custom_options)
        return *map(self._known.number, shared), len(operator.inputs)

    def _of_tensor(self, tensor: Tensor) -> Key:
        """All but its name and its origin, which say nothing of what it needs; what is computed has no data."""
        buffer = self._known.number(tensor.buffer) if tensor.is_constant else -1
        flags = tensor.is_variable, tensor.is_placeholder, tensor.fixed_offset
        return tensor.shape, tensor.dtype.name, buffer, self._known.number(tensor.quantization), *flags


def _tensors_of(operator: Operator) -> Iterator[Tensor]:
    yield from operator.present_inputs()
    yield from operator.outputs


def _last_reads(graph: Graph) -> Mapping[Tensor, int]:
    """The last step that reads each tensor; one behind all for what the graph returns."""
    found = {tensor: at for at, operator in enumerate(graph.operators) for tensor in operator.present_inputs()}
    return found | dict.fromkeys(graph.outputs, len(graph.operators))
