"""The table of kernel profiles.

The default profile, ``portable``: only facts that hold for any kernel library that was read (docs/kernels.md). Views
do: no library replaces their code, or by a copy that is right in place (``operators/move.py``).

Offsets are planned with the scratch of the reference kernels, the minimum of any firmware, but for a
few requests. Another library's scratch finds its place at run time: TFLM puts it into the first gap among the fixed
offsets. Reserving the largest scratch of all libraries in the plan would make every firmware pay for one: with Helium a
depthwise 3x3 asks for 4,464 bytes whatever its channels, on the ESP32-S3 for a copy of its input. So a plan is kept
only where it makes the arena no larger under any of ``libraries`` than TFLM's own planner would, and the report says
what each needs. Searches for stripes price run time as on Helium: it multiplies fastest, so calls and copies weigh
most there. Another library may still get slower, where stripes compute rows twice or sums are made in parts: what is
beyond the limit with any measured library is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ErrorKind, UsageError
from ..operators.table import portable_relations, relations_of
from .cmsis_nn import DSP, MVE, SCALAR
from .esp_nn import ESP_NN, ESP_NN_P4, ESP_NN_S3
from .prices import MVE_PRICES
from .profile import KernelProfile
from .requests import requests_of

REFERENCE = KernelProfile(
    name="reference",
    description="TFLM's reference kernels (tflite-micro 90b983c2b3f1), without CMSIS-NN or esp-nn",
    requests=requests_of,
    relations=relations_of,
    is_portable=False,
    measured_at="tflite-micro 90b983c2b3f1 on x86-64, and with GCC 12.2 on Cortex-M7 in QEMU 7.2",
)
"""TFLM's reference kernels, as in the tflite-micro wheel, so that every plan for them can be verified here."""
PORTABLE = KernelProfile(
    name="portable",
    description="any kernel library: only views and slices share bytes; scratch as of TFLM's reference kernels",
    requests=requests_of,
    relations=portable_relations,
    measured_at=REFERENCE.measured_at,
    libraries=(REFERENCE, SCALAR, DSP, MVE, ESP_NN, ESP_NN_S3, ESP_NN_P4),
    prices=MVE_PRICES,
)


PROFILES: Mapping[str, KernelProfile] = {
    profile.name: profile for profile in (PORTABLE, REFERENCE, SCALAR, DSP, MVE, ESP_NN, ESP_NN_S3, ESP_NN_P4)
}


def profile_named(name: str) -> KernelProfile:
    """Return a profile by name. Raises UsageError for an unknown one."""
    if not isinstance(name, str) or name not in PROFILES:
        raise UsageError(f"unknown kernel profile '{name}'; choose one of {', '.join(PROFILES)}", ErrorKind.UNKNOWN)
    return PROFILES[name]
