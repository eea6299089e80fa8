"""Options that could lower the result further: with a figure that was computed, or marked as a thing to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..kernels.as_it_came import AsItCame
from ..kernels.profile import KernelProfile
from ..memory.figures import MemoryUse, TensorUse
from ..model.analysis.float_islands import float_islands
from ..model.ir.model import DType, Model
from ..operators.table import WITH_SCALES
from ..options import Options
from .model import Advice, Report
from .summary import flash_in_words
from .words import NOT_COMPUTED, change_in_percent, percent

_MOSTLY = 0.5
_OF_OPEN_SHAPES = frozenset({"shapes", "computed"})
"""What kept TFLM from loading a file that the converter was given without a batch size."""
_CLEARLY = 0.02
"""The share that a plan in the firmware must save to be advised."""
_TO_TRY = f"{NOT_COMPUTED}: "


def advice_for(
    report: Report, model: Model, profile: KernelProfile, options: Options, computed: Sequence[Advice] = ()
) -> tuple[Advice, ...]:
    """Return the next steps, the surest first. ``model`` is the result; ``computed``: what a draft of it has shown."""
    interface = (*of_conversion(report.after, model, report.as_it_came), *computed)
    if report.budget is not None and report.budget < report.least_as_one:
        return interface  # in one file nothing else helps
    of_firmware = (*_of_declined(report), *_of_planner(report.after), *_of_kernels(report, profile))
    return (*interface, *of_firmware, *_of_stages(report, options), *_of_search(report, options))


def of_conversion(memory: MemoryUse, model: Model, came: AsItCame) -> Iterator[Advice]:
    """Yield other ways to convert the model: with a batch size, for one sample, or to int8.

    The last two make tensors smaller, int8 a quarter of the bytes at the peak, and TFLM's own structures no smaller:
    nothing is said where those are most of the arena. ``came``: what TFLM makes of the file.
    """
    if any(obstacle.kind in _OF_OPEN_SHAPES for obstacle in came.support.reasons):
        yield Advice(
            "batch_size=1",
            "give the network's input a batch size (keras.Input(..., batch_size=1)): the converter then leaves out "
            "what computes shapes and first states",
        )
    binds = max(memory.tail_for_target, memory.temporaries_for_target) < memory.arena_bytes
    if memory.peak is None or not binds:
        return
    live = memory.peak.live
    whole = max(1, sum(tensor.bytes for tensor in live))
    yield from _of_islands(live, model)
    batches = {tensor.shape[0] if tensor.shape else 1 for tensor in (*model.main.inputs, *model.main.outputs)}
    batch = min(batches, default=1)
    if len(batches) == 1 and batch > 1 and sum(t.bytes for t in live if t.shape[:1] == (batch,)) > _MOSTLY * whole:
        yield Advice(
            "batch of 1", f"every input holds {batch} samples; converted for one sample, the tensors take 1/{batch}"
        )
    inputs = (each.inputs[0] for each in model.main.operators if each.name in WITH_SCALES and each.inputs)
    share = sum(tensor.bytes for tensor in live if tensor.type == "float32") / whole
    if share < _MOSTLY or all(tensor is None or tensor.dtype is not DType.FLOAT32 for tensor in inputs):
        return
    yield Advice(
        "int8",
        f"the model computes in floats; converted with a representative dataset its head, {memory.arena_bytes:,} "
        f"bytes now, would take about {round(memory.arena_bytes * (1 - 0.75 * share)):,} (an estimate)"
        + _of_scales(memory, model),
    )


def _of_scales(memory: MemoryUse, model: Model) -> str:
    """Say what TFLM's dense layers need for a scale per channel, a multiplier and a shift each, where that is much."""
    dense = (each.operand(1) for each in model.main.operators if each.name == "FULLY_CONNECTED")
    need = 8 * sum(weights.shape[0] for weights in dense if weights is not None and weights.dtype is DType.FLOAT32)
    if need < _CLEARLY * memory.required_for_target:
        return ""
    return f"; a scale for each channel of dense layers takes {need:,} bytes beside it, one for all of a layer none"


