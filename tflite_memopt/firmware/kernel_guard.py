"""What a compiler can tell of the kernels: by its own macros, and by those that the build of each library defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_CMSIS, _ESP = "defined(CMSIS_NN)", "defined(ESP_NN)"
_DSP, _MVE = "defined(__ARM_FEATURE_DSP)", "defined(__ARM_FEATURE_MVE)"
_OPTIMIZED = "defined(CONFIG_NN_OPTIMIZED)"
_S3 = "defined(CONFIG_IDF_TARGET_ESP32S3)"
_P4 = "(defined(CONFIG_IDF_TARGET_ESP32P4) || defined(CONFIG_IDF_TARGET_ESP32S31))"
_MACROS: Mapping[str, str] = {
    "reference": f"!{_CMSIS} && !{_ESP}",
    "cmsis-nn": f"{_CMSIS} && !{_DSP} && !{_MVE}",
    "cmsis-nn-dsp": f"{_CMSIS} && {_DSP} && !{_MVE}",
    "cmsis-nn-mve": f"{_CMSIS} && {_MVE}",
    "esp-nn": f"{_ESP} && !({_OPTIMIZED} && ({_S3} || {_P4}))",
    "esp-nn-s3": f"{_ESP} && {_OPTIMIZED} && {_S3}",
    "esp-nn-p4": f"{_ESP} && {_OPTIMIZED} && {_P4}",
}
"""CMSIS_NN and ESP_NN are what TFLM's makefile and esp-tflite-micro define; CONFIG_... are of ESP-IDF's sdkconfig.h, by
which esp-nn chooses its code (include/esp_nn.h); the others are the compiler's own."""


@dataclass(frozen=True)
class KernelCase:
    """The libraries that firmware may link where a preprocessor's ``condition`` holds, and none before it."""

    condition: str
    libraries: tuple[str, ...]


CASES = (
    KernelCase(_S3, ("reference", "esp-nn", "esp-nn-s3")),
    KernelCase(_P4, ("reference", "esp-nn", "esp-nn-p4")),
    KernelCase("defined(CONFIG_IDF_TARGET)", ("reference", "esp-nn")),
    KernelCase(_ESP, ("reference", "esp-nn", "esp-nn-s3", "esp-nn-p4")),
    KernelCase(_MVE, ("reference", "cmsis-nn-mve")),
    KernelCase(_DSP, ("reference", "cmsis-nn-dsp")),
    KernelCase("", ("reference", "cmsis-nn")),
)
"""For a plan that is right with any kernels. The chip decides and not CMSIS_NN or ESP_NN, which a program may have left
undefined; but ESP_NN alone names no chip. The last one, without a condition, is for everything else."""


def condition_of(kernels: str) -> str:
    """The preprocessor's condition under which the kernels of a profile are linked; "1" for any kernels."""
    return _MACROS.get(kernels, "1")
