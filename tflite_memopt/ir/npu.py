"""Operators that an NPU runs: a command stream that its compiler wrote, with the addresses of what it reads and writes.

Vela compiles parts of a network for Arm's Ethos-U to one custom operator each. It reads its command stream and weights,
then the memory that the NPU works in: a tensor that nothing writes, and that TFLM gives bytes as any other. The command
stream names places in it by their distance from its first byte, inputs and outputs among them, so that all of these
must lie where the file's offline plan has them.

Source: tflite-micro commit 90b983c2b3f1, micro/kernels/ethos_u/ethosu.cc.
"""

from __future__ import annotations

from .model import Graph, Model, Operator, Tensor

NPU_CODES = frozenset({"ethos-u"})
"""Custom codes."""
NPU_HAS_ADDRESSES = "an NPU's commands have addresses in the arena, which hold for this graph and this order alone"
"""Why such a graph is left as it is."""


def is_npu(operator: Operator) -> bool:
    """Whether an NPU runs it."""
    return operator.name == "CUSTOM" and operator.opcode.custom_code in NPU_CODES


def npu_operators(graph: Graph) -> list[Operator]:
    """The graph's operators that an NPU runs, in order."""
    return [operator for operator in graph.operators if is_npu(operator)]


def has_npu(model: Model) -> bool:
    """Whether an NPU runs any part of the model."""
    return any(npu_operators(graph) for graph in model.graphs)


def is_work_memory(tensor: Tensor) -> bool:
    """Whether it is memory that an NPU works in: nothing writes it, and nothing else reads it.

    The caller knows that it is no input of its graph.
    """
    is_given = tensor.is_constant or tensor.is_variable or tensor.producer is not None
    return not is_given and bool(tensor.uses) and all(is_npu(use.operator) for use in tensor.uses)
