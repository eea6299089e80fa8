"""A copy of a model that can be rewritten while the original stays as it is."""

from __future__ import annotations

from dataclasses import replace

from .model import Graph, Model, Operator, Signature, Tensor


def copy_model(model: Model) -> Model:
    """New graphs, tensors and operators at the positions of the old ones.

    Operator codes and buffers are shared, with the weights in them: nothing changes those in place.
    """
    twins: dict[Tensor, Tensor] = {}
    graphs = [_copy_graph(graph, twins) for graph in model.graphs]
    pairs = dict(zip(map(id, model.graphs), graphs, strict=True))

    def signature(old: Signature) -> Signature:
        inputs = tuple((name, twins[tensor]) for name, tensor in old.inputs)
        outputs = tuple((name, twins[tensor]) for name, tensor in old.outputs)
        return replace(old, graph=pairs[id(old.graph)], inputs=inputs, outputs=outputs)

    return replace(
        model,
        graphs=graphs,
        opcodes=list(model.opcodes),
        buffers=list(model.buffers),
        metadata=list(model.metadata),
        legacy_metadata=None if model.legacy_metadata is None else list(model.legacy_metadata),
        signatures=None if model.signatures is None else [signature(each) for each in model.signatures],
    )


def _copy_graph(graph: Graph, twins: dict[Tensor, Tensor]) -> Graph:
    copied = Graph(graph.name, graph.extras)
    for tensor in graph.tensors:
        twins[tensor] = copied.add_tensor(unlinked_twin(tensor))
    for operator in graph.operators:
        copied.add_operator(_copy_operator(operator, twins))
    copied.inputs = tuple(twins[tensor] for tensor in graph.inputs)
    copied.outputs = tuple(twins[tensor] for tensor in graph.outputs)
    return copied


def unlinked_twin(tensor: Tensor) -> Tensor:
    """As ``dataclasses.replace(tensor)``, in a quarter of the time: searches copy models of hundreds of tensors."""
    twin = Tensor.__new__(Tensor)
    twin.__dict__.update(tensor.__dict__, producer=None, uses=[])
    return twin


def _copy_operator(operator: Operator, twins: dict[Tensor, Tensor]) -> Operator:
    twin = Operator.__new__(Operator)
    twin.__dict__.update(
        operator.__dict__,
        inputs=tuple([None if tensor is None else twins[tensor] for tensor in operator.inputs]),
        outputs=tuple([twins[tensor] for tensor in operator.outputs]),
        intermediates=tuple([twins[tensor] for tensor in operator.intermediates]),
    )
    return twin
