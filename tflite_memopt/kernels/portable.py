"""The default profile: nothing but what holds for any kernel library. Views do: no library replaces their code."""

from __future__ import annotations

from .profile import KernelProfile
from .relations.views import view_reuses
from .requests.table import requests_of

PORTABLE = KernelProfile(
    name="portable",
    description="any kernel library: only views share bytes; scratch as in TFLM's reference kernels",
    requests=requests_of,
    relations=view_reuses,
)
