"""Models as problems, and random networks: shared by the benchmarks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cascade.networks import TYPES, random_network
from tests.test_random_models import random_model, random_rows
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.solvers.plan.problem import PlanProblem
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem

_LAYERS = (4, 14)
"""The fewest and the most layers of a random region."""


@dataclass(frozen=True)
class Network:
    """A model's problems, under its file's name: the order, and the offsets in its own and in the best order."""

    name: str
    problem: ScheduleProblem
    items: PlanProblem
    reordered: PlanProblem


def networks_in(path: Path) -> Iterator[Network]:
    """The model of a file, or of every .tflite in a folder."""
    for file in sorted(path.glob("*.tflite")) if path.is_dir() else [path]:
        model = read_model(file.read_bytes())
        drop_dead_tensors(model)
        profile = profile_named("portable")
        layout = memory_layout(model, profile)
        problem = schedule_problem(model.main, layout)
        model.main.reorder(solve(problem).order)
        yield Network(file.stem, problem, layout.problem, memory_layout(model, profile).problem)


def named(path: Path) -> str:
    """The path as a reader would type it."""
    return str(path).replace(str(Path.home()), "~")


def random_networks(count: int, seed: int = 0) -> Iterator[bytes]:
    """Build networks of three kinds in turn: cells, rows, and regions for stripes, in all types."""
    for number in range(seed, seed + count):
        draw = random.Random(number)
        region = random_network(number, draw.choice(TYPES), draw.randint(*_LAYERS))
        yield write_model((random_model(number), random_rows(number), region)[number % 3])
