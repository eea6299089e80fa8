"""The three profiles of CMSIS-NN."""

from __future__ import annotations

from functools import partial

from ..prices import DSP_PRICES, MVE_PRICES, SCALAR_PRICES, Prices
from ..profile import KernelProfile
from .paths import Build
from .relations import miscomputes, rule_for
from .requests import requests

_MEASURED_AT = "tflite-micro 90b983c2b3f1 with CMSIS-NN 4ab83cc3, GCC 12.2"


def _profile(name: str, build: Build, cores: str, machine: str, prices: Prices) -> KernelProfile:
    return KernelProfile(
        name=name,
        description=f"CMSIS-NN 4ab83cc3, {cores}",
        requests=partial(requests, build=build),
        relations=rule_for(build),
        is_portable=False,
        in_wheel=False,
        miscomputes=partial(miscomputes, build=build),
        measured_at=f"{_MEASURED_AT}, {machine} in QEMU 7.2",
        prices=prices,
    )


SCALAR = _profile("cmsis-nn", "scalar", "no SIMD: Cortex-M0, M3", "Cortex-M3", SCALAR_PRICES)
DSP = _profile("cmsis-nn-dsp", "dsp", "DSP extension: Cortex-M4, M7, M33", "Cortex-M7", DSP_PRICES)
MVE = _profile("cmsis-nn-mve", "mve", "Helium: Cortex-M55, M85", "Cortex-M55", MVE_PRICES)
