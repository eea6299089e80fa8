"""Where esp-nn's kernels let an output lie on the input that they still read.

The generic C code was probed on the host: convolution, depthwise convolution, pooling, ADD, MUL and SOFTMAX need no
more distance than the reference kernels, in 31,236 random cases without a wrong byte, and plans for the reference
kernels computed the same bytes on all ten models that were run. The wrappers call the reference loops where taps are
dilated or where ADD and MUL broadcast. The code of the ESP32-S3 and P4 was not run, and nothing is permitted there.

Source: esp-nn commit d45b843c, src/*/*_opt.c and *_ansi.c; esp-tflite-micro commit 99f49e14, kernels/esp_nn.
"""

from __future__ import annotations

from functools import partial

from ...ir.dtype import DType
from ...ir.model import Operator
from ..reference import reference_relations
from ..relations.model import KernelReuse, ReuseRule
from .requests import Chip

REPLACED = frozenset(
    {
        "ADD",
        "AVERAGE_POOL_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "MAX_POOL_2D",
        "MUL",
        "SOFTMAX",
    }
)
"""Operators that have a file in kernels/esp_nn."""
_REPLACED_ELSEWHERE = frozenset({"HARD_SWISH", "LOGISTIC", "MEAN", "RELU6"})
"""Operators for which esp-nn has a kernel that other versions of the wrappers call."""
_WINDOWS = frozenset({"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"})


def relations(operator: Operator, chip: Chip) -> tuple[KernelReuse, ...]:
    """The reference rules, but for what was not probed: vector code, dense layers, groups, int4, batches."""
    if chip != "generic" and operator.name in REPLACED | _REPLACED_ELSEWHERE:
        return ()
    if operator.name == "FULLY_CONNECTED" or (operator.name in _WINDOWS and not _was_probed(operator)):
        return ()
    return reference_relations(operator)


def _was_probed(operator: Operator) -> bool:
    source = operator.inputs[0]
    if source is None or len(source.shape) != 4:
        return False
    if source.dtype is not DType.INT8:
        return True
    if operator.name not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return source.shape[0] == 1
    filters = operator.inputs[1]
    if filters is None or filters.dtype is not DType.INT8 or len(filters.shape) != 4:
        return False
    grouped = operator.name == "CONV_2D" and filters.shape[3] != source.shape[3]
    return source.shape[0] == 1 and not grouped


def rule_for(chip: Chip) -> ReuseRule:
    """The rule of one kind of chip."""
    return partial(relations, chip=chip)
