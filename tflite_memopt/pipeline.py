"""The whole run, top to bottom: read, rewrite, cascade, arrange, write, prove, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .cascade.search import Cascaded, cascade
from .equivalence.proof import Subject, prove
from .equivalence.proof import verify as prove_equal
from .equivalence.verdict import Verdict
from .io import offline_plan, plan_label
from .io.files import read_file
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import loosest
from .ir.check import check_model
from .ir.model import Model
from .kernels.profile import KernelProfile
from .kernels.targets import DEFAULT_KERNELS, profile_for
from .memory.arrange import Arrangement, arena_by_kernels, arrange
from .memory.every_library import placement_for_every_library
from .memory.label import label_of
from .memory.layout import memory_layout
from .memory.libraries import LibraryNeed
from .options import Options
from .report.build import RunOutcome, build_analysis, build_report, facts_of
from .report.comparison import compare_methods
from .report.model import Analysis, Comparison, Report
from .report.stage_clock import StageClock
from .rewrite.stage import Rewritten, rewrite

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
    result is not equal or nothing can run it, UsageError for a wrong path.
    """
    clock, profile = StageClock(), options.profile

    with clock.stage("read"):
        progress("reading")
        data, name = _load(source)
        model = read_model(data)
        check_model(model)
        memory_layout(model, profile, options.pins)  # a wrong pin is refused before any search
        original = facts_of(model, name, len(data), profile)

    for attempt in _with_less(options):
        shaped = _shape(read_model(data), profile, attempt, original.libraries, clock, progress)
        if shaped.is_no_worse:
            break

    with clock.stage("arrange"):
        model, placement = shaped.model, shaped.arrangement.placement
        arenas = arena_by_kernels(model, options) | {profile.name: placement.memory.arena_bytes}
        model.main.reorder(placement.order)
        check_model(model)

    with clock.stage("write"):
        offline_plan.attach(model, placement.offsets)
        plan_label.attach(model, label_of(profile, placement))
        written = write_model(model)

    with clock.stage("prove"):
        exactness = loosest(use.exactness for use in shaped.rewritten.uses)
        proof = prove(Subject(data, shaped.unplanned, written, exactness), options, progress)

    stages = shaped.rewritten, shaped.cascaded
    uses, refused = ([each for stage in stages for each in getattr(stage, kind)] for kind in ("uses", "refused"))
    outcome = RunOutcome(shaped.arrangement, len(written), tuple(uses), tuple(refused), proof, arenas, clock.seconds())
    return Result(written, build_report(original, model, outcome, profile, options))


@dataclass(frozen=True)
class _Shaped:
    """What the stages that change the graph and place its tensors made of the model.

    ``unplanned`` is the rewritten model as a file, before stripes. ``is_no_worse``: no library of the profile needs
    more than for the original.
    """

    model: Model
    unplanned: bytes
    rewritten: Rewritten
    cascaded: Cascaded
    arrangement: Arrangement
    is_no_worse: bool


def _shape(
    model: Model,
    profile: KernelProfile,
    options: Options,
    before: Mapping[str, LibraryNeed],
    clock: StageClock,
    progress: Progress,
) -> _Shaped:
    """Rewrite, cascade and arrange; ``before`` is what each library needs for the original."""
    with clock.stage("rewrite"):
        rewritten = rewrite(model, profile, options, progress)
        offline_plan.detach(rewritten.model)
        plan_label.detach(rewritten.model)
        unplanned = write_model(rewritten.model)

    with clock.stage("cascade"):
        cascaded = cascade(rewritten.model, profile, options, progress)
        model = cascaded.model
        check_model(model)

    with clock.stage("arrange"):
        progress(f"ordering {len(model.main.operators)} operators, placing {len(model.main.tensors)} tensors")
        arrangement = arrange(model, profile, options)
        placement = placement_for_every_library(model, arrangement, before, profile, options)
        if placement is not None:
            arrangement = replace(arrangement, placement=placement)
    return _Shaped(model, unplanned, rewritten, cascaded, arrangement, placement is not None)


def _with_less(options: Options) -> Iterator[Options]:
    """The options, then without stripes, then without rewriting either: what an attempt that some library pays for may
    leave out."""
    yield options
    if options.cascade:
        yield replace(options, cascade=False)
    if options.rewrite:
        yield replace(options, cascade=False, rewrite=False)


def analyze(source: Source, kernels: str = DEFAULT_KERNELS, target: str | None = None) -> Analysis:
    """The memory of a model as it stands, its plan in force if it has one. Raises as :func:`optimize`."""
    profile = profile_for(target, kernels)
    data, name = _load(source)
    model = read_model(data)
    check_model(model)
    return build_analysis(model, name, len(data), profile)


def verify(
    first: Source, second: Source, options: Options = Options(), progress: Progress = lambda _: None
) -> dict[str, Verdict]:
    """Compare two models runtime by runtime; see :func:`tflite_memopt.equivalence.proof.verify`."""
    return prove_equal(_load(first)[0], _load(second)[0], options, progress)


def compare(
    source: Source,
    schedulers: Sequence[str] = ("all",),
    planners: Sequence[str] = ("all",),
    options: Options = Options(),
    progress: Progress = lambda _: None,
) -> Comparison:
    """The named methods side by side, or all of them; see :func:`tflite_memopt.report.comparison.compare_methods`."""
    data, name = _load(source)
    return compare_methods(read_model(data), name, schedulers, planners, options, progress)


def _load(source: Source) -> tuple[bytes, str | None]:
    if isinstance(source, bytes):
        return source, None
    return read_file(source), Path(source).name
