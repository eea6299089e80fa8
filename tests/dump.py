"""Text form of a model, for golden tests and for people: stable, one operator a line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflite_memopt.model.ir.model import Graph, Model, Operator, Tensor


def dump_model(model: Model) -> str:
    """All graphs, then metadata names and signatures."""
    lines = [line for index, graph in enumerate(model.graphs) for line in _graph_lines(index, graph)]
    lines += [f"metadata {name}" for name, _ in model.metadata]
    lines += [f"signature {signature.key}" for signature in model.signatures or ()]
    return "\n".join(lines) + "\n"


def describe_tensor(tensor: Tensor) -> str:
    """``name: int8[1, 8, 8, 4]`` with the marks that decide where the tensor lives."""
    marks = " const" if tensor.is_constant else " variable" if tensor.is_variable else ""
    return f"{tensor.name}: {tensor.dtype.label}{list(tensor.shape)}{marks}"


def _graph_lines(index: int, graph: Graph) -> list[str]:
    numbers = {tensor: number for number, tensor in enumerate(graph.tensors)}
    lines = [f"graph {index} {graph.name}".rstrip()]
    lines += [f"  %{number} {describe_tensor(tensor)}" for tensor, number in numbers.items()]
    lines.append(f"  inputs {_names(graph.inputs, numbers)}")
    lines += [f"  {position}: {_operator_text(op, numbers)}" for position, op in enumerate(graph.operators)]
    lines.append(f"  outputs {_names(graph.outputs, numbers)}")
    return lines


def _operator_text(operator: Operator, numbers: Mapping[Tensor, int]) -> str:
    fields = operator.options.fields if operator.options else {}
    shown = ", ".join(f"{name}={_plain(value)}" for name, value in sorted(fields.items()))
    inputs = _names(operator.inputs, numbers)
    return f"{_names(operator.outputs, numbers)} = {operator.opcode.label}({inputs}){f' {{{shown}}}' if shown else ''}"


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _names(tensors: tuple[Tensor | None, ...], numbers: Mapping[Tensor, int]) -> str:
    return ", ".join("-" if tensor is None else f"%{numbers[tensor]}" for tensor in tensors)
