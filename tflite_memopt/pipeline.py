"""The whole run, top to bottom: read, rewrite, cascade, arrange, write, prove, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cascade.search import cascade
from .equivalence.proof import Subject, prove
from .equivalence.proof import verify as prove_equal
from .equivalence.verdict import Verdict
from .io import offline_plan
from .io.files import read_file
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import loosest
from .ir.check import check_model
from .kernels.profiles import profile_named
from .memory.arrange import arena_by_kernels, arrange
from .memory.layout import memory_layout
from .options import Options
from .report.build import RunOutcome, build_analysis, build_report, facts_of
from .report.comparison import compare_methods
from .report.model import Analysis, Comparison, Report
from .report.stage_clock import StageClock
from .rewrite.stage import rewrite

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
    clock, profile = StageClock(), profile_named(options.kernels)

    with clock.stage("read"):
        progress("reading")
        data, name = _load(source)
        model = read_model(data)
        check_model(model)
        memory_layout(model, profile, options.pins)  # a wrong pin is refused before any search
        original = facts_of(model, name, len(data), profile)

    with clock.stage("rewrite"):
        rewritten = rewrite(model, profile, options, progress)
        offline_plan.detach(rewritten.model)
        unplanned = write_model(rewritten.model)

    with clock.stage("cascade"):
        cascaded = cascade(rewritten.model, profile, options, progress)
        model = cascaded.model
        check_model(model)

    with clock.stage("arrange"):
        progress(f"ordering {len(model.main.operators)} operators, placing {len(model.main.tensors)} tensors")
        arrangement = arrange(model, profile, options)
        arenas = arena_by_kernels(model, options) | {profile.name: arrangement.placement.memory.arena_bytes}
        model.main.reorder(arrangement.placement.order)
        check_model(model)

    with clock.stage("write"):
        offline_plan.attach(model, arrangement.placement.offsets)
        written = write_model(model)

    with clock.stage("prove"):
        exactness = loosest(use.exactness for use in rewritten.uses)
        proof = prove(Subject(data, unplanned, written, exactness), options, progress)

    uses, refused = (*rewritten.uses, *cascaded.uses), (*rewritten.refused, *cascaded.refused)
    outcome = RunOutcome(arrangement, len(written), uses, refused, proof, arenas, clock.seconds())
    return Result(written, build_report(original, model, outcome, profile, options))


def analyze(source: Source, kernels: str = "portable") -> Analysis:
    """The memory of a model as it stands, its plan in force if it has one. Raises as :func:`optimize`."""
    profile = profile_named(kernels)
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
