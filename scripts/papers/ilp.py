"""The networks of "Iterative Graph Optimization" under the method as printed: the figures of the paper page."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import click

from scripts.benchmarks.kept_parts import KeptParts
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.published.hmcos.hierarchy import build_hierarchy
from tflite_memopt.published.ilp.fusion import fuse
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import peak_of
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, memory_graph

from .as_printed.ilp import PrintedParts, ilp_as_printed
from .as_printed.ilp_fusion import fuse_as_printed
from .as_printed.ilp_walk import order_from_outputs
from .as_printed.serenity import StepLimit, serenity_as_printed
from .graphs import files_in, plain_problem, unfolded_problem
from .random_cells import random_stage

T = TypeVar("T")

NETWORKS = {
    # Their name: the zoo's.
    "NASNet-A": "nasnet",
    "AmoebaNet-A": "amoebanet",
    "Darts": "darts",
    "Randwire1": "randwire1",
    "Randwire2": "randwire2",
    "Randwire3": "randwire3",
    "HRNet-W18-V1": "hrnet_w18_small_v1",
    "HRNet-W18-V2": "hrnet_w18_small_v2_narrow",
    "HRNet-W32": "hrnet_w32_narrow",
}
PART_SIZE = 24
"""k where the paper gives none: so many operators after fusion to a part, rounded up."""
LARGEST = 6
"""The largest k of Table VI."""
ABLATED = {"NASNet-A": 15, "Randwire1": 5, "HRNet-W18-V1": 4}
"""Table IV's networks, and the k at which a part has about the published number of variables before any step."""
SWEPT = ("HRNet-W18-V1", "NASNet-A")
LONGER = ("HRNet-W18-V2", "HRNet-W32")
LONGER_WORK = 50
"""Networks that are run with so many times the work, too: those of Table III whose programs the work ends."""
STEPS = {
    "partition": PrintedParts(0, fusion=False, pruning=False),
    "partition + fusion": PrintedParts(0, fusion=True, pruning=False),
    "partition + pruning": PrintedParts(0, fusion=False, pruning=True),
    "all": PrintedParts(0),
}
SIGNATURES = 1_000
"""SERENITY's T here, counted."""
_WALKS = 100


@dataclass(frozen=True)
class Solved:
    """One run of Algorithm 2: peak in bytes, processor seconds, the largest program's operators and variables.

    ``too_large``: it was not run (``PrintedParts.most_variables``).
    """

    peak: int
    seconds: float
    operators: int
    variables: int
    finished: bool
    too_large: bool


@dataclass(frozen=True)
class Scale:
    """Operators of the graph, after fusion as printed, and after the wider form; the same before folding.

    ``peaks``: the least of any order of the first three, in bytes.
    """

    operators: int
    printed: int
    wider: int
    unfolded: int
    unfolded_printed: int
    unfolded_wider: int
    peaks: Sequence[int]


@dataclass(frozen=True)
class Peaks:
    """Bytes. ``walks``: least, median and largest of reverse post-orders with their choices at random.

    ``best`` is our default's, and proved. ``hmcos_seconds`` and ``best_seconds`` are processor time.
    """

    rpo: int
    walks: Sequence[int]
    serenity: int
    serenity_solved: bool
    hmcos: int
    hmcos_seconds: float
    best: int
    best_proved: bool
    best_seconds: float


def problems(sources: Sequence[Path]) -> dict[str, tuple[ScheduleProblem, ScheduleProblem]]:
    """By their name: the plain problem, and the one before batch norms and activations were folded."""
    files = files_in(sources)
    found = {}
    for name, zoo_name in NETWORKS.items():
        model = read_model(files[zoo_name].read_bytes())
        drop_dead_tensors(model)
        found[name] = plain_problem(model), unfolded_problem(model)
    return found


