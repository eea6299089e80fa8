"""A candidate against the baseline on each runtime: its outputs, its inner values, its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from ..graph.alignment import aligned
from ..io.reader import read_model
from ..ir.change import Exactness
from ..ir.model import Model
from .adapter import LARGEST_ARENA, REFERENCE, Run, RunJob, Sample, Values
from .baseline import GRAPH_RUNTIMES, Baseline, BaselineRun
from .compare import InnerDifference, OutputDifference, first_inner_difference, first_output_difference
from .correspondence import Link, links_between, links_in_loops, untouched_links
from .error_metrics import gap_between, signal_to_noise
from .exposure import computed_tensors, run_exposed
from .external_runner import RUNNER
from .failure import NO_PROMISE, Promise, Subject
from .interface import Interface
from .plan_judge import PlanJob, PlannedRun, judge_plan
from .pool import Interpreters
from .runner import ModelRunner
from .tolerance import ANY, EXACT, FLOAT_SUMS, Tolerance, largest_magnitudes
from .verdict import Verdict

TOLERANCES: Mapping[Exactness, Tolerance] = {"exact": EXACT, "reassociates": FLOAT_SUMS, "approximates": ANY}
"""Between the original and the candidate, by the loosest rewrite that was applied."""
_OTHER_VERSION = (
    "TFLM, {}, refuses the {:,} bytes of arena that are counted for it, and runs in more: it is of another version "
    "than the one that was measured (docs/reliability.md)"
)
_UNSOUND = "TFLM computes the original itself in more than one way"


@dataclass(frozen=True)
class Candidate:
    """An optimized model to be judged: the ``subject``, ``model``, which is its optimized one, and ``samples`` for it.

    ``arena_bytes`` is enough for any plan in the wheel's TFLM. ``promises``: what is said of its memory, by the name of
    the TFLM that it is for. ``least_decibels``: signal to noise that an approximation must leave.
    """

    subject: Subject
    model: Model
    interface: Interface
    samples: list[Sample]
    arena_bytes: int
    promises: Mapping[str, Promise] = field(default_factory=dict)
    least_decibels: float = 0.0

    @property
    def tolerance(self) -> Tolerance:
        """Between the original's values and the candidate's."""
        return TOLERANCES[self.subject.exactness]

    @cached_property
    def rewritten_model(self) -> Model:
        """The graph before stripes, order and plan. It is read when it is first asked for: most verdicts need none."""
        return read_model(self.subject.rewritten)

    def links_from(self, before: Model) -> tuple[Link, ...]:
        """The tensors of a model before, and those of the candidate that hold their values, loops included."""
        inside = links_in_loops(before.main, self.model, self.subject.loop_pieces)
        return links_between(before.main, self.model.main, self.subject.pieces) + inside


@dataclass(frozen=True)
class RuntimeResult:
    """A verdict, TFLM's memory where it measured it, and whether it executed the plan, or the reason why not.

    ``note``: what is to be said of the runtime itself.
    """

    verdict: Verdict
    facts: Mapping[str, int] = field(default_factory=dict)
    plan_executed: bool = False
    reason: str | None = None
    note: str | None = None


def judge_on_all(baseline: Baseline, candidate: Candidate, interpreters: Interpreters) -> dict[str, RuntimeResult]:
    """The results of all runtimes, which run side by side."""
    judges = {name: _Judge(baseline, candidate, name, interpreters[name]) for name in baseline.runs}
    with ThreadPoolExecutor(max_workers=len(judges)) as pool:
        try:
            return dict(zip(judges, pool.map(_Judge.result, judges.values()), strict=True))
        except KeyboardInterrupt:
            interpreters.close()  # else the threads would be waited for
            raise


@dataclass(frozen=True)
class _Judge:
    """One runtime, and what it is asked."""

    baseline: Baseline
    candidate: Candidate
    name: str
    runner: ModelRunner

    @property
    def before(self) -> BaselineRun:
        return self.baseline.runs[self.name]

    def result(self) -> RuntimeResult:
        return self._of_graph() if self.name in GRAPH_RUNTIMES else self._of_tflm()

    def _of_graph(self) -> RuntimeResult:
        """LiteRT and TensorFlow plan for themselves: the outputs and the inner tensors."""
        if self.before.run is None:
            return RuntimeResult(self._silent())
        after = self._unshared(self.candidate.subject.optimized, self.candidate.model)
        if not after.ran:
            return RuntimeResult(self._failing("optimized", after))
        return RuntimeResult(self._compared(self.before.run, after, after.outputs))

    def _of_tflm(self) -> RuntimeResult:
        """TFLM executes the plan: the plan tensor by tensor first, then the graph."""
        is_board, before, candidate = self.name == RUNNER, self.before, self.candidate
        promise = candidate.promises.get(self.name, NO_PROMISE)
        arena, required = self._arena, promise.required_bytes
        if not candidate.samples:
            return RuntimeResult(self._silent(), reason=before.reason)
        data, model, samples = candidate.subject.optimized, candidate.model, candidate.samples
        planned = judge_plan(PlanJob(self.runner, data, model, samples, arena, required, not is_board))
        if not planned.run.ran and before.run is None:
            return RuntimeResult(self._silent(), reason=before.reason)
        kernels = before.kernels or "the tflite-micro wheel on 64 bits"
        note = _OTHER_VERSION.format(kernels, required) if planned.took_more else None
        found = RuntimeResult(self._silent(), planned.run.facts, note=note)
        wrong = _against_plan(planned, promise.head if is_board else None)
        if wrong is not None:
            return replace(found, verdict=self._differing(wrong), reason=wrong)
        if planned.apart is None:
            shows_outputs = is_board and before.run is not None
            verdict = self._outputs_alone(planned) if shows_outputs else self._silent(planned.reason)
            return replace(found, verdict=verdict, reason=planned.reason)
        if before.run is not None and before.is_sound:
            verdict = self._compared(before.run, planned.apart, planned.outputs)
            return replace(found, verdict=verdict, plan_executed=True)
        if first_output_difference(planned.apart.outputs, planned.outputs) is not None:
            return replace(found, verdict=self._silent(_UNSOUND), reason=_UNSOUND)
        return replace(found, verdict=self._without_baseline(planned.apart), plan_executed=True)

    @property
    def _arena(self) -> int:
        return LARGEST_ARENA if self.name == RUNNER else self.candidate.arena_bytes

    def _unshared(self, data: bytes, model: Model) -> Run:
        """A run of a model over the same samples with no memory shared, its tensors shown."""
        samples = self.candidate.samples
        if self.name not in GRAPH_RUNTIMES:
            return run_exposed(self.runner, data, samples, self._arena)
        kernels = self.before.kernels or REFERENCE
        return self.runner.run(RunJob(data, samples, 0, computed_tensors(model.main), kernels))

    def _compared(self, before: Run, after: Run, outputs: Values, outputs_alone: bool = False) -> Verdict:
        """``after``: the candidate's inner values; ``outputs``: what it gives."""
        candidate, model, exactness = self.candidate, self.baseline.model, self.candidate.subject.exactness
        if candidate.tolerance != EXACT:
            stage = self._rewritten()
            if outputs_alone and not stage.ran:
                stage = self.runner.run(RunJob(candidate.subject.rewritten, candidate.samples, LARGEST_ARENA))
            if not stage.ran:
                return self._failing("rewritten", stage)
            text = self._difference_since(stage, after, outputs)
            if text is not None:
                return self._differing(text)
        links = candidate.links_from(model)
        inner = self._inner_difference(links, before, after)
        restored = candidate.interface.restored_outputs(outputs)
        outer = first_output_difference(before.outputs, restored, candidate.tolerance)
        gap = gap_between(before.outputs, restored, candidate.interface.steps)
        reason = _text(model, outer, inner)
        noise = None
        if exactness == "approximates":
            noise = signal_to_noise(before.outputs, restored)
            if reason is None and noise < candidate.least_decibels:
                wanted = candidate.least_decibels
                reason = f"the approximation leaves {noise:.1f} dB of signal to noise, {wanted:g} are wanted"
        is_tolerant = exactness == "reassociates"
        return Verdict(
            samples=len(self.baseline.samples),
            equal=reason is None,
            max_abs_diff=gap.max_abs_diff,
            reason=reason or self.before.reason,
            exactness=exactness,
            tolerance=asdict(FLOAT_SUMS) if is_tolerant else None,
            max_relative_diff=gap.max_relative_diff,
            max_lsb_diff=gap.max_lsb_diff,
            differing_share=gap.differing_share,
            agreeing_argmax_share=gap.agreeing_argmax_share,
            signal_to_noise=noise,
            kernels=self.before.kernels,
            inner_tensors=sum(link.before in before.tensors and link.after in after.tensors for link in links),
            unproved_outputs=_too_small(model, before) if is_tolerant else (),
        )

    def _inner_difference(self, links: Sequence[Link], before: Run, after: Run) -> InnerDifference | None:
        candidate, subject = self.candidate, self.candidate.subject
        if subject.exactness == "approximates":
            exact = untouched_links(links, self.baseline.model.main, subject.approximated)
            return first_inner_difference(exact, before, after, candidate.model)
        return first_inner_difference(links, before, after, candidate.model, candidate.tolerance)

    def _rewritten(self) -> Run:
        """A run of the candidate's graph before stripes, order and plan."""
        return self._unshared(self.candidate.subject.rewritten, self.candidate.rewritten_model)

    def _difference_since(self, stage: Run, after: Run, outputs: Values) -> str | None:
        """How the candidate differs from that run, from which it must not."""
        model = self.candidate.rewritten_model
        inner = first_inner_difference(self.candidate.links_from(model), stage, after, self.candidate.model)
        text = _text(model, first_output_difference(stage.outputs, outputs), inner)
        return None if text is None else f"stripes, order or plan change values: {text}"

    def _outputs_alone(self, planned: PlannedRun) -> Verdict:
        """The verdict of a runner whose arena has no room for more than the model itself."""
        assert self.before.run is not None
        verdict = self._compared(self.before.run, Run(planned.outputs), planned.outputs, outputs_alone=True)
        return verdict if verdict.equal is False else replace(verdict, reason=f"outputs only: {planned.reason}")

    def _without_baseline(self, apart: Run) -> Verdict:
        """No verdict on the original, but on what never changes a value, where the runtime can say that much."""
        reason = self.before.reason if self.before.is_sound else _UNSOUND
        stage = self._rewritten()
        if not stage.ran:
            return self._silent(reason)
        text = self._difference_since(stage, apart, apart.outputs)
        if text is not None:
            return self._differing(text)
        same = "the result equals the rewritten graph before its order and plan"
        return self._silent(f"{reason}; {same}{self._beside_litert(apart)}")

    def _beside_litert(self, apart: Run) -> str:
        """How far TFLM's outputs of the result are from LiteRT's of the original: the two round differently."""
        runs = self.baseline.runs
        other = next((runs[name].run for name in GRAPH_RUNTIMES if name in runs), None)
        if other is None or any(values[0].shape != apart.outputs[at][0].shape for at, values in other.outputs.items()):
            return ""
        gap = gap_between(other.outputs, apart.outputs, {})
        return f", and differs from what LiteRT computes of the original by at most {gap.max_abs_diff:g}"

    def _silent(self, reason: str | None = None) -> Verdict:
        return Verdict(0, None, 0.0, reason or self.before.reason, kernels=self.before.kernels)

    def _failing(self, label: str, run: Run) -> Verdict:
        return self._differing(f"the {label} model fails where the original runs: {run.reason}")

    def _differing(self, reason: str) -> Verdict:
        return Verdict(len(self.baseline.samples), False, 0.0, reason)


