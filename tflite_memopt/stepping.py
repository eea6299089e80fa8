"""Write one step of a recurrent network, and prove and verify it over sequences of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .equivalence.runner import Interpreters
from .equivalence.subject import FailedVerificationError, Subject
from .equivalence.verification import Verification, verify_steps
from .errors import EquivalenceError, UsageError
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import ONE_STEP, Exactness, RewriteUse
from .ir.model import Model
from .memory.problems import tie_positions
from .options import Options
from .proof import Proof, Status, prove_steps
from .rewrite.one_step import one_step
from .transform import Progress

NOT_EQUAL = "calls of one step do not compute what the model does"


@dataclass(frozen=True)
class InSteps:
    """The model of one step as it comes, ``data``, of the ``whole``, which computes ``calls`` steps at once."""

    whole: bytes
    data: bytes
    ties: tuple[str, ...]
    calls: int
    exactness: Exactness

    @property
    def uses(self) -> tuple[RewriteUse, ...]:
        """The rewrite by which it was made, with the states."""
        return (RewriteUse(ONE_STEP, self.ties, self.exactness, 0),)

    def proof_of(self, result: Model) -> Mapping[str, Proof]:
        """Compare a result, with its ties, with the whole; nothing for steps that approximate it."""
        if self.exactness == "approximates":
            return {}
        return {"step": prove_steps(read_model(self.whole), result, tie_positions(result, self.ties))}

    def verified(
        self,
        verification: Verification,
        written: bytes,
        proofs: Mapping[str, Proof],
        options: Options,
        progress: Progress,
        running: Interpreters | None,
    ) -> Verification:
        """The verification of a result with the verdicts of sequences, and TFLM's figures of the whole.

        Raises FailedVerificationError where a sequence of calls computes something else.
        """
        # A first step that the converter computed from zeros may have other signs of zero.
        is_off = "step" in proofs and proofs["step"].status is Status.REASSOCIATED
        exactness = "reassociates" if is_off else self.exactness
        ties = tie_positions(read_model(written), self.ties)
        results = verify_steps(Subject(self.whole, written, exactness, ties=ties), options, progress, running)
        for runtime, each in results.items():
            if each.verdict.equal is False:
                raise FailedVerificationError(f"not equal on {runtime}, step by step: {each.verdict.reason}")
        verdicts = {runtime: each.verdict for runtime, each in results.items()}
        measured = results["tflm"].facts if "tflm" in results else {}
        return replace(verification, verdicts=verdicts, tflm_before={**measured} or verification.tflm_before)


def in_steps(data: bytes, model: Model, options: Options) -> InSteps:
    """Make the model of one step; ``data``: the file of ``model``.

    Raises UnsupportedModelError for a model that has no such step, EquivalenceError for one that is not equal.
    """
    made = one_step(model, not options.allow_approximate)
    if options.ties not in ((), made.ties):
        raise UsageError("--step ties the states of the network by itself: omit --tie")
    found = InSteps(data, write_model(made.model), made.ties, made.calls, made.exactness)
    for proof in found.proof_of(read_model(found.data)).values():
        if proof.status is Status.DIFFERENT:
            raise EquivalenceError(f"--step: {NOT_EQUAL}: {proof}")
    return found
