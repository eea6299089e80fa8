"""The optimized model against the original on each runtime: its outputs, its arena, and memory that nobody wrote."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace

from ...kernels.support import said_of, support_of
from ...model.ir.change import Exactness, loosest
from ...model.ir.model import Model
from ...solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from ..proof import Streamed
from .adapter import LARGEST_ARENA, OPTIMIZED_KERNELS, ModelRun, RunJob, Sample, Values
from .baseline import FILLS, LITERT, Baseline, BaselineRun, faults_on_tflm, is_the_same_over_other_memory
from .compare import (
    ANY,
    EXACT,
    FLOAT_SUMS,
    OutputDifference,
    Tolerance,
    first_output_difference,
    gap_between,
    signal_to_noise,
)
from .external_runner import RUNNER
from .interface import Interface, steps_of
from .runner import Interpreters, ModelRunner
from .sequences import run_streamed
from .subject import Promise, Subject
from .verdict import Verdict

TOLERANCES: Mapping[Exactness, Tolerance] = {"exact": EXACT, "reassociates": FLOAT_SUMS, "approximates": ANY}
"""Between the original and the candidate, by the loosest rewrite that was applied."""
LEAST_DECIBELS = 10.0
"""Signal to noise that an approximation must leave."""
_MENDED: tuple[Exactness, ...] = ("exact", "reassociates")
_REFUSED = (
    "TFLM, {}, refuses the {:,} bytes of arena that are counted for it and accepts {:,}: reserve that many more on the "
    "device, too"
)
_UNSOUND = "TFLM does not compute the same outputs twice for the original"
_FAULTY = "TFLM is known to compute otherwise: {}"
_UNWRITTEN = "its outputs depend on the previous contents of the arena: an operator reads memory that nobody wrote"


@dataclass(frozen=True)
class Judged:
    """An optimized model to be judged: the ``subject``, the ``model`` of its optimized one, and ``samples`` for it.

    ``arena_bytes`` is enough for any plan in the wheel's TFLM.
    """

    subject: Subject
    model: Model
    interface: Interface
    samples: list[Sample]
    arena_bytes: int

    @property
    def tolerance(self) -> Tolerance:
        """Between the original's values and the candidate's."""
        return TOLERANCES[self.subject.exactness]


@dataclass(frozen=True)
class RuntimeResult:
    """A verdict, TFLM's memory where it measured it, and whether it executed the plan, or the reason why not.

    ``note``: a remark on the runtime itself.
    """

    verdict: Verdict
    facts: Mapping[str, int] = field(default_factory=dict)
    plan_executed: bool = False
    reason: str | None = None
    note: str | None = None


def judge_on_all(baseline: Baseline, candidate: Judged, interpreters: Interpreters) -> dict[str, RuntimeResult]:
    """The results of all runtimes, which run side by side."""
    judges = {name: _Judge(baseline, candidate, name, baseline.runner(name, interpreters)) for name in baseline.runs}
    with ThreadPoolExecutor(max_workers=len(judges)) as pool:
        try:
            return dict(zip(judges, pool.map(_Judge.result, judges.values()), strict=True))
        except KeyboardInterrupt:
            interpreters.close()  # else the threads would be waited for
            raise


def judge_streamed(
    baseline: Baseline, candidate: Judged, name: str, runner: ModelRunner, stream: Streamed
) -> RuntimeResult:
    """The result of one runtime where the candidate is called once for each frame of a sequence, or hop of windows."""
    judge, before = _Judge(baseline, candidate, name, runner), baseline.runs[name]
    if before.run is None or before.faults:
        reason = _FAULTY.format(before.faults) if before.faults else before.reason
        return RuntimeResult(judge._silent(reason), reason=reason)
    subject, arena = candidate.subject, LARGEST_ARENA if name == RUNNER else candidate.arena_bytes
    after = run_streamed(runner, subject.optimized, stream, baseline.samples, baseline.model.main.outputs, arena)
    return RuntimeResult(judge._compared(before.run, after) if after.ran else judge._failing(after), before.facts)


def first_difference(
    baseline: Baseline, name: str, outputs: Values, exactness: Exactness
) -> tuple[OutputDifference | None, Exactness]:
    """Return how outputs on a runtime differ from the original's, which ran there, and what they were held to.

    Float sums of LiteRT's optimized kernels depend on shapes. Integers do not, be they written as floats.
    """
    before = baseline.runs[name]
    wanted = {} if before.run is None else before.run.outputs
    found = first_output_difference(wanted, outputs, TOLERANCES[exactness])
    if found is None or exactness != "exact" or before.kernels != OPTIMIZED_KERNELS:
        return found, exactness
    steps = steps_of(baseline.model)
    same, sums = ({at: each for at, each in wanted.items() if (at in steps) is is_in} for is_in in (True, False))
    found = first_output_difference(same, outputs) or first_output_difference(sums, outputs, FLOAT_SUMS)
    return found, "exact" if found else "reassociates"


@dataclass(frozen=True)
class _Judge:
    """One runtime, which runs the candidate."""

    baseline: Baseline
    candidate: Judged
    name: str
    runner: ModelRunner

    @property
    def before(self) -> BaselineRun:
        return self.baseline.runs[self.name]

    def result(self) -> RuntimeResult:
        if self.name == LITERT:
            return RuntimeResult(self._on_litert())
        return self._on_tflm() if self.candidate.samples else RuntimeResult(self._silent(), reason=self.before.reason)

    def _on_litert(self) -> Verdict:
        if self.before.run is None:
            return self._silent()
        after = self.runner.run(RunJob(self.candidate.subject.optimized, self.candidate.samples, 0))
        return self._compared(self.before.run, after) if after.ran else self._failing(after)

    def _on_tflm(self) -> RuntimeResult:
        """TFLM executes the plan, in exactly the arena that is promised."""
        before, promise = self.before, self.candidate.subject.promises.get(self.name, Promise())
        run, smallest = self._run_as_promised(promise.required_bytes)
        if not run.ran:
            if before.run is None:
                return RuntimeResult(self._silent(), reason=before.reason)
            return self._wrong(run, self._failing(run, promise.required_bytes))
        kernels = before.kernels or "the tflite-micro wheel on 64 bits"
        note = _REFUSED.format(kernels, promise.required_bytes, smallest) if smallest else None
        head = run.facts.get("head")
        is_other = promise.head is not None and head is not None and aligned(promise.head) != aligned(head)
        if self.name == RUNNER and is_other:
            return self._wrong(run, self._differing(f"TFLM's head is {head} bytes, and the plan says {promise.head}"))
        data, samples = self.candidate.subject.optimized, self.candidate.samples
        is_sound = is_the_same_over_other_memory(self.runner, data, samples, self._arena, run)
        faults = faults_on_tflm(self.candidate.model) if self.name != RUNNER else ""
        if before.faults and not faults:
            verdict = self._mended(run) if is_sound else self._differing(_UNWRITTEN)
            if verdict.equal is False:
                return self._wrong(run, verdict)
            notes = (note, None if verdict.equal else verdict.reason)
            return RuntimeResult(verdict, run.facts, True, note="; ".join(filter(None, notes)) or None)
        if faults:
            verdict = self._silent(f"{_FAULTY.format(faults)}{self._beside_litert(run)}")
            return RuntimeResult(verdict, run.facts, is_sound, None if is_sound else _FAULTY.format(faults), note)
        if not is_sound and before.is_sound:
            return self._wrong(run, self._differing(_UNWRITTEN))
        if before.run is not None and before.is_sound:
            return RuntimeResult(self._compared(before.run, run), run.facts, True, note=note)
        reason = before.reason if before.is_sound else _UNSOUND
        verdict = self._silent(f"{reason}{self._beside_litert(run)}")
        return RuntimeResult(verdict, run.facts, is_sound, None if is_sound else _UNSOUND, note)

    def _mended(self, run: ModelRun) -> Verdict:
        """Compare what TFLM computes of the result with LiteRT's values of the original, which TFLM gets wrong.

        The two may round differently, and LiteRT has faulty kernels, too: then there is no verdict, but the gap.
        """
        litert, faults = self.baseline.runs.get(LITERT), _FAULTY.format(self.before.faults)
        if litert is None or litert.run is None:
            return self._silent(f"{faults}; of the result they compute none wrongly")
        for exactness in _MENDED:
            verdict = self._compared(litert.run, run, loosest((exactness, self.candidate.subject.exactness)), LITERT)
            if verdict.equal:
                return verdict
        return self._silent(f"{faults}{self._beside_litert(run)}")

    @property
    def _arena(self) -> int:
        return LARGEST_ARENA if self.name == RUNNER else self.candidate.arena_bytes

    def _run_as_promised(self, required: int | None) -> tuple[ModelRun, int | None]:
        """Return the run of the model, and where it refuses the promised arena, the smallest one that it accepts."""
        support = support_of(self.candidate.model)
        if self.name != RUNNER and not support.runs:
            return ModelRun(error=said_of(support)), None
        job = RunJob(self.candidate.subject.optimized, self.candidate.samples, self._arena, fill=FILLS[0], measure=True)
        if required is None:
            return self.runner.run(job), None
        run = self.runner.run(replace(job, arena_bytes=required))
        if run.ran or self.name == RUNNER:
            return run, None
        run = self.runner.run(job)
        return run, self._smallest_above(required) if run.ran else None

    def _smallest_above(self, refused: int) -> int:
        sizes = range(refused + ARENA_ALIGNMENT, self._arena, ARENA_ALIGNMENT)
        job = RunJob(self.candidate.subject.optimized, [], self._arena)
        place = bisect_left(sizes, True, key=lambda size: self.runner.run(replace(job, arena_bytes=size)).ran)
        return sizes[place] if place < len(sizes) else self._arena

    def _compared(
        self, before: ModelRun, after: ModelRun, exactness: Exactness | None = None, name: str | None = None
    ) -> Verdict:
        """Compare outputs with those of the original; ``name``: the runtime that ran it, where it is another one."""
        candidate, exactness = self.candidate, exactness or self.candidate.subject.exactness
        restored = candidate.interface.restored_outputs(after.outputs)
        outer, exactness = first_difference(self.baseline, name or self.name, restored, exactness)
        gap = gap_between(before.outputs, restored, candidate.interface.steps)
        reason = None if outer is None else _text(self.baseline.model, outer)
        noise = None
        if exactness == "approximates":
            noise = signal_to_noise(before.outputs, restored)
            if reason is None and noise < LEAST_DECIBELS:
                below = f"less than {LEAST_DECIBELS:g} dB"
                reason = f"the signal-to-noise ratio of the approximation is {noise:.1f} dB, {below}"
        return Verdict(
            samples=len(self.baseline.samples),
            equal=reason is None,
            reason=reason or self.before.reason,
            exactness=exactness,
            tolerance=asdict(FLOAT_SUMS) if exactness == "reassociates" else None,
            signal_to_noise=noise,
            kernels=self.before.kernels,
            **gap.figures,
        )

    def _beside_litert(self, run: ModelRun) -> str:
        """Measure TFLM's outputs of the result against LiteRT's of the original: the two round differently."""
        litert = self.baseline.runs.get(LITERT)
        other = None if litert is None else litert.run
        if other is None or any(values[0].shape != run.outputs[at][0].shape for at, values in other.outputs.items()):
            return ""
        gap = gap_between(other.outputs, run.outputs, {})
        return f"; the result differs from what LiteRT computes of the original by at most {gap.max_abs_diff:g}"

    def _silent(self, reason: str | None = None) -> Verdict:
        return Verdict(0, None, 0.0, reason or self.before.reason, kernels=self.before.kernels)

    def _failing(self, run: ModelRun, required: int | None = None) -> Verdict:
        if required is not None and self.name == RUNNER:
            job = RunJob(self.candidate.subject.optimized, self.candidate.samples[:1], self._arena)
            if self.runner.run(job).ran:
                refusal = f"it does not run in the {required} bytes of arena that the report promises"
                return self._differing(f"{refusal}: {run.reason}")
        return self._differing(f"the optimized model fails where the original runs: {run.reason}")

    def _differing(self, reason: str) -> Verdict:
        return Verdict(len(self.baseline.samples), False, 0.0, reason)

    def _wrong(self, run: ModelRun, verdict: Verdict) -> RuntimeResult:
        return RuntimeResult(verdict, run.facts, reason=verdict.reason)


def _text(model: Model, found: OutputDifference) -> str:
    name = model.main.outputs[found.output].name
    return f"output {found.output} '{name}' differs by up to {found.max_abs_diff:g}, first in sample {found.sample}"
