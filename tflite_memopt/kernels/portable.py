"""The default profile: nothing but what holds for any kernel library, so all live tensors are disjoint."""

from __future__ import annotations

from .profile import KernelProfile
from .requests.table import requests_of

PORTABLE = KernelProfile(
    name="portable",
    description="any kernel library: live tensors are kept apart; scratch as in TFLM's reference kernels",
    requests=requests_of,
)
