"""Networks of cells, as searches for architectures draw them."""

from __future__ import annotations

import random

from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.model import Model, Tensor


def cell_network(seed: int, width: int = 4, resolution: int = 12, cells: int = 2, nodes: int = 3) -> Model:
    """``cells`` cells of ``nodes`` nodes that each read one or two others; channels double and resolution halves."""
    draw, b = random.Random(seed), ModelBuilder()
    x = b.conv(b.input("image", (1, resolution, resolution, 3)), width, 3, seed=seed)
    for cell in range(cells):
        made = [x]
        for _ in range(nodes):
            sources = draw.sample(made, min(len(made), draw.choice((1, 2))))
            parts = [_layer(b, draw.choice(("1x1", "3x3", "depthwise")), source, width) for source in sources]
            made.append(parts[0] if len(parts) == 1 else b.add(*parts))
        width *= 2
        x = b.conv(b.concat(made[1:]), width, stride=2 if cell < cells - 1 else 1, seed=cell)
    pooled = b.average_pool(x, x.shape[1])
    return b.finish(b.dense(b.reshape(pooled, (1, width)), 10))


def _layer(b: ModelBuilder, kind: str, source: Tensor, width: int) -> Tensor:
    if kind == "depthwise":
        return b.depthwise(source, seed=len(b.graph.operators))
    return b.conv(source, width, kernel=3 if kind == "3x3" else 1, seed=len(b.graph.operators))
