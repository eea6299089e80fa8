"""The original, measured before anything is done to it: the runtimes that run it, and whether it is sound itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ...errors import ErrorKind, UsageError
from ...kernels.as_it_came import said_of_behind
from ...kernels.faults import faults_in
from ...kernels.profiles import PROFILES
from ...kernels.support import said_of as said_of_support
from ...kernels.support import support_of
from ...model.io import offline_plan
from ...model.io.reader import read_model
from ...model.io.writer import write_model
from ...model.ir.check import describe
from ...model.ir.editor import positions_in
from ...model.ir.model import DType, Model
from ...model.ir.tensors import in_head
from ...options import Options
from ...solvers.graph.alignment import aligned
from .adapter import LARGEST_ARENA, OPTIMIZED_KERNELS, REFERENCE, ModelRun, RunJob, Sample
from .compare import FLOAT_SUMS, first_output_difference
from .external_runner import RUNNER
from .inputs import samples_for
from .interface import steps_of
from .runner import Interpreters, ModelRunner, WithKernels
from .runtimes import BetweenRuntimes, Numbers, between_runtimes, said_of
from .shapes import InferredModel, computed_tensors, shaped_by, shaped_by_litert
from .unloaded import explained, is_refusal

LITERT = "litert"
"""The runtime that plans for itself, and infers shapes."""
FILLS = (0x5A, 0xA5)
"""Two bytes for the arena before a run; no bit is the same in both."""
_SPARE_ARENA = 8 << 20
"""Bytes on top of all tensors, for TFLM's structures and scratch; never touched pages cost nothing."""
_NO_TFLM = "nothing was run on TFLM: the tflite-micro wheel, which exists for Linux on x86-64, is not installed"
_INT32 = 2
"""The type's number in the schema."""
_FEW = 5
"""Samples of a second run, over other memory or on other kernels: the extremes, and a random one."""
_ROUNDED = replace(FLOAT_SUMS, lsb=2.0)
"""Between LiteRT's kernels: steps that roundings of two operators may make at an output, and float sums."""


@dataclass(frozen=True)
class BaselineRun:
    """The original on one runtime: the ``run`` over all samples, or the ``reason`` for none.

    ``kernels``: those of its kernels that ran, where it has several, or the name that a runner gives. ``facts``: TFLM's
    head, tail and total. ``is_sound`` is False when the runtime gives other bits where it should give the same.
    ``refused``: TFLM named an operator that it cannot run. ``faults``: operators that it is known to compute wrongly.
    ``inside``: how LiteRT's reference kernels differ from those that ran; None if they do not, or did not run.
    """

    run: ModelRun | None
    reason: str | None = None
    kernels: str | None = None
    facts: Mapping[str, int] = field(default_factory=dict)
    is_sound: bool = True
    refused: bool = False
    faults: str = ""
    inside: BetweenRuntimes | None = None


@dataclass(frozen=True)
class Baseline:
    """The original, the samples, and its runs by runtime.

    ``data`` is the model as it came, which LiteRT has run; ``shaped`` has the shapes that LiteRT infers. TFLM, which
    infers none, has run that. ``findings``: faults of the original, in words for its owner, most serious first.
    ``between``: how LiteRT and TFLM differ on it; None if they do not, or one of them did not run.
    """

    data: bytes
    shaped: InferredModel
    samples: list[Sample]
    runs: Mapping[str, BaselineRun]
    findings: tuple[str, ...]
    between: BetweenRuntimes | None = None

    @property
    def model(self) -> Model:
        """The model, with shapes that hold."""
        return self.shaped.model

    def runner(self, name: str, interpreters: Interpreters) -> ModelRunner:
        """Return what runs a model as the original was run: LiteRT on the same kernels."""
        kernels = self.runs[name].kernels if name == LITERT else None
        return interpreters[name] if kernels is None else WithKernels(interpreters[name], kernels)

    @property
    def runs_right_on_tflm(self) -> bool:
        """False where TFLM computes something else from the file as it came, so that its memory is no measure."""
        return not self.shaped.wrong and all(each.is_sound for each in self.runs.values())


def arena_for(model: Model) -> int:
    """An arena in bytes in which any order and plan of the model fits: no sharing at all, and room to spare."""
    heads = [tensor for tensor in model.all_tensors if in_head(tensor)]
    structures = 1024 * sum(len(graph.tensors) + len(graph.operators) for graph in model.graphs)
    return aligned(2 * sum(aligned(tensor.nbytes) for tensor in heads) + structures + _SPARE_ARENA)


