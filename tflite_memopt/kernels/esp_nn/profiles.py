"""The three profiles of esp-nn."""

from __future__ import annotations

from functools import partial

from ..profile import KernelProfile
from .relations import rule_for
from .requests import Chip, requests


def _profile(name: str, chip: Chip, chips: str, measured_at: str | None) -> KernelProfile:
    return KernelProfile(
        name=name,
        description=f"esp-nn 1.2.3 (d45b843c), {chips}",
        requests=partial(requests, chip=chip),
        relations=rule_for(chip),
        is_portable=False,
        in_wheel=False,
        measured_at=measured_at,
    )


_MEASURED_AT = "esp-nn d45b843c with the wrappers of esp-tflite-micro 99f49e14 over tflite-micro 90b983c2b3f1, x86-64"

ESP_NN = _profile("esp-nn", "generic", "generic C: ESP32, ESP32-C3", _MEASURED_AT)
ESP_NN_S3 = _profile("esp-nn-s3", "s3", "vector code of the ESP32-S3, read and not run", None)
ESP_NN_P4 = _profile("esp-nn-p4", "p4", "vector code of the ESP32-P4, read and not run", None)