def _against_plan(planned: PlannedRun, said: int | None) -> str | None:
    """What speaks against the plan by itself, whatever the original computes; ``said``: what its head must be."""
    if not planned.run.ran:
        return f"the optimized model fails: {planned.reason}"
    head = planned.run.facts.get("head")
    if said is not None and head is not None and aligned(said) != aligned(head):
        return f"TFLM's head is {head} bytes, and the plan says {said}"
    found = planned.difference
    if found is None:
        return None
    return (
        f"the plan changes values: at its last use, tensor '{found.tensor}' is off by up to {found.max_abs_diff:g} in "
        f"sample {found.sample} from what the same graph computes with no memory shared"
    )


def _text(model: Model, outer: OutputDifference | None, inner: InnerDifference | None) -> str | None:
    """One line on a difference: how far, where, and the first tensor that differs; None without any."""
    if outer is not None:
        first = f"the first tensor that differs is '{inner.tensor}'" if inner else "no inner tensor differs"
        name = model.main.outputs[outer.output].name
        size = f"differs by up to {outer.max_abs_diff:g}, first in sample {outer.sample}"
        return f"output {outer.output} '{name}' {size}; {first}"
    if inner is None:
        return None
    return (
        f"tensor '{inner.tensor}' differs by up to {inner.max_abs_diff:g}, first in sample {inner.sample}; the "
        "outputs are the same for these inputs"
    )


def _too_small(model: Model, run: Run) -> tuple[str, ...]:
    """Float outputs with a channel whose largest value is below what the tolerance allows to be off."""
    names = []
    for at, values in run.outputs.items():
        if values[0].dtype.kind == "f" and (largest_magnitudes(values) < FLOAT_SUMS.absolute).any():
            names.append(model.main.outputs[at].name)
    return tuple(names)
