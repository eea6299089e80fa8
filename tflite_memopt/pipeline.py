"""The whole run, top to bottom: read, rewrite, cascade, arrange, write, prove, report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from .analysis.placeholders import cleared_inputs
from .cascade.measure import Measured
from .cascade.search import cascade
from .cascade.wider import wider_limits
from .equivalence.failure import NO_PROMISE, FailedProofError, Promise, Subject, save_failure
from .equivalence.proof import Proof, infer_shapes, inspect, open_for, prove
from .equivalence.proof import verify as prove_equal
from .equivalence.verdict import Verdict
from .graph.rare_collections import rare_collections
from .io import offline_plan, plan_label
from .io.files import check_target, load, write_files
from .io.writer import write_model
from .ir.change import INFERRED_SHAPES, RewriteUse, loosest
from .ir.copying import copy_model
from .ir.model import Model
from .ir.npu import NPU_HAS_ADDRESSES, has_npu
from .ir.origin import pieces_in, pieces_in_loops
from .kernels.targets import profile_for
from .memory.cost import cost_in
from .memory.figures import MemoryUse, WiderLimits
from .memory.label import attach_plan
from .memory.layout import memory_layout
from .memory.libraries import LibraryNeed
from .memory.reading import read_planned
from .memory.schedule_problem import schedule_problem
from .options import Options, without_one_step_after_another
from .report.build import RunOutcome, build_analysis, build_report, facts_of
from .report.interruption import Interruption
from .report.model import Analysis, Comparison, Report
from .report.stage_clock import StageClock
from .report.warnings import of_cleared
from .rewrite.sequences_along_h import sequences_along_h
from .rewrite.stage import rewrite
from .shaping import Answers, Progress, Setting, Shaped, Stages, best_within

Source = bytes | str | os.PathLike[str]


@dataclass(frozen=True)
class Result:
    """``model`` is the optimised .tflite, proved equal unless the proof was switched off."""

    model: bytes
    report: Report

    def __repr__(self) -> str:
        return f"<Result: a model of {len(self.model):,} bytes; {self.report.summary.headline}>"

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the model, whole or not at all.

        Raises UsageError where there is a file already, unless ``force``, or no folder for it; OutputError when it
        cannot be written.
        """
        target = Path(path)
        check_target(target, (), force)
        write_files({target: self.model})


@rare_collections()
def optimize(
    source: Source,
    options: Options = Options(),
    progress: Progress = lambda _: None,
    stages: Stages | None = None,
    known: Answers | None = None,
) -> Result:
    """Optimise a .tflite given as bytes or as a path; ``stages``: None for the searches of this package.

    ``known``: for several runs of one model. What one of them has found is not searched for anew by another one.

    What makes a library need more, and what fails its proof, is left out: stripes first, then rewrites, then order and
    plan; the report's warnings say what failed. Raises a MemoptError: ModelFormatError or UnsupportedModelError for a
    bad model, EquivalenceError when nothing that is left is equal or nothing can run it, UsageError for a wrong path.
    """
    clock, profile, options = StageClock(), options.profile, options.started()

    with clock.stage("read"):
        progress("reading")
        data, name = load(source)
        model = read_planned(data, name)
        memory_layout(model, profile, options.pins)  # a wrong pin is refused before any search
        original = facts_of(model, name, data, profile)

    measured, interruption = Measured(), Interruption(options.keep_best, progress)
    stages = stages or Stages(rewrite, partial(cascade, measured=measured, other_form=sequences_along_h), True)
    answers = Answers() if known is None else known
    run = Setting(data, profile, stages, clock, progress, interruption, None, [], answers, measured)
    with open_for(options, model) if options.verify else nullcontext() as running:
        with clock.stage("inspect"):
            looked_at = inspect(data, options, progress, running)
            shaped_file = infer_shapes(data, options, progress) if looked_at is None else looked_at.shaped
            if shaped_file.wrong:
                original = facts_of(shaped_file.model, name, data, profile)

        is_right = not shaped_file.wrong if looked_at is None else looked_at.runs_right_on_tflm
        before = original.libraries if is_right else None
        run = replace(run, data=shaped_file.data, looked_at=looked_at, running=running)
        shaped, written, proof = _best_proved(run, options, before)

    inferred = (RewriteUse(INFERRED_SHAPES, shaped_file.names, "exact", 0),) if shaped_file.wrong else ()
    uses = (*inferred, *shaped.rewritten.uses, *shaped.cascaded.uses)
    refused = (*shaped.rewritten.refused, *shaped.cascaded.refused)
    # Runs of one model under many limits say by themselves what each limit brings.
    is_asked = (
        known is None and options.decision is None and shaped.cascaded.least is not None and not interruption.said
    )
    wider = _wider(run, options, shaped, original.memory.instructions) if is_asked else None

    bound = shaped.cascaded.least
    outcome = RunOutcome(
        shaped.arrangement,
        written,
        uses,
        refused,
        proof,
        shaped.arenas,
        clock.seconds(),
        str(shaped.decision),
        bound,
        wider,
    )
    report = build_report(original, shaped.model, outcome, profile, options)
    npu = () if not has_npu(model) else (_npu_note(options),)
    cleared = cleared_inputs(shaped.model, shaped.arrangement.placement.offsets)
    notes = (*run.notes, *npu, *_open_sides(model), *of_cleared([tensor.name for tensor in cleared]))
    return Result(written, replace(report, warnings=(*notes, *report.warnings)))