def _of_islands(live: Sequence[TensorUse], model: Model) -> Iterator[Advice]:
    """Yield the advice to quantize what computes in floats between integers, where that is ``live`` at the peak."""
    makers = {(each.name, each.shape): maker for each, maker in float_islands(model.main).items()}
    floats = [each for each in live if each.type == "float32" and (each.name, each.shape) in makers]
    if not floats:
        return
    around = [makers[each.name, each.shape] for each in floats]
    readers = [use.operator for maker in around for output in maker.outputs for use in output.uses]
    found = dict.fromkeys(each.opcode.label for each in (*around, *readers))
    kinds = [kind for kind in found if kind not in ("DEQUANTIZE", "QUANTIZE")] or list(found)
    yield Advice(
        "integers",
        f"{' and '.join(kinds)} in floats between DEQUANTIZE and QUANTIZE take {sum(each.bytes for each in floats):,} "
        f"of the {sum(each.bytes for each in live):,} bytes at the peak, in integers a quarter of that: optimize uses "
        "these for maxima and clamps where that is exact; replace other layers that the quantizer leaves in floats "
        "(LeakyReLU by ReLU)",
    )


def _of_planner(memory: MemoryUse) -> Iterator[Advice]:
    """Yield the advice to carry the plan in the firmware where TFLM's own planner needs clearly more."""
    need, table = memory.required_for_target, memory.required_bytes.get("table")
    if table is not None and table < (1 - _CLEARLY) * need:
        yield Advice("codegen --planner table", f"{table:,} bytes to reserve: the plan is a table in the firmware")


def _of_kernels(report: Report, profile: KernelProfile) -> Iterator[Advice]:
    """Ask for the target where none is named: a portable plan shares fewer bytes."""
    if not profile.is_portable or report.target is not None or not _head_counts(report):
        return
    yield Advice("--target", f"{_TO_TRY}name your chip or core, for a plan for its kernels alone")


def _of_declined(report: Report) -> Iterator[Advice]:
    """Yield the smaller result that was declined, with its price."""
    declined, need = report.declined, report.after.bytes_for(report.objective)
    if declined is None:
        return
    price = [f"{percent(declined.slowdown)} run time", flash_in_words(declined.kernel_bytes)]
    if declined.tflm_since is not None:
        price.append(f"TFLM of {declined.tflm_since} or later")
    yield Advice(
        "--changes all",
        f"{declined.need:,} bytes ({change_in_percent(need, declined.need)}) at {', '.join(filter(None, price))}",
    )


def _of_stages(report: Report, options: Options) -> Iterator[Advice]:
    if not options.cascade:
        yield Advice("--changes stripes", f"{_TO_TRY}layers run a few rows at a time")
    if any(refusal.cause == "needs_approximation" for refusal in report.refused):
        yield Advice(
            "--allow-approximate",
            f"{_TO_TRY}splits concatenations, or runs unrolled steps as a loop, although integers are then rounded "
            "differently, and outputs differ",
        )


def _of_search(report: Report, options: Options) -> Iterator[Advice]:
    need, least = report.after.bytes_for(report.objective), report.least_in_stripes
    # Where the search for stripes had a choice, and its bound leaves room for a better answer.
    may_be_improved = least is not None and need > least and _head_counts(report)
    if options.cascade and options.effort != "thorough" and may_be_improved:
        higher = "normal or thorough" if options.effort == "quick" else "thorough"
        yield Advice(f"--effort {higher}", f"{_TO_TRY}compares more ways to cut the model into stripes; takes longer")


def _head_counts(report: Report) -> bool:
    """Return whether a smaller head would make the need smaller: TFLM's planner may need more than the head."""
    return report.objective == "head" or report.after.temporaries_for_target <= report.after.arena_bytes
