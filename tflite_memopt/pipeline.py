"""The whole run, top to bottom: load, measure the original; transform, write, prove and verify each attempt; report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .equivalence.baseline import Baseline
from .equivalence.inputs import MOST_SAMPLES
from .equivalence.runner import Interpreters
from .equivalence.subject import FailedVerificationError
from .equivalence.verification import Verification, infer_shapes, inspect, open_for, verify_result
from .errors import EquivalenceError, InfeasibleError, UnsupportedModelError
from .graph.limits import StageClock
from .io.files import Source, check_target, load, write_files
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import Decision, without_faults
from .ir.check import is_fixed_by_npu
from .ir.copying import copy_model
from .ir.model import Model
from .kernels.faults import faults_in, new_faults
from .kernels.since import has_operators, needed_since
from .kernels.support import TflmSupport, said_of, support_of
from .memory.arrange import Declined
from .memory.figures import operator_kinds
from .memory.file import attach_plan, places_in_force, read_planned
from .memory.problems import with_ties
from .memory.reserve import LibraryNeed, needs_by_library
from .options import LAST_STEP, Options, fallbacks
from .proof import Proof, Status, prove, prove_plan
from .report.build import ModelFacts, RunOutcome, build_report, facts_of
from .report.model import Report
from .report.options_used import shaping_options
from .report.warnings import FailedStep, of_failure
from .rewrite.loadable import Mended, mended
from .stepping import NOT_EQUAL, InSteps, in_hops, in_steps
from .transform import Cache, Candidate, Progress, RunContext, subject_of, worthy_candidate

_REFUTED = {
    "result": "not equal",
    "stripes": "stripes or order change values of the rewritten graph",
    "plan": "the memory plan is wrong",
    "step": NOT_EQUAL,
}


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
        check_target(target, (), force)
        write_files({target: self.model})


def optimize(
    source: Source,
    options: Options = Options(),
    progress: Progress = lambda _: None,
    cache: Cache | None = None,
) -> Result:
    """Optimize a .tflite given as bytes or as a path.

    Actions of a decision that make the result fail its proof or a run are left out, and otherwise stripes, then
    rewrites; these also where a library needs more. The report's warnings say what failed. ``cache``: for runs under
    several limits.
    Raises a MemoptError: ModelFormatError or UnsupportedModelError for a bad model, EquivalenceError
    when nothing that is left is equal or nothing can run it, UsageError for a wrong path.
    """
    clock, asked = StageClock(), options
    with clock.stage("read"):
        progress("reading")
        given = _given(source, options, progress)
        data, model, found, steps, facts = given.data, given.model, given.found, given.steps, given.facts
        if steps is not None:
            options = replace(options, ties=steps.ties, slide=steps.said, inputs=None)
        if options.ties:  # the result of a loop is there from its first iteration on, when inputs are still read
            options = replace(options, loops=False)

    with open_for(options) if options.verify else nullcontext() as running:
        with clock.stage("inspect"):
            baseline = inspect(data, options, progress, running)
            shapes = infer_shapes(data, options, progress) if baseline is None else baseline.shaped
            is_right = not shapes.wrong if baseline is None else baseline.runs_right_on_tflm
            if shapes.wrong:
                model = read_planned(shapes.data)
                facts = facts_of(shapes.model, given.name, given.original, options)

        profile = options.profile
        # What is mended may need more than what was wrong.
        is_faulty = not profile.libraries and bool(faults_in(model, profile))
        before = given.libraries if is_right and not is_faulty else None
        known = {} if cache is None else cache
        run = RunContext(shapes.data, model, profile, before, clock, progress, known)
        check = partial(_checked, run, baseline, running, steps, asked.inputs)
        candidate, declined, done, failed = _first_right(run, options, check)

    outcome = RunOutcome(
        arrangement=candidate.arrangement,
        written=done.written,
        inferred=shapes.names,
        rewrites=(
            *(use for each in (found, steps) if each is not None for use in each.uses),
            *candidate.rewritten.uses,
            *candidate.cascaded.uses,
        ),
        refused=(*candidate.rewritten.refused, *candidate.cascaded.refused),
        verification=done.verification,
        seconds=clock.seconds(),
        decision=str(candidate.decision),
        least_in_stripes=candidate.cascaded.least,
        failed=tuple(failed),
        metadata_left_out=done.metadata_left_out,
        proofs=done.proofs,
        declined=declined,
        mended=None if found is None else found.before,
        calls=1 if steps is None or steps.slide is not None else steps.calls,
        slide=None if steps is None else steps.slide,
    )
    report = build_report(facts, candidate.model, outcome, options)
    if not is_fixed_by_npu(candidate.model):
        _check_runs(report.tflm, options)
    return Result(done.written, report)


@dataclass(frozen=True)
class _Checked:
    """The file of a candidate, proved and verified, and the names of the metadata that it lost."""

    written: bytes
    metadata_left_out: tuple[str, ...]
    proofs: dict[str, Proof]
    verification: Verification


_Check = Callable[[Candidate, Options], _Checked]


def _first_right(
    run: RunContext, options: Options, check: _Check
) -> tuple[Candidate, Declined | None, _Checked, list[FailedStep]]:
    """Return the best candidate that is proved and verified, and what had to be left out.

    Of a candidate that fails, the actions of its decision that make it fail; where it fails without any, a whole step.
    Raises FailedVerificationError where nothing is left.
    """
    failed, steps = list[FailedStep](), fallbacks(options)
    while True:
        step, attempt = steps.pop(0)
        candidate, declined = worthy_candidate(run, attempt)
        if not candidate.is_no_worse and step != LAST_STEP:
            continue
        try:
            return candidate, declined, check(candidate, attempt), failed
        except FailedVerificationError as failure:
            if step == LAST_STEP:
                raise
            kept = without_faults(candidate.decision, partial(_fails, run, attempt, check))
            for left_out in (step,) if kept is None else kept[1]:
                failed.append(FailedStep(left_out, str(failure)))
                run.progress(of_failure(failed[-1]))
            if kept is not None:
                steps.insert(0, (step, replace(attempt, replay=str(kept[0]))))


def _checked(
    run: RunContext,
    baseline: Baseline | None,
    running: Interpreters | None,
    steps: InSteps | None,
    inputs: str | os.PathLike[str] | None,
    candidate: Candidate,
    options: Options,
) -> _Checked:
    """Write a candidate, prove it, and run it; ``inputs`` are sequences of a model in ``steps``.

    Raises FailedVerificationError where it is not equal.
    """
    with run.clock.stage("write"):
        metadata_left_out = attach_plan(
            candidate.model,
            run.profile,
            candidate.placement,
            run.original,
            candidate.decision,
            shaping_options(options),
            options.device,
        )
        written = write_model(candidate.model)
        _check_kernels(run, read_model(written))
        _check_interface(run.original, candidate.model)
    with run.clock.stage("prove"):
        proofs = _proofs(run, candidate, written, options, steps)
    with run.clock.stage("verify"):
        is_exact = "approximates" not in (candidate.exactness, None if steps is None else steps.exactness)
        is_proved = is_exact and all(each.proved for each in proofs.values())
        checked = options if is_proved else replace(options, samples=max(MOST_SAMPLES, options.samples or 0))
        subject = subject_of(run, candidate, written)
        verification = verify_result(subject, checked, run.progress, baseline if is_proved else None, running)
        if steps is not None and options.verify:
            checked = replace(checked, inputs=inputs)
            verification = steps.verified(verification, written, proofs, checked, run.progress, running)
    return _Checked(written, metadata_left_out, proofs, verification)


def _check_kernels(run: RunContext, result: Model) -> None:
    """Raise FailedVerificationError where an operator of the written file meets a fault that the original does not."""
    found = new_faults(result, run.original, run.profile)
    if found:
        raise FailedVerificationError(f"a kernel library computes the result wrongly: {found[0]}")


def _check_interface(original: Model, result: Model) -> None:
    """Raise FailedVerificationError where an input or output has another shape than before, proved or not."""
    for old, new in ((original.main.inputs, result.main.inputs), (original.main.outputs, result.main.outputs)):
        if [tensor.shape for tensor in old] != [tensor.shape for tensor in new]:
            raise FailedVerificationError("an input or output of the result has another shape")


def _fails(run: RunContext, options: Options, check: _Check, decision: Decision) -> bool:
    """Return whether a decision leads to a wrong result, or to none within the limits."""
    options = replace(options, replay=str(decision))
    try:
        check(worthy_candidate(run, options)[0], options)
    except (FailedVerificationError, InfeasibleError):
        return True
    return False


class _Given(NamedTuple):
    """The start of a run: ``model``, in the file ``data``, is the original as TFLM can load it, or a step of it.

    ``facts`` are those of the original, ``libraries`` what each needs for ``model``.
    """

    name: str | None
    original: bytes
    data: bytes
    model: Model
    found: Mended | None
    steps: InSteps | None
    facts: ModelFacts
    libraries: Mapping[str, LibraryNeed]


def _given(source: Source, options: Options, progress: Progress) -> _Given:
    """Load a model. Raises as :func:`optimize`."""
    original, name = load(source)
    data, model = original, read_planned(original, name)
    is_called = options.step or options.slide is not None
    if options.ties and not is_called:
        with_ties(copy_model(model), options.ties, options.profile)  # a wrong tie is refused before any search
    found = loadable(data, model, options, progress)
    if found is not None:
        data = write_model(found.model)
        model = read_planned(data)
    facts = facts_of(model, name, original, options)
    if not is_called:
        return _Given(name, original, data, model, found, None, facts, facts.libraries)
    steps = in_steps(data, model, options) if options.step else in_hops(data, model, options, progress)
    if steps.whole is not data:  # its shapes were wrong in the file
        facts = facts_of(read_planned(steps.whole), name, original, options)
    model = read_planned(steps.data)
    libraries = needs_by_library(model, {}, options.profile)
    return _Given(name, original, steps.data, model, found, steps, facts, libraries)


def loadable(data: bytes, model: Model, options: Options, progress: Progress) -> Mended | None:
    """The model of a file as TFLM can load it, proved equal; None where it can as it is.

    Raises UnsupportedModelError for what no rewrite makes TFLM run, EquivalenceError for a rewrite that is not proved.
    """
    if is_fixed_by_npu(model):
        return None
    found = mended(model)
    _check_runs(support_of(model) if found is None else found.after, options)
    if found is None:
        return None
    new = operator_kinds(found.model) - operator_kinds(model)
    if not has_operators(new, options.build):
        raise UnsupportedModelError(
            f"{said_of(found.before)}; the rewrite that fixes it needs TFLM of {needed_since(new)} or later, and "
            f"--tflm is {options.tflm}"
        )
    progress("rewriting what TFLM cannot load")
    shapes = infer_shapes(data, options, progress)
    if shapes.wrong:
        found = mended(read_model(shapes.data)) or found
    proof = prove(read_model(shapes.data), read_model(write_model(found.model)))
    if not proof.proved:
        raise EquivalenceError(f"{said_of(found.before)}; the rewrite that fixes it is not proved: {proof}")
    return found


def _check_runs(support: TflmSupport, options: Options) -> None:
    """Raise UnsupportedModelError for a model that TFLM cannot run; the user's own TFLM may have more kernels.

    Old versions of TFLM have kernels for uint8: LiteRT verifies such a model, and the answer says so first. Sizes that
    are computed in a loop make any TFLM hang, or compute other values than LiteRT.
    Source: tensorflow/tflite-micro issue 3674, open in November 2026.
    """
    kinds = {obstacle.kind for obstacle in support.reasons}
    is_elsewhere = kinds == {"uint8"} or (options.runner is not None and "computed_size" not in kinds)
    if not support.runs and not is_elsewhere:
        raise UnsupportedModelError(said_of(support))


def _proofs(
    run: RunContext, candidate: Candidate, written: bytes, options: Options, steps: InSteps | None
) -> dict[str, Proof]:
    """Prove the result equal for all inputs, and its plan sound for all of them, from the files.

    Equal to the original: bit by bit, or as real polynomials where float sums are taken in another order. A rewritten
    graph that is not the original's to the bit is one that nothing after the rewrites may change. Raises
    FailedVerificationError for a result or a plan that is followed to the end and is another one.
    """
    if not options.verify:
        return {}
    run.progress("proving the result equal for all inputs")
    result, planned = read_model(written), read_planned(written)
    proofs = {}
    if candidate.exactness != "approximates":
        proofs["result"] = prove(read_model(run.data), result, converts=options.io == "int8")
    if candidate.exactness != "exact":
        proofs["stripes"] = prove(read_model(candidate.unplanned), result)
    proofs["plan"] = prove_plan(planned, places_in_force(planned, options.profile))
    proofs |= {} if steps is None else steps.proof_of(result)
    may_reassociate = {"result", "step"} if candidate.exactness == "reassociates" else {"step"}
    for name, proof in proofs.items():
        is_off = proof.status is Status.REASSOCIATED and name not in may_reassociate
        if proof.status is Status.DIFFERENT or is_off:
            raise FailedVerificationError(f"{_REFUTED[name]}: {proof}")
    return proofs
