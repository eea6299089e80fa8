"""Flash of kernels: the cost of an operator kind that the model did not have.

Bytes of code and constants reachable from each kernel's registration, without the code that all kernels share: TFLM
90b983c2, reference kernels, arm-none-eabi-g++ 12.2.1 for Cortex-M4, ``-Os -ffunction-sections``, error messages kept,
linked with ``ld -r --gc-sections -u Register_KIND`` (November 2026). ``NDEBUG`` with ``TF_LITE_STRIP_ERROR_STRINGS``
took CONCATENATION to 2,108 bytes, DYNAMIC_UPDATE_SLICE to 1,852 and WHILE to 342.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

FLASH: Mapping[str, int] = {
    "ADD": 6217,
    "AVERAGE_POOL_2D": 2675,
    "CAST": 1715,
    "CONCATENATION": 4348,
    "CONV_2D": 5213,
    "DEPTHWISE_CONV_2D": 4649,
    "DEQUANTIZE": 1050,
    "DYNAMIC_UPDATE_SLICE": 2748,
    "EXPAND_DIMS": 1387,
    "FULLY_CONNECTED": 4513,
    "GATHER": 1974,
    "LESS": 4516,
    "MAX_POOL_2D": 2829,
    "MEAN": 4179,
    "MINIMUM": 4840,
    "MUL": 6145,
    "PACK": 1124,
    "PAD": 3915,
    "PADV2": 3927,
    "QUANTIZE": 2426,
    "RESHAPE": 991,
    "RESIZE_NEAREST_NEIGHBOR": 2208,
    "SELECT_V2": 5494,
    "SLICE": 2101,
    "SPLIT": 1411,
    "SPLIT_V": 1687,
    "STRIDED_SLICE": 5177,
    "SUB": 6400,
    "SUM": 4094,
    "WHILE": 976,
}


def flash_of(kinds: Iterable[str]) -> dict[str, int | None]:
    """Return the bytes of flash of each operator kind; None where they were not measured."""
    return {kind: FLASH.get(kind) for kind in kinds}
