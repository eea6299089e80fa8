"""Sequences stood up, so that they lie along the rows of an image: stripes are cut along rows.

Keras converts a convolution of one dimension so, and leaves what is between two of them in three dimensions:

    x (1, L, C) -- EXPAND_DIMS -- (1, 1, L, C) -- CONV_2D of 1 x k -- (1, 1, L', D) -- RESHAPE -- PAD (1, L'', D)

    stood up:   (1, L, 1, C) -- CONV_2D of k x 1 -- (1, L', 1, D) -- PAD -- (1, L'', 1, D)

Filters become k x 1. These are the same bytes in the same order, so that nothing is moved and every sum is added in
the order that it had. Reshapes between two sequences that stand are left out. Where another operator reads or writes a
sequence, and where the graph takes or returns it, a RESHAPE stands between the two forms; it copies onto itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..ir.copying import copy_model
from ..ir.dead_tensors import drop_dead_tensors
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator, Tensor
from ..ir.origin import Origin
from ..ir.quantization import quantized_alike
from ..kernels.relations.shapes import RESHAPES
from ..operators.along_h import laid_along_h
from ..operators.table import kind_of
from .heads_apart import heads_apart
from .turning import (
    can_turn,
    is_sequence,
    shape_is_said,
    stays,
    turn_operands,
    write_reshape,
)

_SIGNATURE = "shapeSignature"


def upright(model: Model, kept: Collection[str] = ()) -> Model | None:
    """A copy of the model with its sequences along rows; None where it computes nothing along one.

    Tensors named in ``kept`` keep their shape.
    """
    copied = copy_model(model)
    heads_apart(copied, kept)
    found = _sequences(copied.main, kept)
    if not any(_is_worth_it(operator) for operator in found.turning):
        return None
    _Turn(copied, found, kept).run()
    drop_dead_tensors(copied)
    return copied


@dataclass(frozen=True)
class _Sequences:
    """Operators that can take their sequences standing, in the order of running, and these sequences."""

    turning: tuple[Operator, ...]
    tensors: frozenset[Tensor]


def _sequences(graph: Graph, kept: Collection[str]) -> _Sequences:
    """The largest set of operators all of whose operands can be turned, and what reshapes alone pass on of these."""
    tensors = frozenset(tensor for tensor in graph.tensors if is_sequence(tensor))
    while True:
        turning = tuple(operator for operator in graph.operators if can_turn(operator, tensors))
        touched = {tensor for each in turning for tensor in (*_turned(each), *each.outputs)}
        if tensors <= touched:
            return _Sequences(turning, tensors | _passed_on(graph, tensors, kept))
        tensors &= touched


def _passed_on(graph: Graph, tensors: Collection[Tensor], kept: Collection[str]) -> frozenset[Tensor]:
    """The same sequences in another shape, which reshapes make and nothing but reshapes reads."""
    found: set[Tensor] = set()
    for operator in filter(shape_is_said, graph.operators):
        source, output = operator.inputs[0], operator.outputs[0]
        is_inner = output not in graph.outputs and output.name not in kept
        if source is None or not (source in tensors or source in found) or not is_sequence(output):
            continue
        if is_inner and laid_along_h(source.shape) == laid_along_h(output.shape):
            found.update([output] if all(shape_is_said(use.operator) for use in output.uses) else [])
    return frozenset(found)


class _Turn:
    """Turns the sequences of a graph. ``stands``: the standing form of each, which is itself where all can take it."""

    def __init__(self, model: Model, found: _Sequences, kept: Collection[str]) -> None:
        self._graph, self._found = model.main, found
        self._turning = set(found.turning)
        self._edit = Editor(model, model.main, 0)
        interface = {*self._graph.inputs, *self._graph.outputs}
        self._stands = {
            tensor: self._twin(tensor) if self._is_at_a_border(tensor, interface, kept) else tensor
            for tensor in self._graph.tensors
            if tensor in found.tensors
        }

    def run(self) -> None:
        """Operators first: what they are told depends on the shapes as they were."""
        graph = self._graph
        for operator in self._found.turning:
            turn_operands(self._edit, operator)
        filters = {tensor: None for each in self._found.turning if (tensor := _filter_of(each)) is not None}
        for tensor in filters:
            tensor.shape = laid_along_h(tensor.shape)
        for tensor, stands in self._stands.items():
            if stands is tensor:
                tensor.shape = laid_along_h(tensor.shape)
                tensor.extras = {name: value for name, value in tensor.extras.items() if name != _SIGNATURE}
            else:
                self._at_the_border(tensor, stands)
        for operator in [each for each in graph.operators if each.name in RESHAPES]:
            self._reshape(operator)

    def _is_at_a_border(self, tensor: Tensor, interface: Collection[Tensor], kept: Collection[str]) -> bool:
        """Whether something else than turning operators and reshapes needs it as it lies."""
        others = [use.operator for use in tensor.uses]
        others += [] if tensor.producer is None else [tensor.producer]
        is_needed = any(stays(use.operator, use.slot) for use in tensor.uses)
        is_needed = is_needed or any(each not in self._turning and not shape_is_said(each) for each in others)
        return is_needed or tensor in interface or tensor.name in kept

    def _twin(self, tensor: Tensor) -> Tensor:
        """The standing form beside one that stays; it holds the same values."""
        shape = laid_along_h(tensor.shape)
        origin = tensor.origin or Origin(tensor.name, (0,) * len(shape))
        return self._edit.activation(f"{tensor.name}/standing", shape, tensor, origin=origin)

    def _at_the_border(self, tensor: Tensor, twin: Tensor) -> None:
        """Turning operators take the twin; one RESHAPE makes it of the tensor, or the tensor of it."""
        graph, producer = self._graph, tensor.producer
        turned = (use for use in tensor.uses if use.operator in self._turning)
        for use in [use for use in turned if not stays(use.operator, use.slot)]:
            graph.set_input(use.operator, use.slot, twin)
        if producer is not None and producer in self._turning:
            at = graph.operators.index(producer)
            graph.remove_operator(producer)
            producer.outputs = (twin,)
            graph.add_operator(producer, at)
            write_reshape(self._edit, at + 1, twin, tensor)
        else:
            first = min(graph.operators.index(use.operator) for use in twin.uses)
            write_reshape(self._edit, first, tensor, twin)

    def _reshape(self, operator: Operator) -> None:
        """A reshape between two standing sequences of one shape is left out; others are told the shapes that are."""
        source, output = operator.inputs[0], operator.outputs[0]
        ends = {tensor for tensor in (source, output) if self._stands.get(tensor) is tensor}  # type: ignore[arg-type]
        if source is None or not ends or not shape_is_said(operator):
            return
        at = self._graph.operators.index(operator)
        self._graph.remove_operator(operator)
        is_copy = source.shape == output.shape and not source.is_variable
        if is_copy and output in ends and quantized_alike(source.quantization, output.quantization):
            self._graph.replace_uses(output, source)
        else:
            write_reshape(self._edit, at, source, output, operator)


def _turned(operator: Operator) -> list[Tensor]:
    """The inputs that an operator takes standing."""
    given = enumerate(operator.inputs)
    return [tensor for slot, tensor in given if tensor is not None and not stays(operator, slot)]


def _filter_of(operator: Operator) -> Tensor | None:
    found = kind_of(operator).along_h
    return None if found is None or found.filters is None else operator.inputs[found.filters]


def _is_worth_it(operator: Operator) -> bool:
    found = kind_of(operator).along_h
    return found is not None and found.is_worth_it
