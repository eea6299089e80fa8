"""A plan written into its model, with a label that says what it was made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ModelFormatError
from ..io import offline_plan, plan_label
from ..io.metadata import detach_if_moved
from ..io.plan_label import PlanLabel
from ..ir.decision import NOTHING_DECIDED, Decision
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..version import __version__
from .arrange import ModelPlacement, reuse_in_force


def attach_plan(
    model: Model,
    profile: KernelProfile,
    placement: ModelPlacement,
    original: Model,
    decision: Decision,
    options: Mapping[str, Any],
) -> tuple[str, ...]:
    """Write the plan and its label into the model; the names of metadata that is left out.

    That is what names operators by their positions in the ``original``, once they have moved. ``decision`` and
    ``options`` (those that are not the default ones and shape the file): with which another run makes the same model of
    the original. Where nothing was decided, what the original says of itself stays.
    """
    offline_plan.attach(model, placement.offsets)
    plan_label.attach(model, _label_of(profile, placement, original, decision, options))
    return detach_if_moved(model, original)


def _label_of(
    profile: KernelProfile,
    placement: ModelPlacement,
    original: Model,
    decision: Decision,
    options: Mapping[str, Any],
) -> PlanLabel | None:
    """The label to write beside a plan; None where there is no plan."""
    if not placement.offsets:
        return None
    overlaps = not profile.is_portable and any(use.kind != "view" for use in reuse_in_force(placement))
    before = _label_before(original) if decision == NOTHING_DECIDED else None
    decided, asked = str(decision), dict(options)
    if before is not None:
        decided, asked = before.decision or decided, {**before.options, **options}
    return PlanLabel(profile.name, profile.target, overlaps, decided, __version__, asked)


def _label_before(original: Model) -> PlanLabel | None:
    """That of an earlier run, which made the original."""
    try:
        return plan_label.decode(original)
    except ModelFormatError:
        return None  # a damaged label is written anew
