"""Models as problems: what the benchmarks share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.copying import drop_dead_tensors
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.plan.problem import PlanProblem
from tflite_memopt.schedule.methods import solve
from tflite_memopt.schedule.problem import ScheduleProblem


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