def _wider(run: Setting, options: Options, shaped: Shaped, before: Mapping[str, int]) -> WiderLimits | None:
    """What wider limits would bring, as far as there is time; nothing after Ctrl-C, since the result is proved.

    ``before``: estimated instructions of the model as it came, by the kernel library.
    """
    if options.seconds_left <= 0:
        return None
    known, model = cost_in(shaped.arrangement.placement.memory, options), copy_model(shaped.rewritten.model)
    search = partial(wider_limits, model, run.profile, options, known, before, run.measured)
    with run.clock.stage("cascade"):
        wider = run.interruption.beside("the search for what wider limits bring", search)
    run.notes[:0] = run.interruption.said
    return wider


def _open_sides(model: Model) -> Iterator[str]:
    """What is said of inputs whose size beyond the batch the file leaves open: it is planned with 1."""
    for tensor in model.main.inputs:
        said = tensor.extras.get("shapeSignature")
        sides = [] if said is None else [axis for axis, size in enumerate(said) if axis and size < 0]
        if sides:
            yield (
                f"'{tensor.name}' has no size along {', '.join(map(str, sides))} in the file: planned for the shape "
                f"{list(tensor.shape)}; give the network's input its size (keras.Input) and convert again"
            )


def _npu_note(options: Options) -> str:
    """What is said of a file of which an NPU runs a part."""
    unproved = "" if options.verify else "; nothing is proved, since it runs on the chip alone: try it there"
    return f"{NPU_HAS_ADDRESSES}: both stay, and what the NPU touches stays where its compiler put it{unproved}"


def _best_proved(
    run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None
) -> tuple[Shaped, bytes, Proof]:
    """The first result that is proved equal and makes no library need more, with one step after another left out.

    ``before`` is what each library needs for the original, None if it runs wrongly.
    """
    dropped: list[str] = []
    attempts = without_one_step_after_another(options)
    for number, (step, attempt) in enumerate(attempts, 1):
        shaped = best_within(run, attempt, before, None)
        if not shaped.is_no_worse and (attempt.cascade or attempt.rewrite):
            continue
        try:
            written, proof = _prove(run, shaped, attempt)
        except FailedProofError as failure:
            if number == len(attempts):
                raise
            if options.keep_failures is not None:
                save_failure(options.keep_failures, step, failure, run.looked_at)
            dropped.append(f"{step} left out, since the result failed its proof; {_advice(attempt)}: {failure}")
            run.progress(dropped[-1])
            continue
        break
    run.notes[:] = (*dropped, *run.interruption.said, *run.notes)
    return shaped, written, proof