def measure_baseline(
    data: bytes,
    model: Model,
    options: Options,
    interpreters: Interpreters,
    given: list[Sample] | None = None,
    named: Model | None = None,
) -> Baseline:
    """Run the original on every runtime that the options name.

    ``model`` is that of ``data``. ``given``: the samples, in place of those that the options name. ``named``: the
    user's model, by whose positions operators are numbered, where it is another one. Raises UsageError when
    ``--inputs`` do not fit, UnsupportedModelError when shapes depend on values.
    """
    samples = samples_for(model, options) if given is None else given
    numbers = None if named is None else positions_in(named)
    runs = {LITERT: run_on_litert(data, model, interpreters, samples, numbers)} if LITERT in options.runtimes else {}
    inferred = runs[LITERT].run if runs else None
    shaped = shaped_by_litert(data, model, interpreters) if inferred is None else shaped_by(data, model, inferred)
    if "tflm" in options.runtimes:
        runs["tflm"] = _on_tflm(interpreters["tflm"], shaped, samples, arena_for(shaped.model))
    if options.runner is not None:
        runs[RUNNER] = _on_tflm(interpreters[RUNNER], shaped, samples, LARGEST_ARENA)
        _check_pointers(runs[RUNNER], options)
    ran = any(each.run is not None for each in runs.values())
    between = None if shaped.wrong else _between(shaped, samples, runs, interpreters, numbers)
    findings = (*_findings(shaped, runs), *(() if between is None else (str(between),)))
    return Baseline(data, shaped, samples if ran else [], runs, findings, between)


def _between(
    shaped: InferredModel,
    samples: list[Sample],
    runs: Mapping[str, BaselineRun],
    interpreters: Interpreters,
    numbers: Numbers | None,
) -> BetweenRuntimes | None:
    litert, tflm = (runs[name].run if name in runs else None for name in (LITERT, "tflm"))
    if litert is None or tflm is None or not runs["tflm"].is_sound:
        return None
    return between_runtimes(shaped.data, samples, litert, tflm, partial(_rerun, interpreters["tflm"]), numbers)


def _rerun(runner: ModelRunner, model: Model, samples: list[Sample]) -> ModelRun:
    return runner.run(RunJob(write_model(model), samples, arena_for(model)))


def run_on_litert(
    data: bytes, model: Model, interpreters: Interpreters, samples: list[Sample], numbers: Numbers | None = None
) -> BaselineRun:
    """Run a model on LiteRT, and judge which of its kernels results are held against.

    Its reference kernels, whose float sums do not depend on shapes (``litert.py``), unless they fail, or an operator of
    theirs gives other outputs than the optimized ones, which people run: by more than 2 steps, or than another order of
    sums explains. Steps that many operators add up are roundings. ``numbers``: as for :func:`between_runtimes`.
    """
    beyond = _reads_beyond_a_bias(model)
    if beyond is not None:
        return BaselineRun(None, beyond)
    job = RunJob(data, samples, 0, computed_tensors(model.main))
    runner = interpreters[LITERT]
    reference = runner.run(job)
    if reference.ran:
        few = runner.run(replace(job, samples=samples[:_FEW], tensors=(), kernels=OPTIMIZED_KERNELS))
        found = {at: values[:_FEW] for at, values in reference.outputs.items()}
        if not few.ran or first_output_difference(few.outputs, found, _ROUNDED, steps_of(model)) is None:
            return BaselineRun(reference, None, REFERENCE)
    elif reference.missing or any(each.name == "CUSTOM" for each in model.all_operators):
        return BaselineRun(None, reference.reason)
    run = runner.run(replace(job, kernels=OPTIMIZED_KERNELS))
    if not reference.ran:
        failed = f"its {REFERENCE} fail: {reference.reason}"
        if not run.ran:
            return BaselineRun(None, f"{failed}; its {OPTIMIZED_KERNELS} fail: {run.reason}")
        return BaselineRun(run, f"{OPTIMIZED_KERNELS}: {failed}", OPTIMIZED_KERNELS)
    if not run.ran:
        return BaselineRun(reference, None, REFERENCE)
    inside = between_runtimes(data, samples, run, reference, partial(_rerun, runner), numbers)
    steps = None if inside is None or inside.most is None else inside.most.gap.max_lsb_diff
    if steps is not None and 0 < steps <= _ROUNDED.lsb:
        return BaselineRun(reference, None, REFERENCE)
    return BaselineRun(run, None if inside is None else _said(inside), OPTIMIZED_KERNELS, inside=inside)


def _reads_beyond_a_bias(model: Model) -> str | None:
    """Return why LiteRT's values are no measure; None where they are.

    With activations of 16 bits it reads a bias of 32 bits as one of 64, and what follows it in the file, unless the
    options say the type. TFLM goes by the bias's own type. onnx2tf 2.6.9 writes such files.
    """
    for number, position, operator in model.located_operators:
        if operator.name != "CONV_2D" or operator.required(0).dtype is not DType.INT16:
            continue
        bias = operator.operand(2)
        if bias is not None and bias.dtype is DType.INT32 and operator.option("quantizedBiasType", 0) != _INT32:
            return f"LiteRT reads the bias of {describe(number, position, operator)} as 64 bits, beyond its end"
    return None


