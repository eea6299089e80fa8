"""The runners of scripts/device, for tests; skipped with the reason where they cannot be built."""

from __future__ import annotations

from functools import cache

import pytest

from scripts.device_lab.build import build_runner, default_cache, missing_tools
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.sources import VARIABLE, sources_from_environment

HOST = tuple(name for name, build in BUILDS.items() if build.machine is None)
QEMU = tuple(name for name, build in BUILDS.items() if build.machine is not None)


def runner(name: str) -> list[str]:
    """The command of a build's runner, built on first use."""
    path, reason = _built(name)
    if path is None:
        pytest.skip(reason)
    return [path]


@cache
def _built(name: str) -> tuple[str | None, str]:
    sources = sources_from_environment(default_cache())
    if sources is None:
        return None, f"no sources of TFLM: {VARIABLE} is not set"
    lacks = missing_tools(BUILDS[name]) or ", ".join(sources.missing(BUILDS[name].library))
    if lacks:
        return None, f"{name}: {lacks}"
    return str(build_runner(name, BUILDS[name], sources, default_cache())), ""
