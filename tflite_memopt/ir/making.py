"""Makes constants and operators, in new models and in given ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtype import DType
from .model import Buffer, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Tensor

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
        opcode = self._opcode(name, self.version_of(name, outputs))
        return self._insert(Operator(opcode, tuple(inputs), tuple(outputs), options))

    def version_of(self, name: str, outputs: Sequence[Tensor]) -> int:  # noqa: ARG002 (others look)
        """The version of a new operator's code."""
        return 1

    def _opcode(self, name: str, version: int) -> OpCode:
        """The model's operator code of at least this version, which it gets where it has none."""
        opcode = next((code for code in self.model.opcodes if code.name == name and code.version >= version), None)
        if opcode is None:
            opcode = OpCode(name, version)
            self.model.opcodes.append(opcode)
        return opcode

    def _insert(self, operator: Operator) -> Operator:
        return self.graph.add_operator(operator)
