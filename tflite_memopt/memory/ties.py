"""Ties: an output at the place of the input that it feeds, so that state passes from run to run without a copy.

    run 1:   x, h --> ... --> y, h'        h' is written where h was, once nothing reads h any more
    run 2:   x, h --> ...                  h is what run 1 wrote there

From the last reader of the input to the writer of the output the bytes are nobody's state: other tensors may use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.side_effects import side_effect_order
from ..errors import UsageError
from ..graph.dependency_graph import dependency_graph, kahn_order, set_of
from ..graph.interval import intersect
from ..ir.model import Graph, Model, Tensor
from ..kernels.profile import KernelProfile
from .layout import MemoryLayout, memory_layout
from .together import Groups


def ties_named(model: Model, texts: Sequence[str]) -> tuple[tuple[Tensor, Tensor], ...]:
    """(output, input) pairs from texts such as ``state_out:state_in``; names may have colons themselves.

    Raises UsageError for a text that names no such pair, for tensors that differ in shape, type or quantization, and
    for a tensor in two ties.
    """
    outputs, inputs = _by_name(model.main.outputs), _by_name(model.main.inputs)
    found: list[tuple[Tensor, Tensor]] = []
    for text in texts:
        cuts = [at for at, sign in enumerate(text) if sign == ":"]
        pairs = [(text[:at], text[at + 1 :]) for at in cuts if text[:at] in outputs and text[at + 1 :] in inputs]
        if len(pairs) != 1:
            known = f"outputs are {', '.join(outputs)}; inputs are {', '.join(inputs)}"
            raise UsageError(f"--tie {text}: write OUTPUT:INPUT, names of the model's own; {known}")
        output, source = outputs[pairs[0][0]], inputs[pairs[0][1]]
        for tensor in (output, source):
            if any(tensor in pair for pair in found):
                raise UsageError(f"--tie {text}: '{tensor.name}' is in another tie")
        _check_alike(text, output, source)
        found.append((output, source))
    return tuple(found)


def tie_positions(model: Model, texts: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return (output, input) positions of the ties that texts name. Raises UsageError as ``ties_named``."""
    return _positions(model.main, ties_named(model, texts))


def with_ties(model: Model, texts: Sequence[str], profile: KernelProfile) -> Model:
    """The model itself with ties that texts name, its operators in an order in which they can be kept.

    Raises UsageError for a wrong text, and where the output of a tie would overwrite its input too early in any order.
    """
    if not texts:
        return model
    graph, pairs = model.main, ties_named(model, texts)
    model.ties = _positions(graph, pairs)
    places = {operator: at for at, operator in enumerate(graph.operators)}
    before = [
        (places[t.producer], at) for op, at in places.items() for t in op.present_inputs() if t.producer in places
    ]
    every = {*before, *side_effect_order(graph), *readers_before_writers(graph, pairs)}
    if not all(first < second for first, second in every):
        needs = [set_of(first for first, second in every if second == at) for at in range(len(places))]
        order = kahn_order(dependency_graph(needs))
        if len(order) == len(places):  # else an input is read after its output is written: the groups say which
            graph.reorder(order)
    groups_with(memory_layout(model, profile), pairs)
    return model


def _positions(graph: Graph, pairs: Sequence[tuple[Tensor, Tensor]]) -> tuple[tuple[int, int], ...]:
    return tuple((graph.outputs.index(output), graph.inputs.index(source)) for output, source in pairs)


def readers_before_writers(graph: Graph, ties: Sequence[tuple[Tensor, Tensor]]) -> Iterator[tuple[int, int]]:
    """By position, what reads the input of a tie, and what writes the output."""
    places = {operator: at for at, operator in enumerate(graph.operators)}
    for output, source in ties:
        if output.producer in places:
            writer = places[output.producer]
            yield from ((places[use.operator], writer) for use in source.uses if use.operator is not output.producer)


def groups_with(layout: MemoryLayout, ties: Sequence[tuple[Tensor, Tensor]]) -> Groups:
    """Items by number that lie at one offset: what loops carry, and the ``ties``.

    Raises UsageError where the output of a tie would overwrite its input too early.
    """
    for output, source in ties:
        _check_times(layout, output, source)
    return layout.groups_with(ties)


def _by_name(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in tensors}


def _check_alike(text: str, output: Tensor, source: Tensor) -> None:
    if output is source or output.is_constant:
        raise UsageError(f"--tie {text}: no operator writes the output")
    pairs = (("shape", output.shape, source.shape), ("type", output.dtype, source.dtype))
    scales = [
        (t.quantization.scale.tolist(), t.quantization.zero_point.tolist()) if t.quantization else None
        for t in (output, source)
    ]
    for what, one, other in (*pairs, ("quantization", *scales)):
        if one != other:
            raise UsageError(f"--tie {text}: the output has {what} {one} and the input {other}; they must be the same")


def _check_times(layout: MemoryLayout, output: Tensor, source: Tensor) -> None:
    first, second = layout.tensors.index(output), layout.tensors.index(source)
    may_share = any(
        {each.first, each.second} == {first, second} and each.allows(0, 0) for each in layout.problem.relations
    )
    if may_share or not intersect(layout.items[first], layout.items[second]):
        return
    born = layout.items[first].start
    late = [use.operator.name for use in source.uses if layout.timeline.spans[use.operator].end > born]
    why = f"{late[-1]} reads '{source.name}' then, or later" if late else f"'{source.name}' is returned as well"
    raise UsageError(
        f"--tie {output.name}:{source.name}: '{output.name}' is written where '{source.name}' lies, and {why}: "
        "copy the state in the firmware"
    )