def _advice(options: Options) -> str:
    """What to do about a failed proof. A runner with other kernels than the plan is for has every right to differ."""
    report = "please report this model"
    if options.runner is None:
        return report
    return f"{report}, if the runner has the kernels that the plan is for ({options.profile.name})"


def _prove(run: Setting, shaped: Shaped, options: Options) -> tuple[bytes, Proof]:
    """The file, with its proof. Raises FailedProofError when it is not equal to the original."""
    profile, placement, uses = run.profile, shaped.arrangement.placement, shaped.rewritten.uses
    with run.clock.stage("write"):
        gone = attach_plan(shaped.model, profile, placement, run.original(), shaped.decision)
        run.notes[:] = [f"metadata '{name}' left out: it names operators by their old positions" for name in gone]
        written = write_model(shaped.model)

    with run.clock.stage("prove"):
        subject = Subject(
            run.data,
            shaped.unplanned,
            written,
            loosest(use.exactness for use in uses),
            pieces_in(shaped.model.main),
            tuple(name for use in uses if use.exactness == "approximates" for name in use.operators),
            # The wheel has the reference kernels: it says nothing of the scratch of others.
            promise=_promise(placement.memory, "64") if profile.in_wheel else NO_PROMISE,
            # A runner may have any of several libraries, each of which asks for scratch of its own.
            runner_promise=_promise(placement.memory, "target")
            if profile.target and not profile.libraries
            else NO_PROMISE,
            module_promise=_promise(placement.memory, "target" if profile.target else "32"),
            loop_pieces=pieces_in_loops(shaped.model),
        )
        return written, prove(subject, options, run.progress, run.looked_at, run.running)


def _promise(memory: MemoryUse, layout: str) -> Promise:
    required = memory.required_bytes[layout] if memory.required_is_exact else None
    return Promise(required, memory.arena_bytes)


def analyze(source: Source, kernels: str | None = None, target: str | None = None, sram: int | None = None) -> Analysis:
    """The memory of a model as it stands, its plan in force if it has one. Raises as :func:`optimize`.

    ``kernels``, ``target``: None for both counts for those that the file's plan was made for, as its label says.
    ``sram``: bytes of a fast memory on the chip, to study the traffic to a large one outside; None for no such study.
    """
    data, name = load(source)
    model = read_planned(data, name)
    label = plan_label.decode(model) if kernels is None and target is None and offline_plan.decode(model) else None
    if label is not None:
        target, kernels = label.target, label.kernels
    profile = profile_for(target, kernels)
    analysis = build_analysis(model, name, data, profile)
    if sram is None:
        return analysis
    from .published.sram_study import sram_study

    return replace(analysis, study=sram_study(schedule_problem(model.main, memory_layout(model, profile)), sram))


def verify(
    first: Source, second: Source, options: Options = Options(), progress: Progress = lambda _: None
) -> dict[str, Verdict]:
    """Compare two models runtime by runtime; see :func:`tflite_memopt.equivalence.proof.verify`."""
    both = [load(source) for source in (first, second)]
    for data, name in both:
        read_planned(data, name)  # what is wrong with a file is said with its name
    return prove_equal(both[0][0], both[1][0], options, progress)


def compare(
    source: Source,
    schedulers: Sequence[str] = ("all",),
    planners: Sequence[str] = ("all",),
    options: Options = Options(),
    progress: Progress = lambda _: None,
) -> Comparison:
    """The named methods side by side, or all of them.

    See :func:`tflite_memopt.published.comparison.compare_methods`.
    """
    from .published.comparison import compare_methods

    data, name = load(source)
    return compare_methods(read_planned(data, name), name, schedulers, planners, options, progress)
