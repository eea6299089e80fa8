"""Metadata entries of a model that the tool itself writes: a name and a buffer of its own."""

from __future__ import annotations

import numpy as np

from ..ir.model import Buffer, Model


def replace_entry(model: Model, name: str, data: bytes) -> None:
    """Make this the model's one entry of that name."""
    remove_entries(model, name)
    buffer = Buffer(np.frombuffer(data, dtype=np.uint8))
    model.buffers.append(buffer)
    model.metadata.append((name, buffer))


def remove_entries(model: Model, name: str) -> None:
    """Remove every entry of that name, and the buffers that only they use."""
    found = [buffer for entry, buffer in model.metadata if entry == name]
    if not found:
        return
    model.metadata = [(entry, buffer) for entry, buffer in model.metadata if entry != name]
    kept = {id(tensor.buffer) for graph in model.graphs for tensor in graph.tensors}
    kept |= {id(buffer) for _, buffer in model.metadata} | {id(each) for each in model.legacy_metadata or ()}
    gone = {id(buffer) for buffer in found} - kept
    model.buffers = [buffer for buffer in model.buffers if id(buffer) not in gone]
