"""The original, measured before anything is done to it: who can run it, and is it sound itself?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..analysis.macs import model_macs
from ..errors import UsageError
from ..graph.alignment import aligned
from ..io import offline_plan
from ..ir.check import describe, is_work_memory
from ..ir.model import DType, Model
from ..ir.tensors import in_head
from ..options import Options
from .adapter import LARGEST_ARENA, OPTIMIZED_KERNELS, REFERENCE, Run, RunJob, Sample
from .compare import first_output_difference
from .coverage import Coverage, coverage_of
from .error_metrics import signal_to_noise
from .exposure import FILLS, computed_tensors, run_exposed
from .external_runner import RUNNER, ExternalRunner
from .inputs import has_state, inputs_from_npz, seeded_inputs
from .pool import Interpreters
from .runner import ModelRunner
from .shapes import InferredModel, shaped_by, shaped_by_litert
from .unloaded import explained, is_refusal

GRAPH_RUNTIMES = ("litert", "tensorflow")
"""They plan for themselves, and infer shapes."""
_SPARE_ARENA = 8 << 20
"""Bytes on top of all tensors, for TFLM's structures and scratch; never touched pages cost nothing."""
_NO_UINT8 = "TFLM no longer has kernels for uint8 activations (quantize to int8 to run there)"
_NO_TFLM = "nothing was run on TFLM: the tflite-micro wheel, which exists for Linux on x86-64, is not installed"
_FEW = 4
"""Samples of a second run, over other memory."""
_CHEAP_MACS, _MOST_TIMES = 100000000, 3
"""Up to so many multiply-accumulates of all samples, and up to so many times as many as asked for, there are more."""
_LEAST_DECIBELS = 20.0
"""Between LiteRT and TFLM: rounding alone leaves more than this."""


@dataclass(frozen=True)
class BaselineRun:
    """What one runtime makes of the original: the ``run`` over all samples, or the ``reason`` for none.

    ``kernels``: which of its kernels ran, where it has several, or what a runner says of its own. ``facts``: TFLM's
    head, tail and total. ``is_sound`` is False when the runtime gives other bits where it should give the same.
    ``refused``: TFLM named an operator that it cannot run.
    """

    run: Run | None
    reason: str | None = None
    kernels: str | None = None
    facts: Mapping[str, int] = field(default_factory=dict)
    is_sound: bool = True
    refused: bool = False


@dataclass(frozen=True)
class Baseline:
    """The original, the samples, and what every runtime makes of them, by runtime.

    ``data`` is the model as it came, which LiteRT has run; ``shaped`` has the shapes that LiteRT infers. TFLM, which
    infers none, has run that. ``findings``: what is wrong with the original, in words for its owner, most serious
    first.
    """

    data: bytes
    shaped: InferredModel
    samples: list[Sample]
    runs: Mapping[str, BaselineRun]
    coverage: Coverage | None
    findings: tuple[str, ...]

    @property
    def model(self) -> Model:
        """The model, with shapes that hold."""
        return self.shaped.model

    @property
    def runs_right_on_tflm(self) -> bool:
        """False where TFLM computes something else from the file as it came, so that its memory is no measure."""
        return not self.shaped.wrong and all(each.is_sound for each in self.runs.values())


def arena_for(model: Model) -> int:
    """An arena in bytes in which any order and plan of the model fits: no sharing at all, and room to spare."""
    heads = [tensor for graph in model.graphs for tensor in graph.tensors if in_head(tensor)]
    structures = 1024 * sum(len(graph.tensors) + len(graph.operators) for graph in model.graphs)
    return aligned(2 * sum(aligned(tensor.nbytes) for tensor in heads) + structures + _SPARE_ARENA)


def measure_baseline(
    data: bytes, model: Model, options: Options, interpreters: Interpreters, given: list[Sample] | None = None
) -> Baseline:
    """Run the original on every runtime that the options name, over inputs that excite it.

    ``model`` is what ``data`` holds. ``given`` samples are taken as they are; so are those of ``--inputs``. Where
    LiteRT's reference kernels fail, its optimized ones are tried, then TensorFlow. Raises UsageError when ``--inputs``
    do not fit, UnsupportedModelError when shapes depend on values.
    """
    samples = _samples(model, options) if given is None else given
    runs = _on_graph_runtimes(data, model, options, interpreters, samples)
    inferred = next((runs[name].run for name in GRAPH_RUNTIMES if name in runs and runs[name].run is not None), None)
    shaped = shaped_by_litert(data, model, interpreters) if inferred is None else shaped_by(data, model, inferred)
    if "tflm" in options.runtimes:
        runs["tflm"] = _on_tflm(interpreters["tflm"], shaped, samples, arena_for(shaped.model))
    if options.runner is not None:
        runs[RUNNER] = _on_tflm(interpreters[RUNNER], shaped, samples, LARGEST_ARENA)
        _check_pointers(runs[RUNNER], options)
    first = next((each.run for each in runs.values() if each.run is not None), None)
    coverage = None if first is None else coverage_of(shaped.model.main, first)
    return Baseline(data, shaped, [] if first is None else samples, runs, coverage, tuple(_findings(shaped, runs)))


