"""The original, looked at before anything is done to it: who can run it, on which inputs, and is it sound itself?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..analysis.macs import model_macs
from ..errors import UsageError
from ..graph.alignment import aligned
from ..io import offline_plan
from ..io.reader import read_model
from ..io.writer import write_model
from ..ir.dtype import DType
from ..ir.head import in_head
from ..ir.model import Model
from ..ir.npu import is_work_memory
from ..options import Options
from .adapter import LARGEST_ARENA, OPTIMISED_KERNELS, REFERENCE, RunJob
from .compare import first_output_difference
from .coverage import Coverage
from .drawing import Drawn, draw
from .exposure import MOST_BYTES, bytes_to_show, exposed
from .external_runner import RUNNER, ExternalRun
from .findings import findings_in
from .inputs import Sample, has_state, inputs_from_npz
from .pool import Interpreters
from .runner import ModelRunner, Run
from .shapes import InferredModel, shaped_by, shaped_by_litert
from .tolerance import Array
from .trace import Trace, computed_tensors, trace_of
from .unloaded import explained, is_refusal

_SPARE_ARENA = 8 << 20
"""Bytes on top of all tensors, for TFLM's structures and scratch; never touched pages cost nothing."""
_NO_UINT8 = "TFLM no longer has kernels for uint8 activations (quantise to int8 to run there)"
_NO_TFLM = (
    "nothing was run on TFLM: scripts/runners builds its modules, and the tflite-micro wheel, for Linux on x86-64, "
    "is not installed"
)
_FEWER_BYTES = (1 << 20, 1 << 16, 0)
"""Of tensors to show at once in an arena that may be small, one after the other until they fit."""
_FEW = 4
"""Samples of a second look."""
FILLS = (0x5A, 0xA5)
"""Two bytes for the arena before a run; no bit is the same in both."""


@dataclass(frozen=True)
class Ground:
    """What one runtime makes of the original: a trace of all samples, or the ``reason`` for none.

    ``kernels``: which of its kernels ran, where it has several, or what a runner says of its own. ``facts``: TFLM's
    head, tail and total. ``is_sound`` is False when the runtime gives other bits where it should give the same.
    ``refused``: TFLM named an operator that it cannot run.
    """

    trace: Trace | None
    reason: str | None = None
    kernels: str | None = None
    facts: Mapping[str, int] = field(default_factory=dict)
    is_sound: bool = True
    refused: bool = False


@dataclass(frozen=True)
class Original:
    """The model as it came, the samples, and what every runtime makes of them, by runtime.

    ``shaped`` is the model with the shapes that LiteRT infers: LiteRT has run ``data``, and TFLM, which infers none,
    ``shaped``. ``model`` is what ``shaped`` holds. ``findings``: what is wrong with the original, in words for its
    owner, most serious first.
    """

    data: bytes
    shaped: InferredModel
    samples: list[Sample]
    grounds: Mapping[str, Ground]
    coverage: Coverage | None
    findings: tuple[str, ...]

    @property
    def model(self) -> Model:
        """The model, with shapes that hold."""
        return self.shaped.model

    @property
    def runs_right_on_tflm(self) -> bool:
        """False where TFLM computes something else from the file as it came, so that its memory is no measure."""
        return not self.shaped.wrong and all(ground.is_sound for ground in self.grounds.values())


def arena_for(model: Model) -> int:
    """An arena in bytes in which any order and plan of the model fits: no sharing at all, and room to spare."""
    heads = [tensor for graph in model.graphs for tensor in graph.tensors if in_head(tensor)]
    structures = 1024 * sum(len(graph.tensors) + len(graph.operators) for graph in model.graphs)
    return aligned(2 * sum(aligned(tensor.nbytes) for tensor in heads) + structures + _SPARE_ARENA)


def look_at(
    data: bytes, model: Model, options: Options, interpreters: Interpreters, given: list[Sample] | None = None
) -> Original:
    """Run the original on every runtime that the options name, over inputs that excite it.

    ``model`` is what ``data`` holds. ``given`` samples are taken as they are; so are those of ``--inputs``. Where
    LiteRT's reference kernels fail, its optimised ones are tried, then TensorFlow. Raises UsageError when ``--inputs``
    do not fit, UnsupportedModelError when shapes depend on values.
    """
    if given is None and options.inputs is not None:
        given = inputs_from_npz(options.inputs, model)
    look = _Look(data, model, options, interpreters, given)
    return look.run()


