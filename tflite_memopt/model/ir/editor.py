"""Write constants and operators at the end of a graph, and short names for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .model import Buffer, DType, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Tensor


def label(operator: Operator) -> str:
    """Name an operator as reports do, by its first output."""
    return operator.outputs[0].name if operator.outputs else operator.opcode.label


def positions_in(model: Model) -> dict[tuple[int, str], int]:
    """Return the positions of operators by subgraph and name of the first output, to tell what becomes of them.

    Those that share a name, as in a file without names, are left out.
    """
    every = [
        ((number, operator.outputs[0].name), position)
        for number, position, operator in model.located_operators
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