def _said(inside: BetweenRuntimes) -> str:
    where = "compute" if inside.most is None else f"compute {inside.most}"
    by = "" if inside.most is None else f" by up to {said_of(inside.most.gap)} on equal inputs,"
    return (
        f"LiteRT's {REFERENCE} {where} otherwise,{by} outputs by up to {said_of(inside.gap)}: judged by its "
        f"{OPTIMIZED_KERNELS}, the default"
    )


def _on_tflm(runner: ModelRunner, shaped: InferredModel, samples: list[Sample], arena: int) -> BaselineRun:
    """Two runs, which must agree: as it came, and with no memory shared over an arena that held other bytes.

    None of a model that the wheel cannot run, which may hang or crash there.
    """
    support = support_of(shaped.model)
    if arena != LARGEST_ARENA and not support.runs:
        return BaselineRun(None, said_of_support(support), refused=True)
    run = runner.run(RunJob(shaped.data, samples, arena, fill=FILLS[0], measure=True))
    if not run.ran:
        names_operator = run.error is not None and is_refusal(shaped.model, run.error)
        reason = _NO_TFLM if run.missing is not None else explained(shaped.model, run.reason)
        return BaselineRun(None, reason, refused=names_operator)
    faults = faults_on_tflm(shaped.model) if arena != LARGEST_ARENA else ""
    is_sound = not faults and is_the_same_over_other_memory(runner, apart(shaped.data), samples, arena, run)
    return BaselineRun(run, None, run.words or None, run.facts, is_sound, faults=faults)


def faults_on_tflm(model: Model) -> str:
    """Return what the tflite-micro wheel is known to compute otherwise than the file says, in words; empty for none."""
    behind = [said_of_behind(len(model.constants_behind))] if model.constants_behind else []
    return ", ".join([*behind, *map(str, faults_in(model, PROFILES["reference"]))])


def is_the_same_over_other_memory(
    runner: ModelRunner, data: bytes, samples: list[Sample], arena: int, run: ModelRun
) -> bool:
    """Return whether a model repeats the outputs of ``run``, for some samples, after other bytes were in memory."""
    again = runner.run(RunJob(data, samples[:_FEW], arena, fill=FILLS[1]))
    if not again.ran and arena == LARGEST_ARENA:
        return True  # a board may lack the room
    wanted = {at: values[: len(samples[:_FEW])] for at, values in run.outputs.items()}
    return again.ran and first_output_difference(wanted, again.outputs) is None


def apart(data: bytes) -> bytes:
    """The model with a plan in which no tensors of the main graph share memory."""
    model, top, offsets = read_model(data), 0, {}
    # TFLM looks up whether a subgraph's variable is planned at its index among the main graph's tensors.
    shadowed = {at for graph in model.graphs[1:] for at, tensor in enumerate(graph.tensors) if tensor.is_variable}
    for at, tensor in enumerate(model.main.tensors):
        if in_head(tensor) and not tensor.is_variable and at not in shadowed:
            offsets[tensor], top = top, aligned(top + tensor.nbytes)
    offline_plan.attach(model, offsets)
    return write_model(model)


def _check_pointers(found: BaselineRun, options: Options) -> None:
    """Figures for one pointer width are never held against a runner of another one."""
    bits, target = found.facts.get("pointer_bits"), options.target
    wanted = options.profile.abi.word
    if target is not None and bits is not None and bits != wanted:
        raise UsageError(f"the runner has pointers of {bits} bits, target {target} has {wanted}", ErrorKind.RUNNER)


def _findings(shaped: InferredModel, runs: Mapping[str, BaselineRun]) -> Iterator[str]:
    """Faults of the original itself, in words for its owner, and of what judges it."""
    if shaped.wrong:
        first = shaped.wrong[0]
        yield (
            f"TFLM computes this model wrongly from {first.where} on: the file says shape {list(first.said)}, "
            f"its operands give {list(first.inferred)}; LiteRT infers the shape, TFLM trusts the file. The result has "
            "the right shapes, and the figures of the original are for the right shapes"
        )
    if not all(each.is_sound or each.faults for each in runs.values()):
        yield (
            "TFLM does not compute the same outputs twice for this model, with tensors at other offsets and the arena "
            "filled with another pattern: an operator reads memory that is not its own"
        )
    inside = runs[LITERT].inside if LITERT in runs else None
    if inside is not None:
        yield _said(inside)
