"""Write operators into the middle of a graph: the tool of rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model.ir.editor import Array, GraphWriter, add_buffer
from ..model.ir.model import Buffer, DType, Graph, Model, Operator, Quantization, Tensor
from ..model.ir.tensors import packed
from .table import version_of


class Editor(GraphWriter):
    """Inserts operators before a position of one graph, one after the other.

    New tensors get names that the graph does not have yet. Equal constants are one tensor. ``names``: those that are
    taken, which several editors of one graph may share; None: those of the graph's tensors.
    """

    def __init__(self, model: Model, graph: Graph, position: int, names: set[str] | None = None) -> None:
        super().__init__(model, graph)
        self.position = position
        self._names = {tensor.name for tensor in graph.tensors} if names is None else names
        self._constants: dict[tuple[object, ...], Tensor] = {}

    @classmethod
    def in_place_of(cls, model: Model, graph: Graph, *gone: Operator, names: set[str] | None = None) -> Editor:
        """Remove operators, and return the editor that stands where the last of them was."""
        edit = cls(model, graph, graph.operators.index(gone[-1]) + 1, names)
        for operator in gone:
            edit.remove(operator)
        return edit

    def activation(
        self,
        name: str,
        shape: Sequence[int],
        like: Tensor,
        quantization: Quantization | None = None,
        is_piece: bool = False,
    ) -> Tensor:
        """A tensor of the type of ``like``, and of its quantization unless another is given.

        ``is_piece``: its values are a range of another tensor, which is made in several pieces.
        """
        made, kept = self.unique(name), quantization or like.quantization
        return self.graph.add_tensor(Tensor(made, tuple(shape), like.dtype, self._no_data(), kept, is_piece=is_piece))

    def constant(self, name: str, values: Array, quantization: Quantization | None = None) -> Tensor:
        """A tensor with values; its element type is the array's.

        What this editor made before is used again where values and quantization are the same.
        """
        key = (values.dtype.name, values.shape, values.tobytes(), id(quantization))
        if key not in self._constants:
            self._constants[key] = super().constant(self.unique(name), values, quantization)
        return self._constants[key]

    def nibbles(self, name: str, values: npt.NDArray[np.int8], quantization: Quantization | None = None) -> Tensor:
        """A constant of 4 bits with these values."""
        buffer = add_buffer(self.model, packed(values))
        return self.graph.add_tensor(Tensor(self.unique(name), values.shape, DType.INT4, buffer, quantization))

    def version_of(self, name: str, outputs: Sequence[Tensor]) -> int:
        """The version that the types and ranks of the outputs ask for."""
        return version_of(name, outputs)

    def integers(self, name: str, shape: Sequence[int], dtype: DType = DType.INT32) -> Tensor:
        """A tensor of integers or truth values that is computed, without a quantization."""
        return self.graph.add_tensor(Tensor(self.unique(name), tuple(shape), dtype, self._no_data()))

    def fill(self, tensor: Tensor, values: Array) -> None:
        """Make a tensor that nothing writes a constant."""
        tensor.buffer = add_buffer(self.model, values)

    def update_slice(self, whole: Tensor, rows: Tensor, begin: Tensor, output: Tensor) -> Operator:
        """DYNAMIC_UPDATE_SLICE: ``output`` is ``whole`` with ``rows`` from ``begin`` on."""
        return self.operator("DYNAMIC_UPDATE_SLICE", (whole, rows, begin), (output,))

    def reshape(self, source: Tensor, output: Tensor, has_operand: bool = True) -> Operator:
        """RESHAPE: ``output`` is ``source`` in its own shape. ``has_operand``: a constant says the shape as well."""
        shape = np.asarray(output.shape, np.int32)
        operand = (self.constant(f"{output.name}/shape", shape),) if has_operand else ()
        return self.operator("RESHAPE", (source, *operand), (output,), "ReshapeOptions", newShape=shape)

    def reshaped(self, source: Tensor, shape: Sequence[int], name: str, like: Tensor | None = None) -> Tensor:
        """Return the same elements in this shape; ``like``: a tensor of whose type and quantization it is."""
        if source.shape == tuple(shape):
            return source
        made = self.activation(name, shape, like or source)
        self.reshape(source, made)
        return made

    def slice(self, source: Tensor, begin: Sequence[int], size: Sequence[int], output: Tensor) -> Operator:
        """SLICE: ``output`` is ``size`` elements of ``source`` in each axis from ``begin`` on; -1 is all the rest."""
        limits = {"begin": begin, "size": size}
        operands = [self.constant(f"{output.name}/{name}", np.asarray(at, np.int32)) for name, at in limits.items()]
        return self.operator("SLICE", (source, *operands), (output,), "SliceOptions")

    def join(self, parts: Sequence[Tensor], output: Tensor, axis: int) -> Operator:
        """CONCATENATION: ``output`` is ``parts`` one after the other along an axis."""
        return self.operator("CONCATENATION", parts, (output,), "ConcatenationOptions", axis=axis)

    def joined(self, parts: Sequence[Tensor], axis: int, name: str, like: Tensor, is_piece: bool = False) -> Tensor:
        """Return the parts one after the other along an axis, as a tensor of the type and quantization of ``like``."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        made = self.activation(name, shape, like, is_piece=is_piece)
        self.join(parts, made, axis)
        return made

    def pad(self, source: Tensor, amounts: Sequence[Sequence[int]], output: Tensor) -> Operator:
        """PAD: ``output`` is ``source`` with so many elements of the zero point before and behind it in each axis."""
        paddings = self.constant(f"{output.name}/paddings", np.asarray(amounts, np.int32))
        return self.operator("PAD", (source, paddings), (output,), "PadOptions")

    def padded(self, source: Tensor, amounts: Sequence[Sequence[int]], name: str) -> Tensor:
        """Return the tensor with these numbers of zero points before and behind it, a pair for each axis."""
        shape = [size + sum(pair) for size, pair in zip(source.shape, amounts, strict=True)]
        made = self.activation(name, shape, source)
        self.pad(source, amounts, made)
        return made

    def twin(
        self, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], **fields: Any
    ) -> Operator:
        """The same operator on other tensors, with the given fields of its options changed."""
        options = operator.options
        if options is not None and fields:
            options = replace(options, fields={**options.fields, **fields})
        return self._insert(replace(operator, inputs=tuple(inputs), outputs=tuple(outputs), options=options))

    def remove(self, operator: Operator) -> None:
        """Take an operator out of the graph, so that others can write its outputs; its tensors stay."""
        self.position -= self.graph.operators.index(operator) < self.position
        self.graph.remove_operator(operator)

    def _insert(self, operator: Operator) -> Operator:
        self.graph.add_operator(operator, self.position)
        self.position += 1
        return operator

    def unique(self, name: str) -> str:
        """This name, or a longer one that the graph does not have yet; it is taken then."""
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found

    def _no_data(self) -> Buffer:
        """Buffer 0, which the schema keeps for tensors without data."""
        return self.model.buffers[0]


def iteration_condition(model: Model, body: Graph, iterations: int, step: int) -> Graph:
    """Return the condition of a loop of ``iterations`` iterations, whose first carried tensor counts them in steps of
    ``step``.

    TFLM gives the condition all that the body carries.
    """
    graph = Graph(f"{body.name}/condition")
    edit = Editor(model, graph, 0)
    twins = [graph.add_tensor(replace(tensor)) for tensor in body.inputs]
    more = edit.integers("more", (1,), DType.BOOL)
    table = edit.constant("is_turn", np.repeat(np.arange(iterations + 1) < iterations, step))
    one = edit.constant("one", np.ones(1, np.int32))
    edit.operator("SLICE", (table, twins[0], one), (more,), "SliceOptions")
    graph.inputs, graph.outputs = tuple(twins), (more,)
    return graph
