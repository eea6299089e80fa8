"""Planned models, and the same with one tensor moved: chains, branches, loops in both forms, ties, updates in place."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.cascade.networks import random_network
from tests.memory.loops import looped, placement_of
from tests.models import ALL
from tests.test_random_models import random_model, random_rows
from tflite_memopt.graph.alignment import aligned
from tflite_memopt.io import offline_plan
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import DType, Model, Tensor
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.layout import offsets_in_force

_STEP = 16
_MOST = 1024
"""Bytes of a head that is gone through at every multiple of 16; a larger one at fewer places."""


def planned(number: int, seed: int) -> Iterator[tuple[str, bytes, str]]:
    """Models with a plan, by kind, and the kernels that it is for."""
    draw = random.Random(f"plans {seed} {number}")
    made: list[tuple[str, Model]] = [
        ("chain of layers", random_network(draw.randrange(1 << 20), draw.choice((DType.INT8, DType.FLOAT32)), 3)),
        ("rows", random_rows(draw.randrange(1 << 20))),
        ("cells", random_model(draw.randrange(1 << 20))),
    ]
    if number % 4 == 0:
        made += [("loop, masked", looped("masked")), ("loop, clamped", looped("clamped"))]
        made += [(name, ALL[name]()) for name in ("split_model", "concat_model", "if_model", "while_model")]
    for kind, model in made:
        kernels = draw.choice(("reference", "portable"))
        placement = placement_of(model, kernels)
        layout = placement.layout
        offsets = dict(zip(layout.tensors, offsets_in_force(layout, placement.offsets), strict=False))
        offline_plan.attach(model, offsets)
        yield f"{kind}, {kernels}", write_model(model), kernels


def moved_plans(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every tensor that has a place, at every other multiple of 16 in the head and behind it."""
    model = read_planned(data)
    plan = offline_plan.decode(model) or {}
    old = offline_plan.encode(model, plan)
    is_exact = data.count(old) == 1
    ends = [offset + tensor.nbytes for tensor, offset in plan.items()]
    head = aligned(max(ends, default=0))
    step = _STEP * max(1, head // _MOST)
    for tensor, at in plan.items():
        for place in range(0, head + aligned(tensor.nbytes) + 1, step):
            if place != at and is_exact:
                moved: dict[Tensor, int] = {**plan, tensor: place}
                yield f"'{tensor.name}' from {at} to {place}", data.replace(old, offline_plan.encode(model, moved))
