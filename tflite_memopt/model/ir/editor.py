"""Write operators into the middle of a graph: the tool of rewrites; constants, operators and short names for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .model import Buffer, DType, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Tensor
from .tensors import packed


def label(operator: Operator) -> str:
    """Name an operator as reports do, by its first output."""
    return operator.outputs[0].name if operator.outputs else operator.opcode.label


def positions_in(model: Model) -> dict[tuple[int, str], int]:
    """Return the positions of operators by subgraph and name of the first output, to tell what becomes of them.

    Those that share a name, as in a file without names, are left out.
    """
    every = [
        ((number, operator.outputs[0].name), position)
        for number, graph in enumerate(model.graphs)
        for position, operator in enumerate(graph.operators)
        if operator.outputs
    ]
    count = Counter(key for key, _ in every)
    return {key: position for key, position in every if count[key] == 1}


def stem(tensor: Tensor) -> str:
    """A short name to build others from: the first, where the converter has joined several by ``;``."""
    return tensor.name.partition(";")[0]


def last_part(tensor: Tensor) -> str:
    """The short name without what stands before its last ``/``: for names of a subgraph, which are its own."""
    return stem(tensor).rsplit("/", 1)[-1]


Array = npt.NDArray[Any]
SAME, VALID = 0, 1
"""Paddings, as the TFLite schema numbers them."""
NO_ACTIVATION, RELU, RELU6 = 0, 1, 3
"""Fused activations, as there."""


def add_buffer(model: Model, values: Array) -> Buffer:
    """A constant store with the bytes of an array."""
    buffer = Buffer(np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype=np.uint8))
    model.buffers.append(buffer)
    return buffer


class GraphWriter:
    """Adds constants and operators to ``graph``, at its end."""

    def __init__(self, model: Model, graph: Graph) -> None:
        self.model = model
        self.graph = graph

    def constant(self, name: str, values: Array, quantization: Quantization | None = None) -> Tensor:
        """A tensor with values; its element type is the array's."""
        dtype = DType[values.dtype.name.upper()]
        return self.graph.add_tensor(Tensor(name, values.shape, dtype, add_buffer(self.model, values), quantization))

    def operator(
        self,
        name: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        kind: str | None = None,
        **fields: Any,
    ) -> Operator:
        """A builtin operator; ``kind`` is the schema's options table and ``fields`` its non-default values."""
        options = None if kind is None else OperatorOptions(kind, fields)
        opcode = self.opcode(name, self.version_of(name, outputs))
        return self._insert(Operator(opcode, tuple(inputs), tuple(outputs), options))

    def version_of(self, name: str, outputs: Sequence[Tensor]) -> int:  # noqa: ARG002 (others look)
        """The version of a new operator's code."""
        return 1

    def opcode(self, name: str, version: int) -> OpCode:
        """Return the model's operator code of at least this version, which it gets where it has none."""
        opcode = next((code for code in self.model.opcodes if code.name == name and code.version >= version), None)
        if opcode is None:
            opcode = OpCode(name, version)
            self.model.opcodes.append(opcode)
        return opcode

    def _insert(self, operator: Operator) -> Operator:
        return self.graph.add_operator(operator)


# The version of an operator that the types and ranks of its tensors ask for. Interpreters refuse a version that they do
# not know, and TFLM looks at none. Source: tensorflow/lite/tools/versioning/op_version.cc, GetBuiltinOperatorVersion
# (tensorflow 02087409073e).
_BY_TYPE: Mapping[str, Mapping[DType, int]] = {
    "BROADCAST_TO": dict.fromkeys(DType, 2),
    "ADD": {DType.INT8: 2, DType.INT16: 3, DType.INT64: 4},
    "CONCATENATION": {DType.INT8: 2, DType.INT16: 3, DType.UINT32: 4},
    **{name: {DType.INT8: 3} for name in ("CONV_2D", "DEPTHWISE_CONV_2D")},
    **{name: {DType.INT8: 2} for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "TRANSPOSE_CONV")},
    "FULLY_CONNECTED": {DType.FLOAT32: 5},
    **{name: {DType.INT8: 2, DType.INT16: 4} for name in ("MAXIMUM", "MINIMUM", "TRANSPOSE", "UNPACK")},
    "PAD": {DType.INT8: 2, DType.INT16: 3},
    "PADV2": {DType.INT8: 2, DType.INT16: 3},
    **{name: {DType.INT8: 2, DType.INT16: 3} for name in ("REDUCE_MAX", "REDUCE_MIN")},
    "RESIZE_NEAREST_NEIGHBOR": {DType.INT8: 2, DType.INT16: 4},
    "SLICE": {DType.INT8: 2, DType.INT16: 4, DType.UINT32: 6},
    "SPLIT": {DType.INT8: 2, DType.INT32: 3, DType.INT16: 4},
    "SPLIT_V": {DType.INT8: 2},
    "STRIDED_SLICE": {DType.INT8: 2, DType.BOOL: 3, DType.UINT32: 7},
}
"""By the type of the data, which is that of the first output. FULLY_CONNECTED: one that keeps the dimensions."""
_ABOVE_RANK_4: Mapping[str, int] = {"PAD": 4, "PADV2": 4, "SLICE": 5, "STRIDED_SLICE": 4}


def operator_version(name: str, outputs: Sequence[Tensor]) -> int:
    """The version to write; 1 for an operator that is not in the tables."""
    if not outputs:
        return 1
    by_rank = _ABOVE_RANK_4.get(name, 1) if len(outputs[0].shape) > 4 else 1
    return max(by_rank, _BY_TYPE.get(name, {}).get(outputs[0].dtype, 1))


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
        tensor = Tensor(
            self.unique(name),
            tuple(shape),
            like.dtype,
            self._no_data(),
            quantization or like.quantization,
            is_piece=is_piece,
        )
        return self.graph.add_tensor(tensor)

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
        return operator_version(name, outputs)

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
        said = (self.constant(f"{output.name}/shape", shape),) if has_operand else ()
        return self.operator("RESHAPE", (source, *said), (output,), "ReshapeOptions", newShape=shape)

    def slice(self, source: Tensor, begin: Sequence[int], size: Sequence[int], output: Tensor) -> Operator:
        """SLICE: ``output`` is ``size`` elements of ``source`` in each axis from ``begin`` on; -1 is all the rest."""
        limits = {"begin": begin, "size": size}
        said = [self.constant(f"{output.name}/{name}", np.asarray(at, np.int32)) for name, at in limits.items()]
        return self.operator("SLICE", (source, *said), (output,), "SliceOptions")

    def join(self, parts: Sequence[Tensor], output: Tensor, axis: int) -> Operator:
        """CONCATENATION: ``output`` is ``parts`` one after the other along an axis."""
        return self.operator("CONCATENATION", parts, (output,), "ConcatenationOptions", axis=axis)

    def pad(self, source: Tensor, amounts: Sequence[Sequence[int]], output: Tensor) -> Operator:
        """PAD: ``output`` is ``source`` with so many elements of the zero point before and behind it in each axis."""
        paddings = self.constant(f"{output.name}/paddings", np.asarray(amounts, np.int32))
        return self.operator("PAD", (source, paddings), (output,), "PadOptions")

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
