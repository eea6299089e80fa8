"""The table of kernel profiles."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import UsageError
from .cmsis_nn.profiles import DSP, MVE, SCALAR
from .esp_nn.profiles import ESP_NN, ESP_NN_P4, ESP_NN_S3
from .portable import PORTABLE
from .profile import KernelProfile
from .reference import REFERENCE

PROFILES: Mapping[str, KernelProfile] = {
    profile.name: profile for profile in (PORTABLE, REFERENCE, SCALAR, DSP, MVE, ESP_NN, ESP_NN_S3, ESP_NN_P4)
}


def profile_named(name: str) -> KernelProfile:
    """A profile by name. Raises UsageError for an unknown one."""
    if name not in PROFILES:
        raise UsageError(f"unknown kernel profile '{name}'; choose one of {', '.join(PROFILES)}")
    return PROFILES[name]
