"""Codec of the label beside an offline plan, the metadata entry ``tflite_memopt.plan``: which kernels it was made for.

TFLM does not look at it. The buffer is a JSON object in UTF-8, padded with spaces to a multiple of 16 bytes:
``kernels`` (profile), ``target`` (or null), ``overlaps``: whether some output lies on an input that its kernel still
reads, so that the plan is right with these kernels only, ``decision``: the value for ``--replay``, and ``version`` and
``options``: of the tool that wrote it, and its options.
schema/offline_plan.md has an example.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ...errors import ErrorKind, ModelFormatError
from ..ir.change import CHANNELS_LAST
from ..ir.model import Model
from . import offline_plan
from .metadata import remove_entries, replace_entry

LABEL_NAME = "tflite_memopt.plan"
_MULTIPLE = 16


@dataclass(frozen=True)
class PlanLabel:
    """The purpose of a plan and its origin."""

    kernels: str
    """Kernel profile that the plan was made for."""
    target: str | None
    """Target that it was made for; null for any."""
    overlaps: bool
    """True if outputs overwrite inputs that kernels still read: correct with these kernels only."""
    decision: str = ""
    """Decision for optimize --replay; empty in files without one."""
    version: str = ""
    """Version of the tool that wrote the file; empty in files without one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that differ from the defaults and determine the file, by name."""
    device: str | None = None
    """Chip or board that was named; null for a core or no target."""

    @property
    def channels_last(self) -> frozenset[str]:
        """Names of inputs and outputs that have their channels last, where the original had them first."""
        found = self.options.get(CHANNELS_LAST)
        return frozenset(map(str, found)) if isinstance(found, list) else frozenset()

    @property
    def calls(self) -> Literal["step", "hop"] | None:
        """What one call of the model is of another one; None where it is no part of one."""
        if self.options.get("slide") is not None:
            return "hop"
        return "step" if self.options.get("step") else None

    def is_wrong_with(self, kernels: str) -> bool:
        """Tell whether a kernel library may compute wrongly under the plan."""
        return self.overlaps and kernels != self.kernels


def decode(model: Model) -> PlanLabel | None:
    """Return the label of the model's plan; None when it has none. Raises ModelFormatError when it cannot be read."""
    buffers = [buffer for name, buffer in model.metadata if name == LABEL_NAME]
    if not buffers or buffers[-1].data is None:
        return None
    try:
        fields = json.loads(buffers[-1].data.tobytes().decode())
        target, device = (None if each is None else str(each) for each in (fields["target"], fields.get("device")))
        told = (str(fields.get("decision", "")), str(fields.get("version", "")), dict(fields.get("options", {})))
        return PlanLabel(str(fields["kernels"]), target, bool(fields["overlaps"]), *told, device)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFormatError(
            f"the metadata entry '{LABEL_NAME}' is damaged: optimize the model again", ErrorKind.DAMAGED
        ) from error


def attach(model: Model, label: PlanLabel | None) -> None:
    """Make this the model's one label; None removes it."""
    remove_entries(model, LABEL_NAME)
    if label is not None:
        text = json.dumps(asdict(label)).encode()
        replace_entry(model, LABEL_NAME, text.ljust(-(-len(text) // _MULTIPLE) * _MULTIPLE))


def detach(model: Model) -> None:
    """Remove every plan and its label, and the buffers that only these use."""
    offline_plan.detach(model)
    remove_entries(model, LABEL_NAME)
