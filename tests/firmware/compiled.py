"""Generated files compiled with the real TFLM, for the host and for Cortex-M7 in QEMU, or with its interface alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.device_lab.build import NATIVE, built_library, default_cache, missing_tools
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.sources import VARIABLE, sources_from_environment

INTERFACE = Path(__file__).parent / "interface"
_WARNINGS = ("-Wall", "-Wextra", "-Werror")
_SMALL = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-O1")
_TFLM = ("-DTF_LITE_STATIC_MEMORY", "-DNDEBUG")
_MACROS = {"reference": (), "cmsis": ("-DCMSIS_NN",), "espnn": ("-DESP_NN",)}
_DEBUG_LOG = """#include <cstdarg>
#include <cstddef>
#include <cstdio>
extern "C" void DebugLog(const char* format, va_list args) { vprintf(format, args); }
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}
"""


def run_on(name: str, folder: Path, main: str, *macros: str) -> tuple[int, str]:
    """Exit code and output of a generated program, built for a runner's core and kernels; skipped without TFLM."""
    build, sources = BUILDS[name], sources_from_environment(default_cache())
    if sources is None:
        pytest.skip(f"no sources of TFLM: {VARIABLE} is not set")
    lacks = missing_tools(build) or ", ".join(sources.missing(build.library))
    if lacks:
        pytest.skip(f"{name}: {lacks}")
    library = built_library(name, build, sources, default_cache())
    (folder / "debug_log.cc").write_text(_DEBUG_LOG)
    program = folder / f"{main}.elf"
    includes = [
        f"-isystem{sources.folder / each}" for each in ("tflite-micro", "flatbuffers/include", "gemmlowp", "ruy")
    ]
    common = [*_SMALL, *_TFLM, *_MACROS[build.kernels], *macros, *includes]
    files = [str(folder / each) for each in (main, "model_data.cc", "debug_log.cc")]
    if build.machine is None:
        command = ["g++", *_WARNINGS, *common, *files, str(library), "-o", str(program)]
        start = [str(program)]
    else:
        cpu = ["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mthumb", "-funsigned-char"]
        startup = str(folder / "startup.o")
        _run(["arm-none-eabi-gcc", *cpu, "-O1", "-c", str(NATIVE / "startup.c"), "-o", startup])
        linking = ["-nostartfiles", f"-T{NATIVE / 'cortex-m7.ld'}", f"-L{NATIVE}", "--specs=rdimon.specs"]
        command = ["arm-none-eabi-g++", *_WARNINGS, *cpu, *common, *files, startup, str(library), *linking, "-lm"]
        command += ["-Wl,--gc-sections", "-ffunction-sections", "-o", str(program)]
        quiet = ["-display", "none", "-monitor", "none", "-serial", "none", "-nic", "user,restrict=on"]
        semihosting = ["-semihosting-config", "enable=on,target=native"]
        start = ["qemu-system-arm", "-M", build.machine, *quiet, *semihosting, "-kernel", str(program)]
    _run(command)
    done = subprocess.run(start, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def check_against_the_interface(folder: Path, *macros: str) -> str:
    """What a compiler says of all generated programs with TFLM's interface alone; empty when they are right."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    said = []
    for main in ("main.cc", "main_two_arenas.cc", "model_data.cc"):
        command = [compiler, *_SMALL, *_WARNINGS, *macros, f"-I{INTERFACE}", "-fsyntax-only", str(folder / main)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append(done.stderr)
    return "".join(said)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
