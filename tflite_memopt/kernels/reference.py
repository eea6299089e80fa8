"""TFLM's reference kernels: what the tflite-micro wheel runs, so that every plan for them can be verified here."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.model import Operator
from .profile import KernelProfile
from .relations.accumulators import transpose_conv_reuses
from .relations.in_place import in_place_reuses
from .relations.model import KernelReuse, ReuseRule
from .relations.moves import pad_reuses, slice_reuses
from .relations.views import view_reuses
from .relations.windows import resize_reuses, window_reuses
from .requests.table import requests_of

_WINDOWS = ("AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D")
_RULES: Mapping[str, ReuseRule] = {
    **dict.fromkeys(_WINDOWS, window_reuses),
    **dict.fromkeys(("PAD", "PADV2"), pad_reuses),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), resize_reuses),
    "TRANSPOSE_CONV": transpose_conv_reuses,
}


def reference_relations(operator: Operator) -> tuple[KernelReuse, ...]:
    """Views, in-place and overlap; nothing for an operator that no rule knows."""
    if operator.name in _RULES:
        return _RULES[operator.name](operator)
    if operator.name in ("SLICE", "STRIDED_SLICE"):
        return view_reuses(operator) + slice_reuses(operator)
    return view_reuses(operator) or in_place_reuses(operator)


REFERENCE = KernelProfile(
    name="reference",
    description="TFLM's reference kernels (tflite-micro 90b983c2b3f1), without CMSIS-NN or esp-nn",
    requests=requests_of,
    relations=reference_relations,
    is_portable=False,
    measured_at="tflite-micro 90b983c2b3f1 on x86-64, and with GCC 12.2 on Cortex-M7 in QEMU 7.2",
)
