"""Flash of kernels: the cost of an operator kind that the model did not have.

Bytes of code and constants reachable from each kernel's registration, without the code that all kernels share: TFLM
90b983c2, reference kernels, arm-none-eabi-g++ 12.2.1 for Cortex-M4, ``-Os -ffunction-sections``, error messages kept,
linked with ``ld -r --gc-sections -u Register_KIND`` (November 2026). ``NDEBUG`` with ``TF_LITE_STRIP_ERROR_STRINGS``
took CONCATENATION to 2,108 bytes, DYNAMIC_UPDATE_SLICE to 1,852 and WHILE to 342.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..operators.table import OPERATORS


def flash_of(kinds: Iterable[str]) -> dict[str, int | None]:
    """Return the bytes of flash of each operator kind; None where they were not measured."""
    return {kind: None if kind not in OPERATORS else OPERATORS[kind].flash for kind in kinds}
