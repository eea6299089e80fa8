"""Cuts a network into its cells, as SERENITY's Figure 10 measures them: a model for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from string import ascii_uppercase

from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.model.ir.model import Graph, Tensor

_SMALLEST = 6
"""Operators; what is between two cuts and has fewer is a stem, a chain or a classifier."""


def cells_of(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Letters and models of what is between two tensors through which everything passes."""
    graph = read_model(data).main
    positions = [0, *_cuts(graph), len(graph.operators)]
    cells = [(start, end) for start, end in pairwise(positions) if end - start >= _SMALLEST]
    for letter, (start, end) in zip(ascii_uppercase, cells, strict=False):
        yield letter, _cell(data, start, end)


def _cuts(graph: Graph) -> list[int]:
    """Positions where one tensor is alive. Not behind a concatenation: its reader belongs to it."""
    found = []
    for position in range(1, len(graph.operators)):
        alive = _read_from(graph, position)
        if len(alive) == 1 and alive[0].producer is not None and alive[0].producer.name != "CONCATENATION":
            found.append(position)
    return found


def _read_from(graph: Graph, position: int) -> list[Tensor]:
    """The activations that are made before a position and read from there on, or returned."""
    before = set(graph.operators[:position])
    read = [tensor for operator in graph.operators[position:] for tensor in operator.present_inputs()]
    activations = (tensor for tensor in (*read, *graph.outputs) if not tensor.is_constant)
    return list(dict.fromkeys(t for t in activations if t.producer is None or t.producer in before))


def _cell(data: bytes, start: int, end: int) -> bytes:
    model = read_model(data)
    graph, operators = model.main, list(model.main.operators)
    inputs, outputs = _read_from(graph, start), _read_from(graph, end)
    for operator in (*operators[:start], *operators[end:]):
        graph.remove_operator(operator)
    graph.inputs, graph.outputs = tuple(inputs), tuple(outputs)
    model.signatures = None
    model.associated_files, model.metadata = (), []
    drop_dead_tensors(model)
    return write_model(model)
