"""Write and check a receipt: an in-toto statement of a result, its proofs, and the requirements on its firmware.

Signing it is the user's (docs/exactness.md). It is checked without the optimizer that made the result: digests are
compared, and the proofs made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import ErrorKind, UsageError
from ..evidence.equivalence.verification import infer_shapes
from ..evidence.proof import FACTS, Proof, prove, prove_plan, prove_streamed
from ..kernels.profile import KernelProfile
from ..kernels.targets import profile_for
from ..memory.figures import operator_kinds
from ..memory.file import places_in_force, read_planned
from ..memory.problems import labeled_ties, tie_positions
from ..memory.reserve import needs_by_library
from ..model.io import offline_plan, plan_label
from ..model.io.reader import read_model
from ..options import Options, changed_options
from .model import Report

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:tflite-memopt:receipt:1"
_PROVED = {"proved", "reassociated"}


def receipt_of(report: Report, result: bytes, name: str) -> str:
    """Return the receipt of a result as JSON; ``name``: of the file that it is written to."""
    profile = profile_for(report.target, report.kernels)
    facts = sorted({fact for proof in report.proofs.values() for fact in proof.facts})
    predicate = {
        "original": {"name": report.model, "digest": {"sha256": report.sha256["before"]}},
        "tool": {
            "name": "tflite-memopt",
            "version": report.version,
            "options": changed_options(report.options),
            "decision": report.decision,
        },
        "firmware": _firmware(result, profile),
        "proofs": {
            proved: {"status": proof.status, "reason": proof.reason, "chance": proof.chance, "facts": list(proof.facts)}
            for proved, proof in report.proofs.items()
        },
        "assumptions": {fact: FACTS[fact] for fact in facts},
        "runs": {
            runtime: {"samples": verdict.samples, "equal": verdict.equal, "exactness": verdict.exactness}
            for runtime, verdict in report.equivalence.items()
        },
    }
    subject = {"name": name, "digest": {"sha256": report.sha256["after"]}}
    statement = {"_type": STATEMENT, "subject": [subject], "predicateType": PREDICATE, "predicate": predicate}
    return json.dumps(statement, indent=2) + "\n"


def _firmware(result: bytes, profile: KernelProfile) -> dict[str, Any]:
    """Return the facts that firmware must keep together with the model."""
    model = read_planned(result)
    needs = needs_by_library(model, offline_plan.decode(model) or {}, profile)
    return {
        "target": profile.target,
        "kernels": profile.name,
        "operators": sorted(operator_kinds(model)),
        "arena": {library: {"head": need.head, "required": need.required} for library, need in needs.items()},
    }


def mismatches(receipt: str, original: bytes, result: bytes, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield each claim of a receipt that does not hold for two files. Raises UsageError for what is no receipt."""
    statement = _statement(receipt)
    predicate = statement["predicate"]
    for what, data, said in (
        ("the result", result, statement["subject"][0]["digest"]["sha256"]),
        ("the original", original, predicate["original"]["digest"]["sha256"]),
    ):
        digest = hashlib.sha256(data).hexdigest()
        if digest != said:
            yield f"{what} has the digest {digest}, the receipt says {said}"
    firmware, proofs = predicate["firmware"], predicate["proofs"]
    profile = profile_for(firmware["target"], firmware["kernels"])
    actual = _firmware(result, profile)
    for key, said in firmware.items():
        if actual.get(key) != said:
            yield f"{key}: the receipt says {json.dumps(said)}, the result has {json.dumps(actual.get(key))}"
    equality = ("step", _steps) if "step" in proofs else ("result", _equality)
    for name, again in (equality, ("plan", _plan)):
        if name in proofs and proofs[name]["status"] in _PROVED:
            progress(f"proving the {name} again")
            proof = again(original, result, profile, progress)
            if proof.status.name.lower() != proofs[name]["status"]:
                yield f"{name}: the receipt says {proofs[name]['status']}, a proof now ends with: {proof}"


def _statement(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
        kinds = found["_type"], found["predicateType"]
        predicate = found["predicate"]
        if kinds != (STATEMENT, PREDICATE):
            raise UsageError(f"a statement of type {kinds[1]}, not {PREDICATE}", ErrorKind.FORMAT)
        digests = found["subject"][0]["digest"]["sha256"], predicate["original"]["digest"]["sha256"]
        tables = predicate["firmware"], predicate["proofs"], predicate["runs"]
        profile_for(predicate["firmware"]["target"], predicate["firmware"]["kernels"])
        is_whole = all(isinstance(value, str) for value in digests) and all(isinstance(value, dict) for value in tables)
        is_whole &= all("status" in proof for proof in predicate["proofs"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"this is not a receipt of tflite-memopt: {error}", ErrorKind.FORMAT) from error
    if not is_whole:
        raise UsageError("this is not a receipt of tflite-memopt: a field has the wrong type", ErrorKind.FORMAT)
    return found


def _equality(original: bytes, result: bytes, _: KernelProfile, progress: Callable[[str], None]) -> Proof:
    """As the run has proved it: an original whose shapes are wrong in the file counts with those that LiteRT infers."""
    proof = prove(read_model(original), read_model(result), converts=True, turns=True)
    if proof.proved:
        return proof
    shaped = infer_shapes(original, Options(), progress)
    return prove(shaped.model, read_model(result), converts=True, turns=True) if shaped.wrong else proof


def _steps(original: bytes, result: bytes, _: KernelProfile, __: Callable[[str], None]) -> Proof:
    model = read_planned(result)
    label = plan_label.decode(model)
    kind = None if label is None else label.calls
    return prove_streamed(kind or "step", read_model(original), model, tie_positions(model, labeled_ties(model)))


def _plan(_: bytes, result: bytes, profile: KernelProfile, __: Callable[[str], None]) -> Proof:
    model = read_planned(result)
    return prove_plan(model, places_in_force(model, profile))
