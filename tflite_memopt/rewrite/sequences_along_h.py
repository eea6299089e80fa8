"""Sequences laid along H, so that they lie along the rows of an image: stripes are cut along rows.

Keras converts a convolution of one dimension so, and leaves what is between two of them in three dimensions:

    x (1, L, C) -- EXPAND_DIMS -- (1, 1, L, C) -- CONV_2D of 1 x k -- (1, 1, L', D) -- RESHAPE -- PAD (1, L'', D)

    along H:    (1, L, 1, C) -- CONV_2D of k x 1 -- (1, L', 1, D) -- PAD -- (1, L'', 1, D)

Filters become k x 1. These are the same bytes in the same order, so that nothing is moved and every sum is added in
the order that it had. Reshapes between two sequences along H are left out. Where another operator reads or writes a
sequence, and where the graph takes or returns it, a RESHAPE stands between the two forms; it copies onto itself.

It is no rule of the table: whether one operator can do so depends on what all others do. Which kinds can is said by
the table of operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..ir.change import Changed, RewriteUse
from ..ir.copying import copy_model
from ..ir.dead_tensors import drop_dead_tensors
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator, Tensor, Use
from ..ir.names import label
from ..ir.origin import Origin
from ..ir.quantization import quantized_alike
from ..kernels.relations import RESHAPES
from ..operators.along_h import laid_along_h
from ..operators.table import AlongH, kind_of
from .driver import Driver
from .reshaping import shape_is_said
from .rules.split_attention_heads import SPLIT_ATTENTION_HEADS

NAME = "sequences_along_h"
_SIGNATURE = "shapeSignature"


def sequences_along_h(model: Model, kept: Collection[str] = ()) -> Changed | None:
    """A copy of the model with its sequences along H; None where it computes nothing along one.

    The heads of attentions are split first. Tensors named in ``kept`` keep their shape.
    """
    driver = Driver(copy_model(model), pinned=kept)
    graph = driver.model.main
    for operator in list(graph.operators):
        driver.apply_at((SPLIT_ATTENTION_HEADS,), graph, operator)
    found = _sequences(graph, kept)
    if not any(_along_h(operator).is_worth_it for operator in found.operators):
        return None
    _Laying(driver.model, found, kept).run()
    drop_dead_tensors(driver.model)
    rules = " + ".join(dict.fromkeys((*(each.rule for each in driver.applied), NAME)))
    return Changed(driver.model, (RewriteUse(rules, tuple(map(label, _making(graph))), "exact", 0),), ())


def _making(graph: Graph) -> Iterator[Operator]:
    """The operators that make sequences along H."""
    for operator in graph.operators:
        shape = operator.outputs[0].shape if operator.outputs else ()
        if len(shape) == 4 and shape[:3:2] == (1, 1) and shape[1] > 1:
            yield operator


@dataclass(frozen=True)
class _Sequences:
    """Operators that can take their sequences along H, in the order of running, and these sequences."""

    operators: tuple[Operator, ...]
    tensors: frozenset[Tensor]


def _sequences(graph: Graph, kept: Collection[str]) -> _Sequences:
    """The largest set of operators all of whose operands can lie so, and what reshapes alone pass on of these."""
    tensors = frozenset(tensor for tensor in graph.tensors if _is_sequence(tensor))
    while True:
        operators = tuple(operator for operator in graph.operators if _can_lie(operator, tensors))
        touched = {tensor for each in operators for tensor in (*_taken_along_h(each), *each.outputs)}
        if tensors <= touched:
            return _Sequences(operators, tensors | _passed_on(graph, tensors, kept))
        tensors &= touched


def _is_sequence(tensor: Tensor) -> bool:
    """Whether it is (1, 1, L, C), (1, L, C) or (L, C) with L > 1, and computed."""
    ones, length = tensor.shape[:-2], tensor.shape[-2:-1]
    is_long = len(tensor.shape) in (2, 3, 4) and all(size == 1 for size in ones) and length > (1,)
    return is_long and tensor.shape[-1] > 0 and not (tensor.is_constant or tensor.is_variable)


def _can_lie(operator: Operator, sequences: Collection[Tensor]) -> bool:
    """Whether the operator computes the same from its sequences along H. Reshapes only pass them on."""
    if len(operator.outputs) != 1 or operator.outputs[0] not in sequences:
        return False
    found = kind_of(operator).along_h
    if found is None or not found.can(operator, sequences):
        return False
    filters = _filters_of(operator)
    return filters is None or all(_is_of_filters(use, sequences) for use in filters.uses)


def _is_of_filters(use: Use, sequences: Collection[Tensor]) -> bool:
    """Whether a reader of filters, which are laid along H too, has them as filters, of sequences."""
    found = kind_of(use.operator).along_h
    if found is None or found.filters != use.slot:
        return False
    return use.operator.inputs[0] in sequences and use.operator.outputs[0] in sequences


def _along_h(operator: Operator) -> AlongH:
    found = kind_of(operator).along_h
    assert found is not None
    return found


def _filters_of(operator: Operator) -> Tensor | None:
    slot = _along_h(operator).filters
    return None if slot is None else operator.inputs[slot]


def _taken_along_h(operator: Operator) -> list[Tensor]:
    """The inputs that an operator takes along H."""
    stays, given = _along_h(operator).as_it_lies, enumerate(operator.inputs)
    return [tensor for slot, tensor in given if tensor is not None and slot != stays]


def _passed_on(graph: Graph, tensors: Collection[Tensor], kept: Collection[str]) -> frozenset[Tensor]:
    """The same sequences in another shape, which reshapes make and nothing but reshapes reads."""
    found: set[Tensor] = set()
    for operator in filter(shape_is_said, graph.operators):
        source, output = operator.inputs[0], operator.outputs[0]
        is_inner = output not in graph.outputs and output.name not in kept
        if source is None or not (source in tensors or source in found) or not _is_sequence(output):
            continue
        if is_inner and laid_along_h(source.shape) == laid_along_h(output.shape):
            found.update([output] if all(shape_is_said(use.operator) for use in output.uses) else [])
    return frozenset(found)


class _Laying:
    """Lays the sequences of a graph along H. ``laid``: that form of each, which is itself where all can take it."""

    def __init__(self, model: Model, found: _Sequences, kept: Collection[str]) -> None:
        self._graph, self._found = model.main, found
        self._operators = set(found.operators)
        self._edit = Editor(model, model.main, 0)
        interface = {*self._graph.inputs, *self._graph.outputs}
        self._laid = {
            tensor: self._twin(tensor) if self._is_at_a_border(tensor, interface, kept) else tensor
            for tensor in self._graph.tensors
            if tensor in found.tensors
        }

    def run(self) -> None:
        """Operators first: what they are told depends on the shapes as they were."""
        for operator in self._found.operators:
            self._tell(operator)
        for filters in {tensor: None for each in self._found.operators if (tensor := _filters_of(each)) is not None}:
            filters.shape = laid_along_h(filters.shape)
        for tensor, laid in self._laid.items():
            if laid is tensor:
                tensor.shape = laid_along_h(tensor.shape)
                tensor.extras = {name: value for name, value in tensor.extras.items() if name != _SIGNATURE}
            else:
                self._at_the_border(tensor, laid)
        for operator in [each for each in self._graph.operators if each.name in RESHAPES]:
            self._reshape(operator)

    def _tell(self, operator: Operator) -> None:
        """What an operator is told about rows and columns."""
        told = _along_h(operator).told(self._edit, operator)
        for slot, tensor in told.operands.items():
            self._graph.set_input(operator, slot, tensor)
        if operator.options is not None:
            operator.options = replace(operator.options, fields={**operator.options.fields, **told.fields})

    def _is_at_a_border(self, tensor: Tensor, interface: Collection[Tensor], kept: Collection[str]) -> bool:
        """Whether something else than these operators and reshapes needs it as it lies."""
        others = [use.operator for use in tensor.uses]
        others += [] if tensor.producer is None else [tensor.producer]
        if any(each not in self._operators and not shape_is_said(each) for each in others):
            return True
        return tensor in interface or tensor.name in kept or any(self._is_left(use) for use in tensor.uses)

    def _is_left(self, use: Use) -> bool:
        """Whether one of the operators reads it as it lies."""
        return use.operator in self._operators and _along_h(use.operator).as_it_lies == use.slot

    def _twin(self, tensor: Tensor) -> Tensor:
        """The form along H beside one that stays; it holds the same values."""
        shape = laid_along_h(tensor.shape)
        origin = tensor.origin or Origin(tensor.name, (0,) * len(shape))
        return self._edit.activation(f"{tensor.name}/along_h", shape, tensor, origin=origin)

    def _at_the_border(self, tensor: Tensor, twin: Tensor) -> None:
        """Operators over sequences take the twin; one RESHAPE makes it of the tensor, or the tensor of it."""
        graph, producer = self._graph, tensor.producer
        for use in [use for use in tensor.uses if use.operator in self._operators and not self._is_left(use)]:
            graph.set_input(use.operator, use.slot, twin)
        if producer is not None and producer in self._operators:
            at = graph.operators.index(producer)
            graph.remove_operator(producer)
            producer.outputs = (twin,)
            graph.add_operator(producer, at)
            self._write_reshape(at + 1, twin, tensor)
        else:
            first = min(graph.operators.index(use.operator) for use in twin.uses)
            self._write_reshape(first, tensor, twin)

    def _reshape(self, operator: Operator) -> None:
        """A reshape between two sequences along H of one shape is left out; others are told the shapes that are."""
        source, output = operator.inputs[0], operator.outputs[0]
        ends = {tensor for tensor in (source, output) if tensor is not None and self._laid.get(tensor) is tensor}
        if source is None or not ends or not shape_is_said(operator):
            return
        at = self._graph.operators.index(operator)
        self._graph.remove_operator(operator)
        is_copy = source.shape == output.shape and not source.is_variable
        if is_copy and output in ends and quantized_alike(source.quantization, output.quantization):
            self._graph.replace_uses(output, source)
        else:
            self._write_reshape(at, source, output, operator)

    def _write_reshape(self, position: int, source: Tensor, output: Tensor, like: Operator | None = None) -> None:
        """``source`` in the shape of ``output``, by an operator of the kind of ``like`` where that can be."""
        edit, kind = self._edit, None if like is None else like.name
        edit.position = position
        is_added = (*source.shape[:2], 1, *source.shape[2:]) == output.shape
        is_dropped = (*output.shape[:2], 1, *output.shape[2:]) == source.shape
        if like is not None and kind == "EXPAND_DIMS" and is_added:
            axis = edit.constant(f"{output.name}/axis", np.asarray(2, np.int32))
            edit.twin(like, (source, axis), (output,))
        elif like is not None and kind == "SQUEEZE" and is_dropped:
            edit.twin(like, (source,), (output,), squeezeDims=np.asarray([2], np.int32))
        else:
            edit.reshape(source, output)
