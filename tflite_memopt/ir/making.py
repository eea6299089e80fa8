"""Makes constants and operators: what the builder of new models and the editor of given ones share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .dtype import DType
from .model import Buffer, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Tensor

Array = npt.NDArray[Any]


def add_buffer(model: Model, values: Array) -> Buffer:
    """A constant store with the bytes of an array."""
    buffer = Buffer(np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype=np.uint8))
    model.buffers.append(buffer)
    return buffer


class GraphWriter:
    """Adds constants and operators to ``graph``, at its end."""

    versions: ClassVar[Mapping[DType, int]] = {}
    """Operator code versions by the type of an operator's first output; 1 for other types."""

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
        opcode = self._opcode(name, self.versions.get(outputs[0].dtype, 1) if outputs else 1)
        return self._insert(Operator(opcode, tuple(inputs), tuple(outputs), options))

    def _opcode(self, name: str, version: int) -> OpCode:
        """The model's operator code of at least this version, which it gets where it has none."""
        opcode = next((code for code in self.model.opcodes if code.name == name and code.version >= version), None)
        if opcode is None:
            opcode = OpCode(name, version)
            self.model.opcodes.append(opcode)
        return opcode

    def _insert(self, operator: Operator) -> Operator:
        return self.graph.add_operator(operator)
