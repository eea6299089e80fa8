"""The cells that SERENITY measures, as problems, and what the orders of TensorFlow Lite, SERENITY and ours need."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from scripts.benchmarks.cells import cells_of
from scripts.papers.traffic import off_chip_traffic
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.copying import copy_model, drop_dead_tensors
from tflite_memopt.model.ir.model import Model
from tflite_memopt.search.rewrite.channels import NESTED_CONCATENATION, SPLIT_DEPTHWISE
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.partial import PARTIAL_CONVOLUTION
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.methods import solve as solve_plan
from tflite_memopt.solvers.plan.problem import Item, PlanProblem
from tflite_memopt.solvers.schedule.check import peak_of
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, memory_graph

from .as_printed.serenity import StepLimit, serenity_as_printed

NETWORKS = ("darts_cell", "swiftnet", "randwire1", "randwire2", "randwire3")
CAPACITIES = (32, 64, 128, 256)
"""KB on the chip, as in Figure 11."""
KB = 1024
_INT8 = 4
"""An int8 activation has a quarter of a float's bytes; SERENITY's sizes are those of int8."""


@dataclass(frozen=True)
class OrderUse:
    """Bytes of one order: its peak, its arena by Greedy by Size, its traffic at each of ``CAPACITIES``."""

    peak: int
    arena: int
    traffic: Sequence[int]
    seconds: float = 0.0
    is_solved: bool = True


@dataclass(frozen=True)
class Cell:
    """One cell under the file's order, SERENITY's as printed, and our default; then the last two with rewriting.

    ``rewritten``: operators after it.
    """

    name: str
    operators: int
    own: OrderUse
    printed: OrderUse
    ours: OrderUse
    rewritten: int
    printed_rewritten: OrderUse
    ours_rewritten: OrderUse

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Cell:
        """What ``asdict`` made of one."""
        fields: dict[str, Any] = {
            key: OrderUse(**each) if isinstance(each, dict) else each for key, each in raw.items()
        }
        return Cell(**fields)


def cell_models(sources: Sequence[Path]) -> Iterator[tuple[str, Model]]:
    """The cells of the networks among files, or folders of .tflite; DARTS's is a network of its own in the zoo."""
    files = {file.stem: file for path in sources for file in (path.glob("*.tflite") if path.is_dir() else [path])}
    for name in NETWORKS:
        data = files[name].read_bytes()
        cells = [("", data)] if name == "darts_cell" else list(cells_of(data))
        for letter, cell in cells:
            model = read_model(cell)
            drop_dead_tensors(model)
            yield f"{name} {letter}".strip(), model


def measured(name: str, model: Model, limit: SearchLimit, step: StepLimit) -> Cell:
    """One cell under its orders."""
    click.echo(name, err=True)
    problem = order_problem(model)
    own = tuple(range(len(problem.steps)))
    plain = _ordered(model, limit, step)
    after = rewritten(model)
    return Cell(
        name,
        len(own),
        order_use(model, problem, own),
        *plain,
        len(after.main.operators),
        *(_ordered(after, limit, step) if len(after.main.operators) != len(own) else plain),
    )


def rewritten(model: Model) -> Model:
    """A copy with SERENITY's two patterns applied wherever they match, section 3.3.

    Channel-wise partitioning of a convolution behind a concatenation, and kernel-wise partitioning of a depthwise one.
    """
    copied = copy_model(model)
    rules = (NESTED_CONCATENATION, PARTIAL_CONVOLUTION, SPLIT_DEPTHWISE)
    Driver(copied, ("exact", "reassociates")).apply_everywhere(rules)
    drop_dead_tensors(copied)
    return copied


def _ordered(model: Model, limit: SearchLimit, step: StepLimit) -> tuple[OrderUse, OrderUse]:
    """SERENITY's order as printed, and ours."""
    problem = order_problem(model)
    started = time.process_time()
    printed = serenity_as_printed(problem, limit, step)
    between = time.process_time()
    ours = solve(problem, limit=limit)
    ended = time.process_time()
    theirs = order_use(model, problem, printed.order)
    return (
        replace(theirs, seconds=between - started, is_solved=printed.lower_bound > 0),
        replace(order_use(model, problem, ours.order), seconds=ended - between, is_solved=ours.optimal),
    )


def order_problem(model: Model) -> ScheduleProblem:
    """The ordering problem of a float model with the sizes of int8, without any sharing of bytes but views."""
    problem = schedule_problem(model.main, memory_layout(model, profile_named("portable")))
    return replace(problem, sizes=tuple(-(-size // _INT8) for size in problem.sizes))


@dataclass(frozen=True)
class OverTime:
    """Figure 12, KB at each step: ``alive`` is the sum of the activations, ``top`` the highest byte in use."""

    name: str
    alive: Sequence[float]
    top: Sequence[float]


def over_time(model: Model, step: StepLimit) -> list[OverTime]:
    """A cell in the file's order, SERENITY's as printed, and that with rewriting."""
    after = rewritten(model)
    orders = [("file's order", model, tuple(range(len(model.main.operators))))]
    for name, each in (("printed", model), ("printed, rewritten", after)):
        orders.append((name, each, serenity_as_printed(order_problem(each), SearchLimit(), step).order))
    return [_over_time(name, each, order) for name, each, order in orders]


def _over_time(name: str, model: Model, order: Sequence[int]) -> OverTime:
    alive = memory_graph(order_problem(model)).needs_along(order)
    items = items_in(model, order)
    offsets = solve_plan(PlanProblem(items), "greedy_by_size").offsets
    ends = [(item, offset + item.size) for item, offset in zip(items, offsets, strict=True)]
    last = max(item.end for item in items)
    top = [max((end for item, end in ends if item.start <= scope < item.end), default=0) for scope in range(last)]
    return OverTime(name, [each / KB for each in alive], [each / _INT8 / KB for each in top])


def order_use(model: Model, problem: ScheduleProblem, order: Sequence[int]) -> OrderUse:
    """What an order of the model's operators needs."""
    arena = solve_plan(PlanProblem(items_in(model, order)), "greedy_by_size").arena_bytes // _INT8
    traffic = tuple(off_chip_traffic(problem, order, size * KB).total for size in CAPACITIES)
    return OrderUse(peak_of(problem, tuple(order)), arena, traffic)


def items_in(model: Model, order: Sequence[int]) -> tuple[Item, ...]:
    """What must be placed when the operators run in an order; the model keeps its own."""
    before = list(model.main.operators)
    model.main.reorder(order)
    items = memory_layout(model, profile_named("portable")).problem.items
    after = {operator: step for step, operator in enumerate(model.main.operators)}
    model.main.reorder([after[operator] for operator in before])
    return items
