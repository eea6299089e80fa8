"""The proof against the runtimes: what it says of a mutant, and what LiteRT and TFLM compute of both files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.adapter import OPTIMIZED_KERNELS, REFERENCE, ModelRun, RunJob
from tflite_memopt.evidence.equivalence.baseline import FILLS, run_on_litert
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.evidence.proof import Proof, Status, prove
from tflite_memopt.kernels.faults import faults_in
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.check import check_model

RUNTIMES = ("litert", "tflm")
ARENA = 1 << 18
_AGAIN = 5
CLOSE = 1e-4
"""Of the largest value: how far sums of floats in another order may be apart."""


@dataclass
class Counts:
    """The ends of mutants, by kind, and what was wrong."""

    tried: Counter[str] = field(default_factory=Counter)
    proved: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)


class Original:
    """A model, and what each runtime computes of it; ``samples`` run in sequence on one interpreter."""

    def __init__(self, data: bytes, interpreters: Interpreters, samples: int, seed: int) -> None:
        self.data, self._interpreters = data, interpreters
        self.model = read_model(data)
        check_model(self.model)
        self.samples = verification_inputs(self.model, samples, seed)

    @cached_property
    def runs(self) -> dict[str, ModelRun]:
        """Of the runtimes that run the model, and compute the same over other memory."""
        found = {name: self.run(name, self.data) for name in RUNTIMES}
        again = self.run("tflm", self.data, FILLS[1])
        if not again.ran or differs(found["tflm"], again) or faults_in(self.model, PROFILES["reference"]):
            del found["tflm"]
        return {name: run for name, run in found.items() if run.ran}

    def _repeats(self, runtime: str) -> bool:
        """Tell whether a runtime computes the same of the model again; LiteRT's reference SUM of int16 does not."""
        return all(not differs(self.runs[runtime], self.run(runtime, self.data)) for _ in range(_AGAIN))

    @cached_property
    def _kernels(self) -> str:
        """Those of LiteRT that judge the model."""
        return run_on_litert(self.data, self.model, self._interpreters, self.samples).kernels or REFERENCE

    def run(self, runtime: str, data: bytes, fill: int = FILLS[0]) -> ModelRun:
        """Run a file on the samples of the model."""
        job = RunJob(data, self.samples, ARENA, fill=fill)
        return self._interpreters[runtime].run(replace(job, kernels=self._kernels) if runtime == "litert" else job)

    def verdict(self, data: bytes, site: str = "") -> tuple[str, str | None]:
        """How a mutant ended, and why its proof is false; None where it is not.

        ``site``: the field that was changed. A file whose operator has a version that a runtime does not have is equal,
        and what `verify` compares besides. A runtime that runs the original runs what is proved.
        """
        try:
            model = read_model(data)
            check_model(model)
            proof = prove(self.model, model)
        except MemoptError:
            return "refused", None
        except Exception as error:
            return "crashed", f"the proof crashed: {type(error).__name__}: {error}"
        if not proof.proved:
            return proof.status.name.lower(), None
        wrong = self._contradiction(data, proof)
        return "proved", None if wrong is None or is_of_version(site, wrong) else wrong

    def _contradiction(self, data: bytes, proof: Proof) -> str | None:
        if not self.runs:
            return None  # nothing judges it
        found = {name: self.run(name, data) for name in self.runs}
        for name, run in found.items():
            is_any_order = name == "litert" and self._kernels == OPTIMIZED_KERNELS
            if run.ran and differs(self.runs[name], run, proof, is_any_order):
                if not self._repeats(name):
                    del self.runs[name]
                    return None
                return f"{name} differs, the proof says: {proof}"
        refused = "; ".join(f"{name}: {run.reason}" for name, run in found.items() if not run.ran)
        return f"does not run, the proof says: {proof} ({refused[:300]})" if refused else None


def is_of_version(site: str, wrong: str) -> bool:
    """Tell whether a file does not run since an operator has a version that a runtime does not have."""
    return site.endswith("OperatorCodeT.version") and "does not run" in wrong


def differs(one: ModelRun, other: ModelRun, proof: Proof | None = None, is_any_order: bool = False) -> bool:
    """Tell whether outputs differ where they must not: by a bit, or by more than float sums do.

    ``is_any_order``: kernels may take these in any order.
    """
    if one.outputs.keys() != other.outputs.keys():
        return True
    pairs = [(a, b) for at in one.outputs for a, b in zip(one.outputs[at], other.outputs[at], strict=True)]
    is_any_order = is_any_order or (proof is not None and proof.status is Status.REASSOCIATED)
    return any(_differ(a, b, proof, is_any_order) for a, b in pairs)


def _differ(a: Any, b: Any, proof: Proof | None, is_any_order: bool) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    if a.tobytes() == b.tobytes():
        return False
    if a.dtype.kind != "f":
        return True
    is_finite = proof is not None and proof.is_finite
    is_nan = np.isnan(a) & np.isnan(b)
    known = np.isfinite(a) & np.isfinite(b) if is_finite else ~is_nan
    if is_any_order:
        gap = np.abs(np.where(known, a - b, 0)).max(initial=0)
        return bool(gap > 1e-6 + CLOSE * np.abs(np.where(known, a, 0)).max(initial=0))
    return bool((a.view(_BITS[a.dtype.itemsize]) != b.view(_BITS[b.dtype.itemsize]))[known].any())


_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def table(counts: Counts) -> Sequence[str]:
    """The lines of a report: mutants by kind of original."""
    lines = ["| original | mutants | proved | false |", "|---|---:|---:|---:|"]
    wrong = Counter(each.split(":")[0] for each in counts.false)
    for kind in sorted(counts.tried):
        lines.append(f"| {kind} | {counts.tried[kind]:,} | {counts.proved[kind]:,} | {wrong[kind]} |")
    total, proved = sum(counts.tried.values()), sum(counts.proved.values())
    lines.append(f"| all {len(counts.tried)} | {total:,} | {proved:,} | {len(counts.false)} |")
    ends = ", ".join(f"{count:,} {end}" for end, count in counts.ends.most_common())
    return [*lines, "", f"{ends}; {len(counts.fields)} fields of the schema changed"]
