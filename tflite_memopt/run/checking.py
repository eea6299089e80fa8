"""Write, prove and verify candidates, and take the best one that is right."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from ..errors import InfeasibleError
from ..evidence.equivalence.baseline import Baseline
from ..evidence.equivalence.inputs import MOST_SAMPLES
from ..evidence.equivalence.runner import Interpreters
from ..evidence.equivalence.subject import FailedVerificationError, Promise, Subject
from ..evidence.equivalence.verification import Verified, verify_result
from ..evidence.proof import Proof, Status, prove, prove_plan
from ..kernels.faults import new_faults
from ..memory.arrange import Declined
from ..memory.file import attach_plan, places_in_force, read_planned
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from ..model.ir.change import CHANNELS_LAST, Decision, without_faults
from ..model.ir.model import Model
from ..model.ir.tensors import with_channels_last
from ..options import Options, SearchOptions, labeled_options
from ..report.warnings import of_decision, of_failure
from .attempts import LAST_RUNG, rungs, worthy_candidate
from .candidate import Candidate, RunContext
from .streamed import NOT_EQUAL, InCalls

_REFUTED = {
    "result": "not equal",
    "stripes": "stripes or order change values of the rewritten graph",
    "plan": "the memory plan is wrong",
    "step": NOT_EQUAL,
}


@dataclass(frozen=True)
class Checked:
    """The file of a candidate, proved and verified, and the names of the metadata that it lost."""

    written: bytes
    metadata_left_out: tuple[str, ...]
    proofs: dict[str, Proof]
    verification: Verified


@dataclass(frozen=True)
class Check:
    """All that candidates of a run are checked against.

    ``options``: of the run, without the user's ``inputs``, which are sequences where the model is one of ``steps``.
    ``baseline``: the original on its runtimes, None where nothing runs; ``running``: their processes.
    """

    run: RunContext
    options: Options
    baseline: Baseline | None
    running: Interpreters | None
    steps: InCalls | None
    inputs: str | os.PathLike[str] | None

    def __call__(self, candidate: Candidate) -> Checked:
        """Write a candidate, prove it, and run it. Raises FailedVerificationError where it is not equal."""
        run, options, turned = self.run, self.options, turned_in(candidate)
        with run.clock.stage("write"):
            labeled = labeled_options(options) | ({CHANNELS_LAST: turned} if turned else {})
            made = candidate.model, run.profile, candidate.placement, run.original, candidate.decision
            metadata_left_out = attach_plan(*made, labeled, options.device)
            written = write_model(candidate.model)
            _check_kernels(run, read_model(written))
            _check_interface(run.original, candidate.model, turned)
        with run.clock.stage("prove"):
            proofs = self._proofs(candidate, written)
        with run.clock.stage("verify"):
            verification = self._verified(candidate, written, proofs)
        return Checked(written, metadata_left_out, proofs, verification)

    def _proofs(self, candidate: Candidate, written: bytes) -> dict[str, Proof]:
        """Prove the result equal for all inputs, and its plan sound for all of them, from the files.

        Equal to the original: bit by bit, or as real polynomials where float sums are taken in another order. A
        rewritten graph that is not the original's to the bit is one that nothing after the rewrites may change. Raises
        FailedVerificationError for a result or a plan that is followed to the end and is another one.
        """
        if not self.options.verify:
            return {}
        self.run.progress("proving the result equal for all inputs")
        result, planned = read_model(written), read_planned(written)
        proofs = {}
        if candidate.exactness != "approximates":
            converts, turns = self.options.io == "int8", bool(self.options.channels_last)
            proofs["result"] = prove(read_model(self.run.data), result, converts=converts, turns=turns)
        if candidate.exactness != "exact":
            proofs["stripes"] = prove(read_model(candidate.unplanned), result)
        proofs["plan"] = prove_plan(planned, places_in_force(planned, self.run.profile))
        proofs |= {} if self.steps is None else self.steps.proof_of(result)
        may_reassociate = {"result", "step"} if candidate.exactness == "reassociates" else {"step"}
        for name, proof in proofs.items():
            is_off = proof.status is Status.REASSOCIATED and name not in may_reassociate
            if proof.status is Status.DIFFERENT or is_off:
                raise FailedVerificationError(f"{_REFUTED[name]}: {proof}", proof=name)
        return proofs

    def _verified(self, candidate: Candidate, written: bytes, proofs: dict[str, Proof]) -> Verified:
        steps, options, progress = self.steps, self.options, self.run.progress
        is_exact = "approximates" not in (candidate.exactness, None if steps is None else steps.exactness)
        is_proved = is_exact and all(each.proved for each in proofs.values())
        if not is_proved:
            options = replace(options, samples=max(MOST_SAMPLES, options.samples or 0))
        subject, baseline = _subject_of(self.run, candidate, written), self.baseline if is_proved else None
        verification = verify_result(subject, options, progress, baseline, self.running)
        if steps is None or not options.verify:
            return verification
        options = replace(options, inputs=self.inputs)
        return steps.verified(verification, written, proofs, options, progress, self.running)


def first_right(check: Check) -> tuple[Candidate, Declined | None, Checked, list[str]]:
    """Return the best candidate that is proved and verified, and warnings of what had to be left out.

    Of a candidate that fails, the actions of its decision that make it fail; where it fails without any, a whole rung.
    Raises FailedVerificationError where nothing is left.
    """
    run, left_out, ladder = check.run, list[str](), rungs(check.options.search)
    while True:
        rung, limits = ladder.pop(0)
        candidate, declined = worthy_candidate(run, limits)
        if not candidate.is_no_worse and rung != LAST_RUNG:
            left_out += [] if limits.decision is None else [of_decision(rung)]
            continue
        try:
            return candidate, declined, check(candidate), left_out
        except FailedVerificationError as failure:
            if rung == LAST_RUNG:
                raise
            kept = without_faults(candidate.decision, partial(_fails, check, limits))
            for step in (rung,) if kept is None else kept[1]:
                left_out.append(of_failure(step, str(failure)))
                run.progress(left_out[-1])
            if kept is not None:
                ladder.insert(0, (rung, replace(limits, replay=str(kept[0]))))


def _fails(check: Check, limits: SearchOptions, decision: Decision) -> bool:
    """Return whether a decision leads to a wrong result, or to none within the limits."""
    try:
        check(worthy_candidate(check.run, replace(limits, replay=str(decision)))[0])
    except (FailedVerificationError, InfeasibleError):
        return True
    return False


def _check_kernels(run: RunContext, result: Model) -> None:
    """Raise FailedVerificationError where an operator of the written file meets a fault that the original does not."""
    faults = new_faults(result, run.original, run.profile)
    if faults:
        raise FailedVerificationError(f"a kernel library computes the result wrongly: {faults[0]}")


def turned_in(candidate: Candidate) -> list[str]:
    """Return the names of inputs and outputs that have their channels last now."""
    return [name for use in candidate.rewritten.uses if use.rule == CHANNELS_LAST for name in use.operators]


def _check_interface(original: Model, result: Model, turned: Collection[str]) -> None:
    """Raise FailedVerificationError where an input or output has another shape than before, proved or not."""
    for old, new in ((original.main.inputs, result.main.inputs), (original.main.outputs, result.main.outputs)):
        wanted = [with_channels_last(each.shape) if each.name in turned else each.shape for each in old]
        if wanted != [tensor.shape for tensor in new]:
            raise FailedVerificationError("an input or output of the result has another shape")


def _subject_of(run: RunContext, candidate: Candidate, written: bytes) -> Subject:
    """The file of a candidate, to be verified."""
    profile, memory = run.profile, candidate.placement.memory

    def promise(layout: str) -> Promise:
        required = memory.required_bytes[layout] if memory.required_is_exact else None
        return Promise(required, memory.arena_bytes)

    return Subject(
        run.data,
        written,
        candidate.exactness,
        # The wheel has the reference kernels: it says nothing of the scratch of others. A runner may have any of
        # several libraries, each of which asks for scratch of its own.
        promises=({"tflm": promise("64")} if profile.in_wheel else {})
        | ({"runner": promise("target")} if profile.target and not profile.libraries else {}),
        ties=candidate.model.ties,
    )
