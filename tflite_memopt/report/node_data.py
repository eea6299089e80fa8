"""Files for Google's Model Explorer: for each figure its value on every operator.

Format: node_data_builder.py of google-ai-edge/model-explorer, ``ModelNodeData``: by graph, and in it by the name of an
operator's output, a value; a gradient gives the colors from the smallest value to the largest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..memory.figures import ArenaMap, OperatorUse

_UNNAMED = "main"
_GRADIENT = [{"stop": 0, "bgColor": "#fff7ec"}, {"stop": 1, "bgColor": "#d7301f"}]


def node_data(arena: ArenaMap) -> dict[str, bytes]:
    """Return files by name: bytes in use, highest byte in use, multiply-accumulates, and the step in which it runs."""
    figures = {
        "bytes_in_use": [(step, step.working_set) for step in arena.steps],
        "highest_byte": [(step, step.reach) for step in arena.steps],
        "multiply_accumulates": [(step, step.macs) for step in arena.steps],
        "step": [(step, step.start) for step in arena.steps],
    }
    return {f"{name}.json": _file(values, arena.graphs) for name, values in figures.items()}


def _file(values: list[tuple[OperatorUse, int]], graphs: Sequence[str]) -> bytes:
    by_graph: dict[str, dict[str, dict[str, int]]] = {}
    for step, value in values:
        if step.output:
            by_graph.setdefault(graphs[step.subgraph] or _UNNAMED, {})[step.output] = {"value": value}
    data = {graph: {"results": results, "gradient": _GRADIENT} for graph, results in by_graph.items()}
    return (json.dumps(data, indent=1) + "\n").encode("utf-8")
