"""The whole run, top to bottom: read, run the original; make, write, prove and verify candidates; report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import EquivalenceError, ErrorKind, UsageError
from ..evidence.equivalence.subject import Subject
from ..evidence.equivalence.verification import Verified, infer_shapes, inspect, open_for, verify_result
from ..kernels.as_it_came import said_of_wrong, wrong_operators
from ..kernels.faults import faults_in
from ..memory.arrange import cost_of, estimate_of
from ..memory.facts import facts_of_result
from ..memory.file import read_planned
from ..memory.work import instructions, slowest
from ..model.io.files import Source, check_target, write_files
from ..model.ir.change import INFERRED_SHAPES, RewriteUse
from ..model.ir.check import is_fixed_by_npu
from ..model.ir.copying import copy_model, drop_dead_tensors
from ..model.ir.model import Model
from ..options import ALL_PORTS, WORTH, Options
from ..report.build import Outcome, build_report, declined_use, original_of, proof_use
from ..report.model import Advice, Report, RunFacts
from ..report.warnings import of_metadata, of_stated_arena
from ..report.words import NOT_COMPUTED, change_in_percent
from ..search.rewrite.boundary import take_channels_last, take_integers
from ..solvers.graph.limits import StageClock
from .candidate import Cache, Progress, RunContext, declined_for_faults, least_as_one
from .checking import Check, first_right, turned_in
from .given import check_runs, read_given


@dataclass(frozen=True)
class Result:
    """``model`` is the optimized .tflite, proved and verified equal unless that was switched off."""

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
        if target.is_file() and not force:
            raise UsageError(f"'{target}' exists; give another name, or force=True to replace it", ErrorKind.EXISTS)
        check_target(target, (), force)
        write_files({target: self.model})


def optimize(
    source: Source, options: Options = Options(), progress: Progress = lambda _: None, cache: Cache | None = None
) -> Result:
    """Optimize a .tflite given as bytes or as a path.

    Actions of a decision that make the result fail its proof or a run are left out, and otherwise stripes, then
    rewrites; these also where a library needs more. The report's warnings say what failed. ``cache``: for runs under
    several limits.
    Raises a MemoptError: ModelFormatError or UnsupportedModelError for a bad model, EquivalenceError
    when nothing that is left is equal or nothing can run it, UsageError for a wrong path.
    """
    clock, asked, known = StageClock(), options, Cache() if cache is None else cache
    with clock.stage("read"):
        progress("reading")
        given = read_given(source, options, progress)
        data, model, steps, original = given.data, given.model, given.steps, given.record
        if steps is not None:
            options = replace(options, ties=steps.ties, slide=steps.option, inputs=None)
        if options.ties:  # the result of a loop is there from its first iteration on, when inputs are still read
            options = replace(options, loops=False)

    with open_for(options) if options.verify else nullcontext() as running:
        with clock.stage("inspect"):
            baseline = inspect(data, options, progress, running, None if data is given.original else given.original)
            if baseline is None and data not in known.shaped:
                known.shaped[data] = infer_shapes(data, options, progress)
            shapes = known.shaped[data] if baseline is None else baseline.shaped
            is_right = not shapes.wrong if baseline is None else baseline.runs_right_on_tflm
            if shapes.wrong:
                model = read_planned(shapes.data)
                original = original_of(shapes.model, given.name, given.original, options.profile, options.verify)

        profile = options.profile
        # What is mended may need more than what was wrong.
        is_faulty = not profile.libraries and bool(faults_in(model, profile))
        before = given.libraries if is_right and not is_faulty and not given.came.wrong else None
        worth = 0.0 if options.every_byte else WORTH
        kept = known.originals.setdefault(shapes.data, model)
        run = RunContext(shapes.data, kept, profile, before, clock, progress, known, worth)
        candidate, declined, done, left_out = first_right(Check(run, options, baseline, running, steps, asked.inputs))

    verification = done.verification
    if given.reference is not None and options.verify:
        verification = _held_against(given.reference, done.written, verification, asked, progress)
    calls = 1 if steps is None or steps.slide is not None else steps.calls
    original = original.per_call(calls)
    facts = facts_of_result(candidate.model, candidate.arrangement, profile, turned_in(candidate))
    outcome = Outcome(
        model=candidate.model,
        written=done.written,
        arrangement=candidate.arrangement,
        facts=facts,
        tflm=verification.tflm,
        refusal=verification.refusal,
        seconds=clock.seconds(),
        warnings=(*left_out, *of_metadata(done.metadata_left_out), *of_stated_arena(candidate.model)),
        advice=tuple(_of_interface((candidate.model, model), facts.memory.bytes_for(options.objective), options)),
    )
    inferred = (RewriteUse(INFERRED_SHAPES, shapes.names, "exact", 0),) if shapes.names else ()
    run_facts = RunFacts(
        decision=str(candidate.decision),
        rewrites=(*inferred, *given.uses, *candidate.rewritten.uses, *candidate.cascaded.uses),
        refused=(
            *candidate.rewritten.refused,
            *candidate.cascaded.refused,
            *declined_for_faults(run, options.search, candidate),
        ),
        declined=declined_use(declined, original.facts.memory.instructions),
        least_as_one=least_as_one(run, options.search),
        least_in_stripes=candidate.cascaded.least,
        slowdown_of_mends=round(slowest(instructions(run.original, profile), run.work_limit(options.search).before), 4),
        calls=calls,
        slide=None if steps is None else steps.slide,
        proofs={name: proof_use(proof) for name, proof in done.proofs.items()},
        equivalence=verification.verdicts,
        basis=verification.basis,
        runner=verification.runner,
    )
    report = build_report(original, outcome, run_facts, given.came, options)
    if not is_fixed_by_npu(candidate.model):
        check_runs(report.tflm, options)
        if options.verify and options.runner is None:  # a runner may have a TFLM of its own
            check_values(candidate.model, options)
    return Result(done.written, report)


def _of_interface(models: Sequence[Model], need: int, options: Options) -> Iterator[Advice]:
    """Yield the advice to let the model take integers, where it then needs clearly less, or images with channels last.

    ``models``: the result, and the original, since stripes may have taken what quantizes; each is estimated as it is.
    With channels last the original is planned as it is: a search may find less.
    """
    if options.io == "keep":
        takes = [each.model for each in map(take_integers, map(copy_model, models)) if each.uses]
        for taken in takes:
            drop_dead_tensors(taken)
        least = min((estimate_of(taken, options.profile, options.search).need for taken in takes), default=need)
        if least <= (1 - WORTH) * need:
            text = (
                f"about {least:,} bytes ({change_in_percent(need, least)}); your code then makes and reads the integers"
            )
            yield Advice("--io int8", text)
    if options.channels_last or options.ties or options.step or options.slide:
        return
    turned = take_channels_last(copy_model(models[-1]), (ALL_PORTS,))
    if turned.uses:
        drop_dead_tensors(turned.model)
        most = cost_of(turned.model, options.profile, options.search).need
        figure = f"{most:,} bytes or less ({change_in_percent(need, most)});" if most < need else f"{NOT_COMPUTED}:"
        yield Advice("--io channels-last", f"{figure} your code then gives images as a camera does, pixel by pixel")


def _held_against(
    reference: bytes, written: bytes, verification: Verified, options: Options, progress: Progress
) -> Verified:
    """Return the verification with verdicts against what the original says, which runtimes do not compute of it."""
    held = verify_result(Subject(reference, written, "approximates"), options, progress)
    return replace(verification, verdicts=held.verdicts, basis=replace(verification.basis, findings=()))


def check_values(result: Model, options: Options) -> None:
    """Raise EquivalenceError for a result that every TFLM computes wrongly, as it does the original."""
    wrong = tuple(wrong_operators(result, options.profile))
    if wrong:
        raise EquivalenceError(f"TFLM computes this model otherwise: {said_of_wrong(wrong)}", ErrorKind.OTHER_KERNELS)
