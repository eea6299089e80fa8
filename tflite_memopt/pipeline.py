"""The whole run, top to bottom: read, rewrite, schedule, plan, write, prove, report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .cascade.search import cascade
from .equivalence.proof import Proof, Subject, prove
from .equivalence.proof import verify as prove_equal
from .equivalence.verdict import Verdict
from .graph.search_limit import SearchLimit
from .io import offline_plan
from .io.files import read_file
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import Refusal, RewriteUse, loosest
from .ir.check import check_model
from .ir.model import Model
from .kernels.profile import KernelProfile
from .kernels.profiles import profile_named
from .memory.arrange import Placed, arena_by_kernels, place_in_better_order, sharing_in
from .memory.cost import needed_bytes
from .memory.figures import InterfaceTensor, MemoryUse
from .memory.layout import memory_layout
from .memory.schedule_problem import schedule_problem
from .memory.usage import bounds_of, interface_of, memory_use, operator_kinds, step_uses
from .options import Options
from .report.comparison import compare_methods
from .report.model import Analysis, BindingStep, Comparison, Report, Search
from .report.warnings import warnings_for
from .rewrite.stage import rewrite
from .schedule.bounds import schedule_lower_bound
from .schedule.check import peak_of
from .schedule.methods import solve as solve_schedule
from .version import __version__

Progress = Callable[[str], None]
Source = bytes | str | os.PathLike[str]


@dataclass(frozen=True)
class Result:
    """``model`` is the optimised .tflite, proved equal unless the proof was switched off."""

    model: bytes
    report: Report


def optimize(source: Source, options: Options = Options(), progress: Progress = lambda _: None) -> Result:
    """Optimise a .tflite given as bytes or as a path.

    Raises a MemoptError: ModelFormatError or UnsupportedModelError for a bad model, EquivalenceError when the
    result is not equal or nothing can run it, UsageError for a wrong name or path.
    """
    clock = _Clock()
    profile = profile_named(options.kernels)

    with clock.stage("read"):
        progress("reading")
        data, name = _load(source)
        model = read_model(data)
        check_model(model)
        original = _facts(model, data, name, profile)

    with clock.stage("rewrite"):
        rewritten = rewrite(model, profile, options, progress)
        offline_plan.detach(rewritten.model)
        unplanned = write_model(rewritten.model)

    with clock.stage("cascade"):
        cascaded = cascade(rewritten.model, profile, options, progress)
        model = cascaded.model
        check_model(model)

    arranged = _arrange(model, profile, options, clock, progress)

    with clock.stage("write"):
        offline_plan.attach(model, arranged.placed.planned)
        written = write_model(model)

    with clock.stage("verify"):
        proof = prove(
            Subject(data, unplanned, written, loosest(use.exactness for use in rewritten.uses)), options, progress
        )

    changes = (*rewritten.uses, *cascaded.uses), (*rewritten.refused, *cascaded.refused)
    report = _report(original, model, arranged, len(written), changes, proof, options, clock.seconds())
    return Result(written, replace(report, warnings=warnings_for(report, profile, options)))


@dataclass(frozen=True)
class _Facts:
    """What the report says of the model as it came; stages change the model itself."""

    name: str | None
    file_bytes: int
    memory: MemoryUse
    interface: tuple[InterfaceTensor, ...]
    kinds: frozenset[str]


def _facts(model: Model, data: bytes, name: str | None, profile: KernelProfile) -> _Facts:
    layout = memory_layout(model, profile)
    memory = memory_use(model, layout, offline_plan.decode(model) or {}, profile)
    return _Facts(name, len(data), memory, interface_of(model), operator_kinds(model))


def _report(
    original: _Facts,
    model: Model,
    arranged: _Arranged,
    written_bytes: int,
    changes: tuple[tuple[RewriteUse, ...], tuple[Refusal, ...]],
    proof: Proof,
    options: Options,
    seconds: dict[str, float],
) -> Report:
    placed = arranged.placed
    before, after = replace(original.memory, tflm=proof.tflm_before), replace(placed.memory, tflm=proof.tflm_after)
    fits = _within_budget(after, options)
    return Report(
        version=__version__,
        model=original.name,
        kernels=options.kernels,
        objective=options.objective,
        budget=options.budget,
        within_budget=fits,
        binding=_binding(after) if fits is False else None,
        before=before,
        after=after,
        bounds=bounds_of(model, placed.layout, arranged.schedule_bound),
        interface={"before": original.interface, "after": interface_of(model)},
        schedule=arranged.schedule,
        plan=arranged.plan,
        rewrites=changes[0],
        refused=changes[1],
        sharing=sharing_in(placed),
        operators_added=tuple(sorted(operator_kinds(model) - original.kinds)),
        arena_by_kernels=arranged.arena_by_kernels,
        equivalence=proof.verdicts,
        file_bytes={"before": original.file_bytes, "after": written_bytes},
        seconds=seconds,
        warnings=(),
    )


def analyze(source: Source, kernels: str = "portable") -> Analysis:
    """The memory of a model as it stands, its plan in force if it has one. Raises as :func:`optimize`."""
    profile = profile_named(kernels)
    data, name = _load(source)
    model = read_model(data)
    check_model(model)
    layout, planned = memory_layout(model, profile), offline_plan.decode(model) or {}
    memory = memory_use(model, layout, planned, profile)
    bounds = bounds_of(model, layout, schedule_lower_bound(schedule_problem(model.main, layout)))
    return Analysis(name, kernels, len(data), memory, bounds, step_uses(model, layout, planned))


def verify(
    first: Source, second: Source, options: Options = Options(), progress: Progress = lambda _: None
) -> dict[str, Verdict]:
    """Compare two models runtime by runtime; see :func:`tflite_memopt.proof.verify`."""
    return prove_equal(_load(first)[0], _load(second)[0], options, progress)


def compare(
    source: Source,
    schedulers: Sequence[str] = ("all",),
    planners: Sequence[str] = ("all",),
    options: Options = Options(),
    progress: Progress = lambda _: None,
) -> Comparison:
    """The named methods side by side, or all of them; see :func:`tflite_memopt.comparing.compare_methods`."""
    data, name = _load(source)
    return compare_methods(read_model(data), name, schedulers, planners, options, progress)


def _load(source: Source) -> tuple[bytes, str | None]:
    if isinstance(source, bytes):
        return source, None
    return read_file(source), Path(source).name


@dataclass(frozen=True)
class _Arranged:
    """The model's order and offsets, and what the searches for them say of themselves."""

    placed: Placed
    schedule: Search
    schedule_bound: int
    plan: Search
    arena_by_kernels: dict[str, int]


