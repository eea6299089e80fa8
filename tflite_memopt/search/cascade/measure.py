"""Measure the needs of a region in some form, written into a copy of the region alone.

One measure for all forms. A region is known by its operators, so that other orders and other models, which have many of
the same regions, find the figures of one. Operator codes, options, buffers and quantization, which nothing changes in
place, have numbers: equal ones have the same, whether copies of a model share them or rewrites under another limit made
them anew.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeVar

from ...errors import InfeasibleError
from ...kernels.arena import ALLOCATION_INFO, EVAL_TENSOR
from ...kernels.faults import faults_in, new_faults
from ...kernels.mend import mend
from ...kernels.profile import KernelProfile
from ...memory.figures import arena_terms
from ...memory.layout import memory_layout
from ...memory.work import model_work
from ...model.io.writer import write_model
from ...model.ir.copying import unlinked_twin
from ...model.ir.model import Graph, Model, Operator, Tensor
from ...solvers.plan.bounds import max_breadth
from .select import Figures
from .tiling import Tiling, apply_tilings

CONSTANT = (EVAL_TENSOR, ALLOCATION_INFO)
"""The tail and the planner temporaries of a constant."""
Bounds = TypeVar("Bounds")
Key = tuple[object, ...]
"""Equal for regions whose forms need the same. It pickles: numbers, shapes and types."""


@dataclass
class Measured:
    """``found``: by the region, its kernel profile and its form; None where it cannot be written in that form.

    ``bounds``: by the region, its kernel profile and the forms that were asked about together. ``plans``: by the whole
    model, its kernel profile and what the planner is told; and then by the set of tilings and what was to be beaten.
    An object that has a number is kept, so that no other one takes its place in memory.
    """

    found: dict[Key, Figures | None] = field(default_factory=dict)
    bounds: dict[Key, Any] = field(default_factory=dict)
    plans: dict[Key, dict[Key, Any]] = field(default_factory=dict)
    _numbered: dict[int, tuple[int, object]] = field(default_factory=dict)
    _by_value: dict[object, int] = field(default_factory=dict)

    def number(self, shared: object) -> int:
        """Return the number of a part of a model, or of a profile: equal ones have the same."""
        if id(shared) not in self._numbered:
            value = shared if isinstance(shared, KernelProfile) else pickle.dumps(shared)
            self._numbered[id(shared)] = self._by_value.setdefault(value, len(self._by_value)), shared
        return self._numbered[id(shared)][0]

    def whole(self, model: Model, profile: KernelProfile) -> Key:
        """Return a key that is equal for models that are one and the same, with what files do not say."""
        marks = [(each.is_placeholder, each.fixed_offset, each.is_piece) for each in model.main.tensors]
        marked = tuple((at, *each) for at, each in enumerate(marks) if each != (False, None, False))
        value = sha256(write_model(model)).digest(), model.ties, marked
        return self._by_value.setdefault(value, len(self._by_value)), self.number(profile)


class Measure:
    """Figures of the regions of one model in its order, under one kernel profile. The model stays as it is.

    ``measured``: known measurements, from any model.
    """

    def __init__(self, model: Model, profile: KernelProfile, measured: Measured) -> None:
        self._model, self._profile, self._measured = model, profile, measured
        self._keys = _RegionKeys(model, measured.number(profile), measured)
        self._uncut: dict[tuple[int, int], Figures] = {}

    def is_known(self, tiling: Tiling) -> bool:
        """Tell whether it takes no time to ask."""
        return self._key(tiling) in self._measured.found

    def add(self, tiling: Tiling, figures: Figures | None) -> None:
        """Add the measurements of another process."""
        self._measured.found[self._key(tiling)] = figures

    def __call__(self, tiling: Tiling) -> Figures | None:
        """The head of the region alone, and the costs that its form adds; None if the form does not apply."""
        key = self._key(tiling)
        if key not in self._measured.found:
            self._measured.found[key] = self._added(tiling)
        return self._measured.found[key]

    def bounds(self, first: int, end: int, asked: Key, compute: Callable[[], Bounds]) -> Bounds:
        """Return the result of ``compute`` for a region and what is asked of it, once for all that have the region."""
        key = *self._keys.of(first, end), asked
        if key not in self._measured.bounds:
            self._measured.bounds[key] = compute()
        found: Bounds = self._measured.bounds[key]
        return found

    def read_later(self, end: int) -> frozenset[Tensor]:
        """Return the tensors that step ``end`` or a later one reads, or that the graph returns."""
        return self._keys.read_later(end)

    def _as_it_is(self, first: int, end: int) -> Figures:
        """Return the totals of a region that is not tiled."""
        if (first, end) not in self._uncut:
            self._uncut[first, end] = self._totals(excerpt(self._model, first, end))
        return self._uncut[first, end]

    def _key(self, tiling: Tiling) -> Key:
        return *self._keys.of(tiling.first, tiling.end), tiling.form

    def _added(self, tiling: Tiling) -> Figures | None:
        whole = self._model, tiling.first, tiling.end
        part = excerpt(*whole)
        try:
            apply_tilings(part, [replace(tiling, first=0, end=tiling.end - tiling.first)])
        except InfeasibleError:
            return None
        if faults_in(part, self._profile):
            mend(part, self._profile)
            if new_faults(part, excerpt(*whole), self._profile):
                return None
        return self._difference(self._as_it_is(tiling.first, tiling.end), self._totals(part))

    def _difference(self, before: Figures, after: Figures) -> Figures:
        """Compute the figures that a form adds. Weights that have moved into a loop are taken off at once, as no other
        region has them.
        """
        constants = after.constants - before.constants
        tail, temporaries = (size.on(self._profile.abi) * min(0, constants) for size in CONSTANT)
        return Figures(
            after.head,
            after.tail - before.tail + tail,
            after.temporaries - before.temporaries + temporaries,
            after.macs - before.macs,
            after.operators - before.operators,
            after.work - before.work,
            max(0, constants),
        )

    def _totals(self, part: Model) -> Figures:
        layout = memory_layout(part, self._profile)
        head = max_breadth(layout.joined.problem)
        terms = arena_terms(part, self._profile, layout.loops.loops)
        constants = sum(tensor.is_constant for tensor in part.main.tensors)
        tail, temporaries = (size.on(self._profile.abi) * constants for size in CONSTANT)
        return Figures(
            head,
            terms.parts_of_tail - tail,
            terms.tables - temporaries,
            terms.macs,
            terms.operators,
            model_work(part, self._profile.prices, layout.loops.loops),
            constants,
        )


def excerpt(model: Model, first: int, end: int) -> Model:
    """Steps ``first`` to ``end``, half-open, of the main graph, with their inputs and outputs.

    Tensors from outside that are read after the steps are outputs too, so that they live on as they do in the whole.
    Buffers are shared with the model, and nothing changes them.
    """
    operators = model.main.operators
    later = {tensor for operator in operators[end:] for tensor in operator.present_inputs()} | set(model.main.outputs)
    graph, twins = Graph("excerpt"), dict[Tensor, Tensor]()
    for operator in operators[first:end]:
        for tensor in (*operator.present_inputs(), *operator.outputs):
            if tensor not in twins:
                twins[tensor] = graph.add_tensor(unlinked_twin(tensor))
    for operator in operators[first:end]:
        inputs = tuple(None if tensor is None else twins[tensor] for tensor in operator.inputs)
        outputs = tuple(twins[tensor] for tensor in operator.outputs)
        graph.add_operator(replace(operator, inputs=inputs, outputs=outputs, intermediates=()))
    activations = [(tensor, twin) for tensor, twin in twins.items() if not tensor.is_constant]
    graph.inputs = tuple(twin for _, twin in activations if twin.producer is None)
    graph.outputs = tuple(twin for tensor, twin in activations if tensor in later)
    opcodes, buffers = list(model.opcodes), list(model.buffers)
    return replace(model, graphs=[graph], signatures=None, opcodes=opcodes, buffers=buffers, ties=())


class _RegionKeys:
    """The keys of one model's intervals, for one kernel profile. All its operators are numbered at once."""

    def __init__(self, model: Model, profile: int, measured: Measured) -> None:
        self._measured, self._profile = measured, profile
        self._operators = tuple(model.main.operators)
        self._described = [self._of_operator(operator) for operator in self._operators]
        touched = (tensor for each in self._operators for tensor in (*each.present_inputs(), *each.outputs))
        self._tensors = {tensor: self._of_tensor(tensor) for tensor in touched}
        self._last_read = _last_reads(model.main)
        self._found: dict[tuple[int, int], Key] = {}
        self._later: tuple[int, frozenset[Tensor]] = -1, frozenset()

    def of(self, first: int, end: int) -> Key:
        """Of steps ``first`` to ``end``, half-open: tensors by numbers in order, and whether they live on."""
        if (first, end) not in self._found:
            places: dict[Tensor, int] = {}
            edges: list[tuple[int, ...]] = []
            for operator in self._operators[first:end]:
                ends = (*operator.inputs, *operator.outputs)
                edges.append(tuple(-1 if t is None else places.setdefault(t, len(places)) for t in ends))
            tensors = tuple((self._tensors[t], self._last_read.get(t, -1) >= end) for t in places)
            self._found[first, end] = self._profile, tuple(self._described[first:end]), tuple(edges), tensors
        return self._found[first, end]

    def read_later(self, end: int) -> frozenset[Tensor]:
        # Asked for one step many times in a row; all sets together would grow with the square of the steps.
        if self._later[0] != end:
            self._later = end, frozenset(tensor for tensor, at in self._last_read.items() if at >= end)
        return self._later[1]

    def _of_operator(self, operator: Operator) -> Key:
        shared = (operator.opcode, operator.options, operator.options2, operator.custom_options)
        return *map(self._measured.number, shared), len(operator.inputs)

    def _of_tensor(self, tensor: Tensor) -> Key:
        """Return all but its name and its origin, which do not affect its needs; computed tensors have no data."""
        buffer = self._measured.number(tensor.buffer) if tensor.is_constant else -1
        flags = tensor.is_variable, tensor.is_placeholder, tensor.fixed_offset
        return tensor.shape, tensor.dtype.name, buffer, self._measured.number(tensor.quantization), *flags


def _last_reads(graph: Graph) -> Mapping[Tensor, int]:
    """Return the last step that reads each tensor; one past the last step for outputs of the graph."""
    found = {tensor: at for at, operator in enumerate(graph.operators) for tensor in operator.present_inputs()}
    return found | dict.fromkeys(graph.outputs, len(graph.operators))
