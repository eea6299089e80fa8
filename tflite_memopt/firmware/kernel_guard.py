"""What a compiler can check of the kernels: macros that the build of each library defines."""

from __future__ import annotations

from collections.abc import Mapping

_CMSIS, _ESP = "defined(CMSIS_NN)", "defined(ESP_NN)"
_DSP, _MVE = "defined(__ARM_FEATURE_DSP)", "defined(__ARM_FEATURE_MVE)"
_MACROS: Mapping[str, str] = {
    "reference": f"!{_CMSIS} && !{_ESP}",
    "cmsis-nn": f"{_CMSIS} && !{_DSP} && !{_MVE}",
    "cmsis-nn-dsp": f"{_CMSIS} && {_DSP} && !{_MVE}",
    "cmsis-nn-mve": f"{_CMSIS} && {_MVE}",
    "esp-nn": _ESP,
    "esp-nn-s3": _ESP,
    "esp-nn-p4": _ESP,
}
"""CMSIS_NN and ESP_NN are what TFLM's makefile and esp-tflite-micro define; the others are the compiler's own."""


def condition_of(kernels: str) -> str:
    """The preprocessor's condition under which the kernels of a profile are linked; "1" for any kernels."""
    return _MACROS.get(kernels, "1")
