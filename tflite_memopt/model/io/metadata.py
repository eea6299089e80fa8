"""Metadata entries of a model: a name and a buffer of its own."""

from __future__ import annotations

import numpy as np

from ..ir.copying import drop_buffers
from ..ir.model import Buffer, Model


def replace_entry(model: Model, name: str, data: bytes) -> None:
    """Make this the model's one entry of that name."""
    remove_entries(model, name)
    buffer = Buffer(np.frombuffer(data, dtype=np.uint8))
    model.buffers.append(buffer)
    model.metadata.append((name, buffer))


def remove_entries(model: Model, name: str) -> None:
    """Remove every entry of that name, and the buffers that only they use."""
    doomed = {id(buffer) for entry, buffer in model.metadata if entry == name}
    if doomed:
        model.metadata = [(entry, buffer) for entry, buffer in model.metadata if entry != name]
        drop_buffers(model, doomed)


_BY_POSITION = ("model_control_dependencies",)
"""Names operators by their positions, and so is wrong once operators have moved.

It lists, for each subgraph, pairs of operators that must keep their order. Operators with side effects keep theirs in
any case. Source: tensorflow/compiler/mlir/lite/experimental/remat/metadata_util.h.
"""


def detach_if_moved(model: Model, original: Model) -> tuple[str, ...]:
    """Remove metadata that names operators by position where they are not those of the original, one after the other.

    Returns the names that the original has and the model has no more; buffers that only they used are gone too.
    """
    found = tuple(name for name in _BY_POSITION if any(name == each for each, _ in original.metadata))
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
