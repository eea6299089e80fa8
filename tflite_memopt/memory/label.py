"""A plan written into its model, with a label that says what it was made for."""

from __future__ import annotations

from ..errors import ModelFormatError
from ..io import offline_plan, plan_label
from ..io.metadata import detach_if_moved
from ..io.plan_label import PlanLabel
from ..ir.decision import NOTHING_DECIDED, Decision
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from .arrange import ModelPlacement, reuse_in_force


def attach_plan(
    model: Model, profile: KernelProfile, placement: ModelPlacement, original: Model, decision: Decision
) -> tuple[str, ...]:
    """Write the plan and its label into the model; the names of metadata that is left out.

    That is what names operators by their positions in the ``original``, once they have moved. ``decision``: with which
    another run makes the same model of the original. Where nothing was decided, what the original says of itself stays.
    """
    offline_plan.attach(model, placement.offsets)
    plan_label.attach(model, _label_of(profile, placement, _decided(decision, original)))
    return detach_if_moved(model, original)


def _label_of(profile: KernelProfile, placement: ModelPlacement, decision: str) -> PlanLabel | None:
    """The label to write beside a plan; None where there is no plan."""
    if not placement.offsets:
        return None
    overlaps = not profile.is_portable and any(use.kind != "view" for use in reuse_in_force(placement))
    return PlanLabel(profile.name, profile.target, overlaps, decision)


def _decided(decision: Decision, original: Model) -> str:
    """The decision, or the one of an earlier run that made the original."""
    if decision != NOTHING_DECIDED:
        return str(decision)
    try:
        before = plan_label.decode(original)
    except ModelFormatError:
        before = None  # a damaged label is written anew
    return (before.decision if before is not None else "") or str(decision)