@dataclass
class _Look:
    data: bytes
    model: Model
    options: Options
    interpreters: Interpreters
    given: list[Sample] | None
    grounds: dict[str, Ground] = field(default_factory=dict)
    drawn: Drawn | None = None

    def run(self) -> Original:
        runtimes = self.options.runtimes
        is_custom = any(operator.name == "CUSTOM" for graph in self.model.graphs for operator in graph.operators)
        if "litert" in runtimes:
            self._first_of("litert", (REFERENCE,) if is_custom else (REFERENCE, OPTIMISED_KERNELS))
        needs_other = "litert" in runtimes and self.grounds["litert"].trace is None and not is_custom
        if "tensorflow" in runtimes or needs_other:
            self._first_of("tensorflow", (REFERENCE,))
        shaped = self._shaped()
        if "tflm" in runtimes:
            self.grounds["tflm"] = self._on_tflm("tflm", shaped, arena_for(shaped.model))
        if self.options.runner is not None:
            self.grounds[RUNNER] = self._on_tflm(RUNNER, shaped, LARGEST_ARENA)
            self._check_pointers()
        coverage = None if self.drawn is None else self.drawn.exercise.summary()
        samples = [] if self.drawn is None else self.drawn.samples
        traces = {name: each.trace for name, each in self.grounds.items()}
        findings = findings_in(shaped, traces, self._is_sound())
        return Original(self.data, shaped, samples, self.grounds, coverage, findings)

    def _shaped(self) -> InferredModel:
        for runtime in ("litert", "tensorflow"):
            if runtime in self.grounds and self.grounds[runtime].trace is not None:
                return shaped_by(self.data, self.model, self.grounds[runtime].trace)
        return shaped_by_litert(self.data, self.model, self.interpreters)

    def _is_sound(self) -> bool:
        return all(each.is_sound for each in self.grounds.values())

    def _first_of(self, runtime: str, every: tuple[str, ...]) -> None:
        """The first kernels of a runtime that run the model; the reason is that of the first ones."""
        reasons: list[str] = []
        for kernels in every:
            found = self._ground(runtime, kernels)
            if found.trace is not None:
                why = f"{kernels}: {'; '.join(reasons)}" if reasons else None
                self.grounds[runtime] = Ground(found.trace, why, kernels)
                return
            reasons.append(f"its {kernels} fail: {found.reason}" if len(every) > 1 else f"{found.reason}")
        self.grounds[runtime] = Ground(None, "; ".join(reasons))

    def _ground(self, runtime: str, kernels: str) -> Ground:
        interpreter, wanted = self.interpreters[runtime], computed_tensors(self.model.main)
        reasons: list[str | None] = []

        def run(samples: list[Sample]) -> Trace | None:
            done = interpreter.run(RunJob(self.data, samples, 0, wanted, kernels))
            if not done.ran:
                reasons.append(done.missing or done.error)
            return trace_of(done.arrays, len(samples)) if done.ran else None

        trace = self._trace(run)
        return Ground(trace, reasons[0] if reasons else None)

    def _trace(self, run: Callable[[list[Sample]], Trace | None]) -> Trace | None:
        """The samples are drawn where the first runtime runs; the others take the same."""
        if self.drawn is not None:
            return run(self.drawn.samples)
        self.drawn = draw(self.model, self.options.samples, self.options.seed, self.given, run)
        return None if self.drawn is None else self.drawn.trace

    def _on_tflm(self, name: str, shaped: InferredModel, arena: int) -> Ground:
        interpreter = self.interpreters[name]
        failed: list[Run] = []

        def run(samples: list[Sample]) -> Trace | None:
            found = run_exposed(interpreter, shaped.data, samples, arena, backwards=not has_state(self.model.main))
            if isinstance(found, Run):
                failed.append(found)
                return None
            return found

        with ThreadPoolExecutor(max_workers=1) as pool:
            other = self._second(name)
            early = None if other is None else pool.submit(self._as_it_came, other, shaped, arena)
            trace = self._trace(run)
            if self.drawn is None:
                return self._refused(failed[0])
            stock = self._as_it_came(interpreter, shaped, arena) if early is None else early.result()
        if not stock.ran:
            return self._refused(stock)
        outputs = outputs_of(stock, trace)
        kernels = stock.words if isinstance(stock, ExternalRun) else None
        if trace is None:
            # A runner's arena may be too small to show inner tensors; its outputs count all the same.
            shown = Trace(outputs) if name == RUNNER else None
            return Ground(shown, self._refusal(failed[0]), kernels, stock.facts)
        is_sound = first_output_difference(outputs, trace.outputs) is None
        return Ground(Trace(outputs, trace.tensors), None, kernels, stock.facts, is_sound)

    def _second(self, name: str) -> ModelRunner | None:
        """A second runner, where the samples are there and it is worth it."""
        if self.drawn is None:
            return None
        return self.interpreters.second(name, model_macs(self.model) * len(self.drawn.samples))

    def _as_it_came(self, runner: ModelRunner, shaped: InferredModel, arena: int) -> Run:
        samples = [] if self.drawn is None else self.drawn.samples
        if offline_plan.decode(shaped.model) is None:
            samples = for_a_second_look(runner, samples)
        return runner.run(RunJob(shaped.data, samples, arena, fill=FILLS[0], measure=True))

    def _check_pointers(self) -> None:
        """Figures for one pointer width are never held against a runner of another one."""
        bits, target = self.grounds[RUNNER].facts.get("pointer_bits"), self.options.target
        wanted = self.options.profile.abi.word
        if target is not None and bits is not None and bits != wanted:
            raise UsageError(f"the runner has pointers of {bits} bits, target {target} has {wanted}")

    def _refused(self, run: Run) -> Ground:
        names_operator = run.error is not None and is_refusal(self.model, run.error)
        return Ground(None, self._refusal(run), refused=names_operator)

    def _refusal(self, run: Run) -> str:
        reason = run.missing or run.error or "TFLM gave no reason"
        if run.missing is not None:
            return _NO_TFLM
        return f"{_NO_UINT8}; it says: {reason}" if _is_uint8(self.model) else explained(self.model, reason)


