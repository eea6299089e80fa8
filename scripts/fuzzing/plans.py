"""Planned models, and the same with one tensor moved: chains, branches, loops in both forms, updates in place.

And what the tool writes of models in parts, fed in rows, and one step at a time, whose states are tied.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tests.cascade.networks import random_network
from tests.memory.loops import looped, placement_of
from tests.models import ALL
from tests.program.test_feed import NETWORKS
from tests.program.test_program_firmware import separable
from tests.recurrent import layers
from tests.test_random_models import random_model, random_rows
from tflite_memopt import Options, optimize
from tflite_memopt.evidence.equivalence.adapter import ModelRun, RunJob
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.evidence.equivalence.sequences import calls_of
from tflite_memopt.evidence.proof import Places, Proof, prove_plan
from tflite_memopt.firmware.description import Feed
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.file import places_in_force, read_planned
from tflite_memopt.memory.layout import offsets_in_force
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.run.parts.fronts import with_ties
from tflite_memopt.run.parts.proving import streamed_by
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.solvers.graph.alignment import aligned

_STEP = 16
_MOST = 1024
"""Bytes of a head that is gone through at every multiple of 16; a larger one at fewer places."""
_ARENA = 1 << 20
_FILL = 0x5A
_RARE = 4
"""Numbers that are multiples of this have the sorts that take seconds to make, too."""


@dataclass(frozen=True)
class Planned:
    """A file with a plan: what it is, and the kernels that it is for. ``fed``: the model whose first part it is."""

    kind: str
    data: bytes
    kernels: str
    feed: Feed | None = None
    fed: Model | None = None

    def _model(self, data: bytes) -> Model:
        found = read_planned(data)
        return found if self.feed is None else with_ties(found, self.feed)

    def _places(self, data: bytes) -> tuple[Model, Places]:
        model = self._model(data)
        return model, places_in_force(model, PROFILES[self.kernels])

    def proof(self, data: bytes) -> Proof:
        """The proof of the plan in this file, or in one of its variants."""
        return prove_plan(*self._places(data))

    def run(self, data: bytes, count: int, seed: int, interpreters: Interpreters) -> ModelRun:
        """Run a variant on TFLM, over inputs or images in sequence; what is tied is given once, and lies there then."""
        model, places = self._places(self.data)
        if self.feed is None or self.fed is None:
            ties, tied = tuple(places.ties), {source for _, source in places.ties}
            samples = seeded_inputs(model, count, seed)
            samples[1:] = [[each for at, each in enumerate(one) if at not in tied] for one in samples[1:]]
        else:
            stream, draw = streamed_by(self.feed, model), np.random.default_rng(seed)
            ties = stream.ties
            given = seeded_inputs(self.fed, count, seed)
            samples = [call for each in given for call in calls_of(model, stream, each, draw)]
        return interpreters["tflm"].run(RunJob(data, samples, _ARENA, fill=_FILL, carried=ties))

    def moved(self, draw: random.Random) -> Iterator[tuple[str, bytes]]:
        """The variants, in any order: every tensor that has a place at every other multiple of 16, up to behind the
        head, and both ends of every tie."""
        model = self._model(self.data)
        plan = offline_plan.decode(model) or {}
        old = offline_plan.encode(model, plan)
        if self.data.count(old) != 1:
            return
        head = aligned(max((offset + tensor.nbytes for tensor, offset in plan.items()), default=0))
        step = _STEP * max(1, head // _MOST)
        ends = ((model.main.outputs[output], model.main.inputs[at]) for output, at in self._places(self.data)[1].ties)
        groups = [*((tensor,) for tensor in plan), *(pair for pair in ends if set(pair) <= set(plan))]
        places = [(each, at) for each in groups for at in range(0, head + aligned(each[0].nbytes) + 1, step)]
        for group, place in draw.sample(places, len(places)):
            if any(plan[tensor] != place for tensor in group):
                moved: dict[Tensor, int] = {**plan, **dict.fromkeys(group, place)}
                said = ", ".join(f"'{tensor.name}' from {plan[tensor]}" for tensor in group)
                yield f"{said} to {place}", self.data.replace(old, offline_plan.encode(model, moved))


def planned(number: int, seed: int) -> Iterator[Planned]:
    """Models with a plan; of numbers that are multiples of 4, all sorts."""
    draw = random.Random(f"plans {seed} {number}")
    made: list[tuple[str, Model]] = [
        ("chain of layers", random_network(draw.randrange(1 << 20), draw.choice((DType.INT8, DType.FLOAT32)), 3)),
        ("rows", random_rows(draw.randrange(1 << 20))),
        ("cells", random_model(draw.randrange(1 << 20))),
    ]
    if number % _RARE == 0:
        made += [("loop, masked", looped("masked")), ("loop, clamped", looped("clamped"))]
        made += [(name, ALL[name]()) for name in ("split_model", "concat_model", "if_model", "while_model")]
        yield from _written(draw)
    for kind, model in made:
        kernels = draw.choice(("reference", "portable"))
        placement = placement_of(model, kernels)
        layout = placement.layout
        offsets = dict(zip(layout.tensors, offsets_in_force(layout, placement.offsets), strict=False))
        offline_plan.attach(model, offsets)
        yield Planned(f"{kind}, {kernels}", write_model(model), kernels)


def _written(draw: random.Random) -> Iterator[Planned]:
    """What ``--step``, ``--parts`` and ``--feed`` write; only reference kernels make every front fast enough."""
    kernels = draw.choice(("reference", "portable"))
    options = Options(kernels=kernels, verify=False, effort="quick", max_slowdown=1.0)
    cell = layers(draw.choice(("rnn", "gru", "lstm")))
    yield Planned(f"tied, {kernels}", optimize(write_model(cell), replace(options, step=True)).model, kernels)
    parts = optimize_in_parts(write_model(separable()), options, 3).models
    yield from (Planned(f"part {number}, {kernels}", part, kernels) for number, part in enumerate(parts))
    image = NETWORKS[draw.choice(("chain", "causal", "beside"))]()
    found = optimize_in_parts(write_model(image), replace(options, kernels="reference"), 2, feed=2)
    yield Planned("fed, reference", found.models[0], "reference", found.program.feed, image)