def _samples(model: Model, options: Options) -> list[Sample]:
    """The user's, or as many as are asked for; of a small model more, which cost little."""
    if options.inputs is not None:
        return inputs_from_npz(options.inputs, model)
    cheap = min(_CHEAP_MACS // max(1, model_macs(model)), _MOST_TIMES * options.samples)
    return seeded_inputs(model, max(options.samples, cheap), options.seed)


def _on_graph_runtimes(
    data: bytes, model: Model, options: Options, interpreters: Interpreters, samples: list[Sample]
) -> dict[str, BaselineRun]:
    job = RunJob(data, samples, 0, computed_tensors(model.main))
    is_custom = any(operator.name == "CUSTOM" for graph in model.graphs for operator in graph.operators)
    every = (REFERENCE,) if is_custom else (REFERENCE, OPTIMIZED_KERNELS)
    runs = {}
    if "litert" in options.runtimes:
        runs["litert"] = _first_that_runs(interpreters["litert"], job, every)
    needs_other = "litert" in runs and runs["litert"].run is None and not is_custom
    if "tensorflow" in options.runtimes or needs_other:
        runs["tensorflow"] = _first_that_runs(interpreters["tensorflow"], job, (REFERENCE,))
    return runs


def _first_that_runs(runner: ModelRunner, job: RunJob, every: tuple[str, ...]) -> BaselineRun:
    """The first kernels of a runtime that run the model; the reason is that of the ones before."""
    reasons: list[str] = []
    for kernels in every:
        run = runner.run(replace(job, kernels=kernels))
        if run.ran:
            return BaselineRun(run, f"{kernels}: {'; '.join(reasons)}" if reasons else None, kernels)
        reasons.append(f"its {kernels} fail: {run.reason}" if len(every) > 1 else run.reason)
    return BaselineRun(None, "; ".join(reasons))


def _on_tflm(runner: ModelRunner, shaped: InferredModel, samples: list[Sample], arena: int) -> BaselineRun:
    """Two runs, which must agree: with no memory shared, and as it came over an arena that holds other bytes.

    The first one takes the samples in the other order, which must not matter to a model without state.
    """
    model = shaped.model
    turned = slice(None) if has_state(model.main) else slice(None, None, -1)
    given = samples if offline_plan.decode(model) is not None else for_a_second_look(runner, samples)
    shown = run_exposed(runner, shaped.data, samples[turned], arena)
    stock = runner.run(RunJob(shaped.data, given, arena, fill=FILLS[0], measure=True))
    if not stock.ran:
        names_operator = stock.error is not None and is_refusal(model, stock.error)
        return BaselineRun(None, _refusal(model, stock), refused=names_operator)
    kernels = stock.words or None
    if not shown.ran:
        # A runner's arena may be too small to show inner tensors; its outputs count all the same.
        outputs_alone = Run(stock.outputs) if arena == LARGEST_ARENA else None
        return BaselineRun(outputs_alone, _refusal(model, shown), kernels, stock.facts)
    outputs, tensors = ({at: values[turned] for at, values in side.items()} for side in (shown.outputs, shown.tensors))
    run = Run(outputs, tensors)
    is_sound = first_output_difference(stock.outputs, run.outputs) is None
    return BaselineRun(run, None, kernels, stock.facts, is_sound)


def for_a_second_look(runner: ModelRunner, samples: list[Sample]) -> list[Sample]:
    """The samples of the run of a model as it is. All of them for a user's runner, which may show nothing else."""
    return samples if isinstance(runner, ExternalRunner) else samples[:_FEW]


def _check_pointers(found: BaselineRun, options: Options) -> None:
    """Figures for one pointer width are never held against a runner of another one."""
    bits, target = found.facts.get("pointer_bits"), options.target
    wanted = options.profile.abi.word
    if target is not None and bits is not None and bits != wanted:
        raise UsageError(f"the runner has pointers of {bits} bits, target {target} has {wanted}")


def _refusal(model: Model, run: Run) -> str:
    if run.missing is not None:
        return _NO_TFLM
    computed = (tensor for tensor in model.main.tensors if in_head(tensor) and not is_work_memory(tensor))
    is_uint8 = any(tensor.dtype is DType.UINT8 for tensor in computed)
    return f"{_NO_UINT8}; it says: {run.reason}" if is_uint8 else explained(model, run.reason)


def _findings(shaped: InferredModel, runs: Mapping[str, BaselineRun]) -> Iterator[str]:
    """What is wrong with the original itself, in words for its owner."""
    if shaped.wrong:
        first = shaped.wrong[0]
        yield (
            f"TFLM itself computes this model wrongly, from {first.where} on: the file says shape {list(first.said)}, "
            f"its operands make {list(first.inferred)}; LiteRT works that out, TFLM believes the file. The result has "
            "the right shapes; figures of the original are those of the file with the right shapes"
        )
    litert = next((runs[name].run for name in GRAPH_RUNTIMES if name in runs and runs[name].run is not None), None)
    tflm = runs["tflm"].run if "tflm" in runs else None
    if not all(each.is_sound for each in runs.values()):
        yield (
            "TFLM itself does not give the same outputs twice for this model, with the samples in another order and "
            "its arena filled with another pattern: an operator reads memory that nobody wrote"
        )
    elif litert is not None and tflm is not None:
        yield from _far_apart(shaped.model, litert, tflm)


def _far_apart(model: Model, litert: Run, tflm: Run) -> Iterator[str]:
    positions = {tensor: index for index, tensor in enumerate(model.main.tensors)}
    for step, operator in enumerate(model.main.operators):
        for tensor in operator.outputs:
            a, b = litert.tensors.get(positions[tensor]), tflm.tensors.get(positions[tensor])
            if a is None or b is None or a[0].shape != b[0].shape:
                continue
            if signal_to_noise({0: a}, {0: b}) < _LEAST_DECIBELS:
                yield (
                    f"TFLM's values are far from LiteRT's, from {describe(0, step, operator)} on: below "
                    f"{_LEAST_DECIBELS:g} dB of signal to noise. One of the two computes this model wrongly"
                )
                return