def for_a_second_look(runner: ModelRunner, samples: list[Sample]) -> list[Sample]:
    """The samples of a run over other memory than the one that shows tensors has: does it depend on what nobody wrote?

    All of them where other models show the tensors, so that this is the only run of the model as it is.
    """
    return samples[:_FEW] if runner.shows_tensors else samples


def outputs_of(run: Run, shown: Trace | None) -> dict[int, list[Array]]:
    """The outputs of a run of the first samples, and of those after them what a run of all has shown."""
    found: dict[int, list[Array]] = {}
    for name, values in run.arrays.items():
        found.setdefault(int(name.partition("_o")[2]), []).append(values)
    if shown is None:
        return found
    return {at: values + shown.outputs.get(at, [])[len(values) :] for at, values in found.items()}


def run_exposed(
    interpreter: ModelRunner,
    data: bytes,
    samples: list[Sample],
    arena_bytes: int,
    backwards: bool = False,
    fill: int = FILLS[1],
) -> Trace | Run:
    """TFLM's trace of a model without its plan and with no memory shared; the failed run where it does not run.

    ``backwards``: the samples in the other order, which must not matter to a model without state.
    """
    given = samples[::-1] if backwards else samples
    if interpreter.shows_tensors:
        found = run_shown(interpreter, without_plan(data), given, arena_bytes, fill)
        return _forwards(found) if backwards and isinstance(found, Trace) else found

    def attempt(most_bytes: int) -> Trace | Run:
        found = Trace()
        for exposure in exposed(data, most_bytes):
            run = interpreter.run(RunJob(exposure.model, given, exposure.arena_in(arena_bytes), fill=fill))
            if not run.ran:
                return run
            outputs = trace_of(run.arrays, len(given)).outputs
            if backwards:
                outputs = {at: values[::-1] for at, values in outputs.items()}
            shown = exposure.tensors
            found.tensors.update({shown[at]: values for at, values in outputs.items() if at in shown})
            found.outputs = {at: values for at, values in outputs.items() if at < exposure.outputs}
        return found

    return within_the_arena(arena_bytes, attempt)


def run_shown(runner: ModelRunner, data: bytes, samples: list[Sample], arena_bytes: int, fill: int) -> Trace | Run:
    """The trace of a model as it is, on a runner that shows tensors; the failed run where it does not run."""
    shown = tuple(bytes_to_show(read_model(data)))
    run = runner.run(RunJob(data, samples, arena_bytes, shown, fill=fill))
    return trace_of(run.arrays, len(samples)) if run.ran else run


def without_plan(data: bytes) -> bytes:
    """The model with its offsets left to TFLM, which lets nothing share bytes that is alive at the same time."""
    model = read_model(data)
    if offline_plan.decode(model) is None:
        return data
    offline_plan.detach(model)
    return write_model(model)


def _forwards(trace: Trace) -> Trace:
    """A trace of samples in the other order."""
    sides = ({at: values[::-1] for at, values in side.items()} for side in (trace.outputs, trace.tensors))
    return Trace(*sides)


def within_the_arena(arena_bytes: int, attempt: Callable[[int], Trace | Run]) -> Trace | Run:
    """What ``attempt`` makes when it shows at most so many bytes of tensors at once: fewer, where the arena may be
    small and it fails."""
    found = attempt(MOST_BYTES)
    for most_bytes in _FEWER_BYTES if arena_bytes == LARGEST_ARENA else ():
        if isinstance(found, Trace):
            break
        found = attempt(most_bytes)
    return found


def _is_uint8(model: Model) -> bool:
    computed = (tensor for tensor in model.main.tensors if in_head(tensor) and not is_work_memory(tensor))
    return any(tensor.dtype is DType.UINT8 for tensor in computed)
