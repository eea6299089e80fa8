"""The label of a plan: what it was made for."""

from __future__ import annotations

from ..io.plan_label import PlanLabel
from ..kernels.profile import KernelProfile
from .arrange import ModelPlacement, reuse_in_force


def label_of(profile: KernelProfile, placement: ModelPlacement) -> PlanLabel | None:
    """The label to write beside a plan; None where there is no plan."""
    if not placement.offsets:
        return None
    overlaps = any(use.kind != "view" for use in reuse_in_force(placement))
    return PlanLabel(profile.name, profile.target, overlaps)
