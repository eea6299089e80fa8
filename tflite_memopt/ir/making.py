"""New constants and operators: what the builder of whole models and the editor of given ones have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtype import DType
from .model import Buffer, Graph, Model, OpCode, Operator, Options, Quantization, Tensor

Array = npt.NDArray[Any]


def add_buffer(model: Model, values: Array) -> Buffer:
    """A constant store with the bytes of an array."""
    buffer = Buffer(np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype=np.uint8))
    model.buffers.append(buffer)
    return buffer


def add_constant(model: Model, graph: Graph, name: str, values: Array, quantization: Quantization | None) -> Tensor:
    """A tensor with values; its element type is the array's."""
    dtype = DType[values.dtype.name.upper()]
    return graph.add_tensor(Tensor(name, values.shape, dtype, add_buffer(model, values), quantization))


def new_operator(
    model: Model,
    name: str,
    inputs: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    kind: str | None,
    fields: Mapping[str, Any],
    version: int = 1,
) -> Operator:
    """A builtin operator that no graph has yet, with the model's operator code of at least this version.

    ``kind`` is the schema's options table and ``fields`` its non-default values.
    """
    opcode = next((code for code in model.opcodes if code.name == name and code.version >= version), None)
    if opcode is None:
        opcode = OpCode(name, version)
        model.opcodes.append(opcode)
    options = None if kind is None else Options(kind, fields)
    return Operator(opcode, tuple(inputs), tuple(outputs), options)