def _arrange(model: Model, profile: KernelProfile, options: Options, clock: _Clock, progress: Progress) -> _Arranged:
    """Order the operators and place the tensors; the model is left in the order of the smaller head."""
    with clock.stage("schedule"):
        progress(f"ordering {len(model.main.operators)} operators: {options.scheduler}")
        problem = schedule_problem(model.main, memory_layout(model, profile))
        schedule = solve_schedule(problem, options.scheduler, SearchLimit(options.time_limit, options.seed))
    with clock.stage("plan"):
        progress(f"planning {len(model.main.tensors)} tensors: {options.planner}")
        placed = place_in_better_order(model, schedule.order, profile, options)
        check_model(model)
        arena, plan = placed.memory.arena_bytes, placed.plan
        others = arena_by_kernels(model, options) | {options.kernels: arena}
    # The order in force need not be the one that was found, nor the offsets in force those of the plan.
    in_force = peak_of(problem, placed.order) == schedule.lower_bound, plan.optimal and arena == plan.arena_bytes
    return _Arranged(
        placed,
        Search(schedule.method, in_force[0], round(schedule.seconds, 6)),
        # The scheduler does not count what overwrites a tensor made of several atoms: a plan may do better.
        min(schedule.lower_bound, arena),
        Search(plan.method, in_force[1], round(plan.seconds, 6)),
        others,
    )


def _binding(after: MemoryUse) -> BindingStep | None:
    step = after.peak
    return None if step is None else BindingStep(step.subgraph, step.index, step.operator, step.output, step.bytes)


def _within_budget(after: MemoryUse, options: Options) -> bool | None:
    if options.budget is None:
        return None
    return needed_bytes(after, options) <= options.budget


class _Clock:
    def __init__(self) -> None:
        self._stages: dict[str, float] = {}
        self._started = time.perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._stages[name] = round(time.perf_counter() - started, 6)

    def seconds(self) -> dict[str, float]:
        return {**self._stages, "total": round(time.perf_counter() - self._started, 6)}
