"""Metadata that names operators by their position, and so is wrong once operators have moved.

``model_control_dependencies`` (tensorflow/compiler/mlir/lite/experimental/remat/metadata_util.h) lists, for each
subgraph, pairs of operator positions that must keep their order. Operators with side effects keep theirs in any case.
"""

from __future__ import annotations

from ..ir.model import Model
from .metadata import remove_entries

_NAMES = ("model_control_dependencies",)


def detach_if_moved(model: Model, original: Model) -> tuple[str, ...]:
    """Remove such metadata where the operators are not those of the original, one after the other.

    Returns the names of what went; the buffers that only it used are gone too.
    """
    found = tuple(name for name in _NAMES if any(name == each for each, _ in model.metadata))
    if _operators(model) == _operators(original):
        return ()
    for name in found:
        remove_entries(model, name)
    return found


def _operators(model: Model) -> list[list[tuple[str, ...]]]:
    return [
        [(operator.opcode.label, *(tensor.name for tensor in operator.outputs)) for operator in graph.operators]
        for graph in model.graphs
    ]
