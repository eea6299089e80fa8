"""The whole run, top to bottom: read, rewrite, cascade, arrange, write, prove, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .cascade.search import cascade
from .equivalence.failure import FailedProofError, Subject, save_failure
from .equivalence.original import Original
from .equivalence.proof import inspect, prove
from .equivalence.proof import verify as prove_equal
from .equivalence.verdict import Verdict
from .io import offline_plan
from .io.files import read_file
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import loosest
from .ir.check import check_model
from .ir.origin import pieces_in
from .kernels.profiles import profile_named
from .memory.arrange import arena_by_kernels, arrange
from .memory.layout import memory_layout
from .options import Options, as_it_stands, without_one_step_after_another
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

    A step whose result fails its proof is left out: stripes first, then rewrites, then order and plan; the report's
    warnings say so. Raises a MemoptError: ModelFormatError or UnsupportedModelError for a bad model, EquivalenceError
    when nothing that is left is equal or nothing can run it, UsageError for a wrong path.
    """
    run = _Attempts(options, progress, *_load(source))
    with run.clock.stage("inspect"):
        looked_at = inspect(run.data, options, progress)
    dropped: list[str] = []
    for step, fewer in without_one_step_after_another(options):
        try:
            result = run.attempt(fewer, looked_at)
        except FailedProofError as failure:
            if options.keep_failures is not None:
                save_failure(options.keep_failures, step, failure, looked_at)
            dropped.append(
                f"the result with {step} failed its proof, please report this model; it was made again without: {failure}"
            )
            progress(dropped[-1])
            last = failure
            continue
        warnings = (*dropped, *run.interruptions, *result.report.warnings)
        return replace(result, report=replace(result.report, warnings=warnings))
    raise last


class _Attempts:
    """One model on its way through the stages; each attempt begins with the model as it was read."""

    def __init__(self, options: Options, progress: Progress, data: bytes, name: str | None) -> None:
        self.data, self._progress = data, progress
        self.clock, self._profile = StageClock(), profile_named(options.kernels)
        self.interruptions: list[str] = []
        with self.clock.stage("read"):
            progress("reading")
            model = read_model(data)
            check_model(model)
            memory_layout(model, self._profile, options.pins)  # a wrong pin is refused before any search
            self._original = facts_of(model, name, len(data), self._profile)

    def attempt(self, options: Options, looked_at: Original | None) -> Result:
        """All stages. Raises FailedProofError when the result is not equal to the original."""
        clock, progress, profile = self.clock, self._progress, self._profile

        with clock.stage("rewrite"), self._interruptible(options, "rewriting") as kept:
            rewritten = rewrite(read_model(self.data), profile, options, progress)
        if kept:
            options = as_it_stands(options)
            rewritten = rewrite(read_model(self.data), profile, options, progress)
        offline_plan.detach(rewritten.model)
        unplanned = write_model(rewritten.model)

        with clock.stage("cascade"), self._interruptible(options, "the search for stripes") as kept:
            cascaded = cascade(rewritten.model, profile, options, progress)
        if kept:
            options = as_it_stands(options)
            cascaded = cascade(rewritten.model, profile, options, progress)
        model = cascaded.model
        check_model(model)

        with clock.stage("arrange"), self._interruptible(options, "ordering and planning") as kept:
            progress(f"ordering {len(model.main.operators)} operators, placing {len(model.main.tensors)} tensors")
            arrangement = arrange(model, profile, options)
        if kept:
            options = as_it_stands(options)
            arrangement = arrange(model, profile, options)
        memory = arrangement.placement.memory
        arenas = arena_by_kernels(model, options) | {profile.name: memory.arena_bytes}
        model.main.reorder(arrangement.placement.order)
        check_model(model)

        with clock.stage("write"):
            offline_plan.attach(model, arrangement.placement.offsets)
            written = write_model(model)

        with clock.stage("prove"):
            subject = Subject(
                self.data,
                unplanned,
                written,
                loosest(use.exactness for use in rewritten.uses),
                pieces_in(model.main),
                tuple(name for use in rewritten.uses if use.exactness == "approximates" for name in use.operators),
                # The wheel has the reference kernels: it says nothing of the scratch of others.
                required_bytes=memory.required_bytes["64"] if profile.in_wheel and memory.required_is_exact else None,
                head=memory.arena_bytes if profile.in_wheel else None,
            )
            proof = prove(subject, options, progress, looked_at)

        uses, refused = (*rewritten.uses, *cascaded.uses), (*rewritten.refused, *cascaded.refused)
        outcome = RunOutcome(arrangement, len(written), uses, refused, proof, arenas, clock.seconds())
        return Result(written, build_report(self._original, model, outcome, profile, options))

    @contextmanager
    def _interruptible(self, options: Options, what: str) -> Iterator[list[str]]:
        """Gives a list that is empty, unless the first Ctrl-C of a run that keeps its best came here."""
        said: list[str] = []
        try:
            yield said
        except KeyboardInterrupt:
            if not options.keep_best or self.interruptions:
                raise
            said.append(f"interrupted in {what}: what was complete before it was finished in a hurry")
            self.interruptions += said
            self._progress(f"interrupted in {what}: finishing what there is; interrupt once more to stop at once")


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