def peaks(problem: ScheduleProblem, limit: SearchLimit) -> Peaks:
    """Table II's other columns."""
    graph = memory_graph(problem)
    walks = sorted(peak_of(problem, order_from_outputs(memory_graph(_shuffled(problem, n)))) for n in range(_WALKS))
    serenity = serenity_as_printed(problem, limit, StepLimit(signatures=SIGNATURES))
    hmcos, hmcos_seconds = _timed(lambda: solve(problem, "hmcos", limit))
    best, best_seconds = _timed(lambda: solve(problem, limit=limit))
    return Peaks(
        peak_of(problem, order_from_outputs(graph)),
        (walks[0], walks[len(walks) // 2], walks[-1]),
        peak_of(problem, serenity.order),
        serenity.lower_bound > 0,
        hmcos.peak_bytes,
        hmcos_seconds,
        best.peak_bytes,
        best.optimal,
        best_seconds,
    )


def _shuffled(problem: ScheduleProblem, seed: int) -> ScheduleProblem:
    """The same problem with the operands of each operator in a random order: another reverse post-order."""
    draw = random.Random(seed)
    steps = tuple(replace(step, inputs=tuple(draw.sample(step.inputs, len(step.inputs)))) for step in problem.steps)
    return replace(problem, steps=steps)


def scale(problem: ScheduleProblem, unfolded: ScheduleProblem) -> Scale:
    """Figure 9, and whether fusion kept the optimum."""
    graphs = [(each, fuse_as_printed(each).problem, fuse(each).problem) for each in (problem, unfolded)]
    (plain, printed, wider), before = ([len(graph.steps) for graph in three] for three in graphs)
    least = [solve(graph).peak_bytes for graph in graphs[0]]
    return Scale(plain, printed, wider, before[0], before[1], before[2], least)


def solved(name: str, problem: ScheduleProblem, limit: SearchLimit, parts: PrintedParts) -> Solved:
    """One run of Algorithm 2."""
    click.echo(f"{name}: {parts}", err=True)
    found, seconds = _timed(lambda: ilp_as_printed(problem, limit, parts))
    return Solved(
        peak_of(problem, found.answer.order),
        seconds,
        max(found.solved, default=0),
        max(found.variables, default=0),
        found.finished,
        found.too_large,
    )


def origin_variables(problem: ScheduleProblem) -> int:
    """O and T of the whole graph without any step: a column for each operator and tensor, and each step."""
    count = len(problem.steps)
    return count * (count + len(problem.sizes))


def _timed(run: Callable[[], T]) -> tuple[T, float]:
    started = time.process_time()
    found = run()
    return found, time.process_time() - started


@dataclass(frozen=True)
class ExactRuns:
    """Algorithm 2 with the least peak of a part in place of a program: of the part with the peak, as printed; of every
    part; and as printed on the naive partition.
    """

    printed: Solved
    every: Solved
    naive: Solved


@dataclass(frozen=True)
class Found:
    """All that is measured, by their name of the network; ``algorithm`` to ``swept`` are runs of Algorithm 2.

    ``sequences``: of HMCOS's graph before any group, and the same before folding. ``algorithm``: with rows as printed,
    and with this project's; ``parts``: its k; ``longer``: the two with ``LONGER_WORK``. ``exact``: by k from 1 on.
    ``steps``: Table IV's. ``swept``: the two of ``algorithm`` by k from 2 on.
    """

    peaks: Mapping[str, Peaks]
    scales: Mapping[str, Scale]
    sequences: Mapping[str, Sequence[int]]
    parts: Mapping[str, int]
    algorithm: Mapping[str, tuple[Solved, Solved]]
    longer: Mapping[str, tuple[Solved, Solved]]
    exact: Mapping[str, Sequence[ExactRuns]]
    steps: Mapping[str, Mapping[str, Solved]]
    origin: Mapping[str, int]
    swept: Mapping[str, Sequence[tuple[Solved, Solved]]]


def measured(sources: Sequence[Path], limit: SearchLimit, kept: KeptParts) -> Found:
    """Everything, each part kept as it comes. ``limit.effort`` is what each integer program may spend."""
    graphs = problems(sources)
    plain = {name: pair[0] for name, pair in graphs.items()}
    wide = SearchLimit(limit.time_limit, limit.seed)
    longer = replace(limit, effort=limit.effort * LONGER_WORK)

    def run(name: str, parts: PrintedParts, spend: SearchLimit = limit) -> Solved:
        key = f"{name}_{parts.partitions}" + "".join(f"_{value:d}" for value in _switches(parts))
        key += "" if spend is limit else "_longer"
        spend = wide if parts.exact else spend
        return Solved(**kept.part(key, lambda: asdict(solved(name, plain[name], spend, parts))))

    def both(name: str, parts: int, spend: SearchLimit = limit) -> tuple[Solved, Solved]:
        return run(name, PrintedParts(parts), spend), run(name, PrintedParts(parts, as_printed=False), spend)

    def exact(name: str, k: int) -> ExactRuns:
        part = PrintedParts(k, exact=True)
        every, naive = replace(part, everywhere=True), replace(part, by_bytes=False)
        return ExactRuns(run(name, part), run(name, every), run(name, naive))

    scales = {name: Scale(**kept.part(f"{name}_scale", partial(_scale, *graphs[name]))) for name in plain}
    chosen = {name: -(-each.printed // PART_SIZE) for name, each in scales.items()}
    return Found(
        {name: Peaks(**kept.part(f"{name}_peaks", partial(_peaks, name, plain[name], wide))) for name in plain},
        scales,
        {name: kept.part(f"{name}_sequences", partial(_sequences, *pair)) for name, pair in graphs.items()},
        chosen,
        {name: both(name, parts) for name, parts in chosen.items()},
        {name: both(name, chosen[name], longer) for name in LONGER},
        {name: [exact(name, k) for k in range(1, LARGEST + 1)] for name in plain},
        {
            name: {step: run(name, replace(parts, partitions=k)) for step, parts in STEPS.items()}
            for name, k in ABLATED.items()
        },
        {name: origin_variables(plain[name]) for name in ABLATED},
        {name: [both(name, k) for k in range(2, LARGEST + 1)] for name in SWEPT},
    )


def _switches(parts: PrintedParts) -> tuple[bool, ...]:
    """What tells two runs with the same k apart."""
    return (
        *(parts.fusion, parts.pruning, parts.by_bytes, parts.as_printed),
        *([parts.everywhere] if parts.exact else []),
    )


def _peaks(name: str, problem: ScheduleProblem, limit: SearchLimit) -> dict[str, Any]:
    click.echo(f"{name}: orders", err=True)
    return asdict(peaks(problem, limit))


def _sequences(*problems: ScheduleProblem) -> list[int]:
    return [len(build_hierarchy(memory_graph(problem)).sequences) for problem in problems]


def _scale(problem: ScheduleProblem, unfolded: ScheduleProblem) -> dict[str, Any]:
    return asdict(scale(problem, unfolded))


@dataclass(frozen=True)
class Stages:
    """RandWire's first stage over seeds, in one form: (least, median, largest) peaks in units of a vertex's result.

    ``hits``: how many seeds have the published optima 19, 20 and 26.
    """

    form: str
    seeds: int
    operators: float
    rpo: Sequence[int]
    best: Sequence[int]
    hits: str


def stages(form: str, seeds: int = 100) -> Stages:
    """The distribution over the seeds from 0 on."""
    graphs = [random_stage(seed, form) for seed in range(seeds)]
    rpo = sorted(peak_of(graph, order_from_outputs(memory_graph(graph))) for graph in graphs)
    best = sorted(solve(graph).peak_bytes for graph in graphs)
    hits = ", ".join(str(best.count(units)) for units in (19, 20, 26))
    return Stages(form, seeds, fmean(len(graph.steps) for graph in graphs), _three(rpo), _three(best), hits)


def _three(values: Sequence[int]) -> tuple[int, int, int]:
    return values[0], values[len(values) // 2], values[-1]
