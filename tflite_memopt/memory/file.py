"""Plans in files: read a model with its plan, write a plan with a label that names its target and kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..errors import ErrorKind, ModelFormatError, UnsupportedModelError
from ..evidence.proof import Places, stream_of
from ..kernels.boards import usual_tflm
from ..kernels.profile import KernelProfile
from ..kernels.since import PRESENT, TflmBuild, build_named
from ..kernels.targets import profile_for
from ..model.analysis.lifetimes import compute_timeline
from ..model.analysis.loops import mark_placeholders
from ..model.io import offline_plan, plan_label
from ..model.io.metadata import detach_if_moved
from ..model.io.plan_label import PlanLabel
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from ..model.ir.change import NOTHING_DECIDED, Decision
from ..model.ir.check import check_model, npu_operators
from ..model.ir.model import Model, Tensor
from ..model.ir.tensors import in_head
from ..options import Hop
from ..solvers.graph.interval import intersect
from ..version import __version__
from .arrange import ModelPlacement, reuse_in_force
from .layout import memory_layout, offsets_in_force, places_of
from .problems import labeled_ties, tie_positions


def mark_npu_places(model: Model, planned: Mapping[Tensor, int]) -> None:
    """Fix the tensors that an operator of an NPU reads or writes, and those that are alive while it runs.

    The latter lie in memory that the NPU leaves alone, as only its compiler knows; tensors that the plan leaves to TFLM
    are not among them, since TFLM keeps it clear of the NPU's memory. Raises UnsupportedModelError where the file says
    no offset for an operand: then its command stream is right by luck alone.
    """
    operators = [operator for graph in model.graphs for operator in npu_operators(graph)]
    if not operators:
        return
    timeline = compute_timeline(model)
    for operator in operators:
        span = timeline.spans.get(operator)
        if span is None:
            continue
        for tensor in (*operator.present_inputs(), *operator.outputs):
            if in_head(tensor) and tensor not in planned:
                raise UnsupportedModelError(
                    f"operator {operator.opcode.label}: the file has no offset for its tensor '{tensor.name}', to "
                    "which the NPU's commands refer; compile the model with Vela again, as it was before it was "
                    "planned, since Vela keeps the memory plan of the file that it compiles",
                    ErrorKind.PLACE,
                )
        for tensor, life in timeline.tensors.items():
            if tensor in planned and intersect(life, span):
                tensor.fixed_offset = planned[tensor]


def read_planned(data: bytes, name: str | None = None) -> Model:
    """Return the model of a file, checked, with the variables marked that its plan lets a loop's result grow in.

    A reader that plans the file again needs these marks: without them such a variable has a first value to keep.
    Tensors with addresses in an NPU's commands stay where the plan has them. ``name``: of the file, for messages.
    Raises ModelFormatError for a bad file, UnsupportedModelError where the NPU's places are not said.
    """
    with naming(name):
        model = read_model(data)
        check_model(model)  # loops are followed next: their subgraphs must be there
        planned = offline_plan.decode(model) or {}
        mark_placeholders(model, planned)
        mark_npu_places(model, planned)
    return model


def without_foreign_plan(data: bytes, name: str | None = None) -> tuple[bytes, str | None]:
    """Return a file without a memory plan that is of another graph, and why it is; as it came where there is none.

    ``name``: as of :func:`read_planned`. Raises as that.
    """
    with naming(name):
        model = read_model(data)
        wrong = offline_plan.misfit(model)
    if wrong is None:
        return data, None
    check_model(model)
    plan_label.detach(model)
    return write_model(model), wrong


def places_in_force(model: Model, profile: KernelProfile) -> Places:
    """Compute the places at which TFLM runs a model: those of the plan in its file, and those that TFLM finds itself.

    With the ties that the plan was made with. ``model``: as ``read_planned`` returns it. Raises ModelFormatError for a
    plan of another graph, UsageError for ties of one.
    """
    layout = memory_layout(model, profile)
    offsets = offsets_in_force(layout, offline_plan.decode(model) or {})
    places = places_of(model, layout, offsets, profile)
    return places if model.ties else replace(places, ties=tie_positions(model, labeled_ties(model)))


def label_in_force(model: Model) -> PlanLabel | None:
    """Return the label of the plan in a file; None without a plan of this tool."""
    return plan_label.decode(model) if offline_plan.decode(model) else None


def label_of_others(model: Model, profile: KernelProfile) -> PlanLabel | None:
    """Return the label of a plan for some kernels, where a run is for any library; None elsewhere."""
    label = _label_before(model)
    return label if label is not None and profile.libraries and label.kernels != profile.name else None


def check_label(model: Model, original: Model | None = None) -> None:
    """Raise ModelFormatError where a label of ``--step`` or ``--slide`` says other rows or states than the model has.

    ``original``: of whose rows, windows, and input it is compared as well.
    """
    label = plan_label.decode(model)
    if label is None or label.calls is None:
        return
    tied = {source for _, source in tie_positions(model, labeled_ties(model))}
    free = [tensor for at, tensor in enumerate(model.main.inputs) if at not in tied]
    hop, fault = label.options.get("slide"), None
    if hop is not None:
        fault = _fault_of_hop(free, str(hop), model, original)
    if label.options.get("step") and free != [*model.main.inputs[:1]]:
        fault = f"says --step and ties {len(tied)} of {len(model.main.inputs)} inputs, not all behind the first one"
    if fault is not None:
        raise ModelFormatError(f"the label in the file {fault}: optimize the model again", ErrorKind.DAMAGED)


def _fault_of_hop(free: Sequence[Tensor], text: str, model: Model, original: Model | None) -> str | None:
    """Return what is wrong with the value of ``--slide`` in a label; ``free``: the inputs that are in no tie."""
    hop = Hop.of(text)
    moving = [tensor for tensor in free if hop.input in (None, tensor.name)]
    if len(moving) != 1:
        return f"says --slide {text}, and {len(moving)} inputs can be the one that moves"
    shape = moving[0].shape  # a window of one column lies in one row
    if len(shape) != 4 or hop.rows not in (shape[1:2] if shape[1] > 1 else shape[1:3]):
        return f"says a hop of {hop.rows} rows, its input '{moving[0].name}' is {list(shape)}"
    if hop.window is None or hop.window <= hop.rows:
        return f"says --slide {text}, which has no window of more rows"
    if original is None:
        return None
    stream = stream_of("hop", model, original)
    at = 0 if stream is None else stream.image
    new, whole = model.main.inputs[at], original.main.inputs[at]
    if new is not moving[0] or new.elements * hop.window != whole.elements * hop.rows:
        return f"says --slide {text}, the input '{whole.name}' of the original is {list(whole.shape)}"
    return None


def build_of(label: PlanLabel | None, tflm: str | None = None, target: str | None = None) -> TflmBuild:
    """Return the build of TFLM that a file was made for, TFLM's makefile's without a label; ``tflm``: another one.

    ``target``: the board or chip that was named in place of the label's, if any: the file is for its TFLM, unless the
    label names one.
    """
    made_for = None if label is None else label.options.get("tflm")
    return build_named(tflm or str(made_for or usual_tflm(target) or PRESENT.name))


def profile_of(label: PlanLabel | None) -> KernelProfile:
    """Return the kernels and the build of TFLM that a plan was made for; those of any firmware without a label."""
    if label is None:
        return profile_for(None)
    return profile_for(label.target, label.kernels, build=build_of(label))


@contextmanager
def naming(name: str | None) -> Iterator[None]:
    """Name the file in the errors that it causes; None where it has no name."""
    try:
        yield
    except (ModelFormatError, UnsupportedModelError) as error:
        if name is None:
            raise
        raise type(error)(f"'{name}': {error}", error.kind) from error


def attach_plan(
    model: Model,
    profile: KernelProfile,
    placement: ModelPlacement,
    original: Model,
    decision: Decision,
    options: Mapping[str, Any],
    device: str | None = None,
) -> tuple[str, ...]:
    """Write the plan and its label into the model; the names of metadata that is left out.

    These name operators by their positions in the ``original``, which have moved. ``decision`` and
    ``options`` (those that are not the default ones and shape the file): with which another run makes the same model of
    the original. ``device``: the chip or board that was named. Where nothing was decided, what the original says of
    itself stays.
    """
    offline_plan.attach(model, placement.offsets)
    overlaps = not profile.is_portable and any(use.kind != "view" for use in reuse_in_force(placement))
    before = _label_before(original) if decision == NOTHING_DECIDED else None
    decided, asked = str(decision), dict(options)
    if before is not None:
        decided, asked = before.decision or decided, {**before.options, **options}
    label = PlanLabel(profile.name, profile.target, overlaps, decided, __version__, asked, device)
    plan_label.attach(model, label if placement.offsets else None)  # without a plan there is none
    return detach_if_moved(model, original)


def _label_before(original: Model) -> PlanLabel | None:
    """Return the label of an earlier run, which made the original."""
    try:
        return plan_label.decode(original)
    except ModelFormatError:
        return None  # a damaged label is replaced
