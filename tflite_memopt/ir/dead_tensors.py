r"""Drop tensors and constants that nothing refers to. Exactness: exact.

    op --> a --> op         op --> a --> op
           b           =>
    (b: no writer, no reader, no name in the interface)

TFLM keeps a structure for every tensor of the file, and arena bytes for every dead activation.
"""

from __future__ import annotations

from .model import Model, Tensor


def drop_dead_tensors(model: Model) -> tuple[Tensor, ...]:
    """Remove dead tensors, and the buffers that only they used; returns the removed tensors."""
    kept, removed = tensors_to_keep(model), list[Tensor]()
    for graph in model.graphs:
        dead = [t for t in graph.tensors if t.producer is None and not t.uses and id(t) not in kept]
        graph.remove_tensors(dead)
        removed += dead
    _drop_buffers(model, removed)
    return tuple(removed)


def tensors_to_keep(model: Model) -> set[int]:
    """The ids of the tensors that signatures, interfaces of subgraphs, and operators' intermediates refer to."""
    kept = {id(tensor) for each in model.signatures or () for _, tensor in (*each.inputs, *each.outputs)}
    for graph in model.graphs:
        kept |= {id(tensor) for tensor in (*graph.inputs, *graph.outputs)}
        kept |= {id(tensor) for operator in graph.operators for tensor in operator.intermediates}
    return kept


def _drop_buffers(model: Model, removed: list[Tensor]) -> None:
    still_used = {id(tensor.buffer) for graph in model.graphs for tensor in graph.tensors}
    still_used |= {id(buffer) for _, buffer in model.metadata}
    still_used |= {id(buffer) for buffer in model.legacy_metadata or ()}
    still_used |= {id(buffer) for buffer in model.buffers[:1]}  # buffer 0 is the schema's "no data"
    orphans = {id(tensor.buffer) for tensor in removed} - still_used
    model.buffers = [buffer for buffer in model.buffers if id(buffer) not in orphans]
