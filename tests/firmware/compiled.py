"""Generated files compiled with the real TFLM, for the host and for Cortex-M7 in QEMU, or with its interface alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.device_lab.build import default_cache, missing_tools
from scripts.device_lab.builds import BUILDS, Build
from scripts.device_lab.firmware import SMALL, compiled_program
from scripts.device_lab.sources import VARIABLE, Sources, sources_from_environment

INTERFACE = Path(__file__).parent / "interface"
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
MAINS = ("main.cc", "main_two_arenas.cc", "model_data.cc", "snippets/arduino.ino")
OF_A_PROGRAM = ("main.cc", "model_data.cc")
RIGHT = ("-DTF_LITE_STATIC_MEMORY", "-DTFLITE_MEMOPT_KERNELS_ARE_RIGHT")
"""What a program asks its firmware to define."""


def lab_for(name: str) -> tuple[Build, Sources]:
    """A build of the device lab and TFLM's sources; skipped where something is missing."""
    build, sources = BUILDS[name], sources_from_environment(default_cache())
    if sources is None:
        pytest.skip(f"no sources of TFLM: {VARIABLE} is not set")
    lacks = missing_tools(build) or ", ".join(sources.missing(build.library))
    if lacks:
        pytest.skip(f"{name}: {lacks}")
    return build, sources


def run_on(name: str, folder: Path, main: str, *flags: str) -> tuple[int, str]:
    """Exit code and output of a generated program, built for a runner's core and kernels; skipped without TFLM."""
    build, sources = lab_for(name)
    start = compiled_program(name, build, sources, default_cache(), folder, main, (*_WARNINGS, *flags))
    done = subprocess.run(start, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def check_against_the_interface(folder: Path, *macros: str, mains: Sequence[str] = MAINS) -> str:
    """What a compiler says of all generated programs with TFLM's interface alone; empty when they are right."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    said = []
    for main in mains:
        include = [f"-I{INTERFACE}", f"-I{folder}", "-fsyntax-only", "-x", "c++"]
        command = [compiler, *SMALL, *_WARNINGS, *macros, *include, str(folder / main)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append(done.stderr)
    return "".join(said)
