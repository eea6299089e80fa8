"""Programs that `tflite-memopt codegen` wrote, compiled with TFLM's sources for one of the table's builds."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from scripts.device_lab.build import NATIVE, built_library
from scripts.device_lab.builds import Build
from scripts.device_lab.sources import Sources
from tflite_memopt.errors import UsageError

SMALL = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-O1")
_TFLM = ("-DTF_LITE_STATIC_MEMORY", "-DNDEBUG")
_MACROS = {"reference": (), "cmsis": ("-DCMSIS_NN",), "espnn": ("-DESP_NN",)}
_CPUS = {
    "m3": ("-mcpu=cortex-m3", "-mfloat-abi=soft"),
    "m7": ("-mcpu=cortex-m7", "-mfloat-abi=hard"),
    "m55": ("-mcpu=cortex-m55", "-mfloat-abi=hard"),
}
INCLUDES = ("tflite-micro", "flatbuffers/include", "gemmlowp", "ruy")
DEBUG_LOG = """// Where messages go is the platform's: here to standard output.
#include <cstdarg>
#include <cstddef>
#include <cstdio>
extern "C" void DebugLog(const char* format, va_list args) { vprintf(format, args); }
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}
"""


def compiled_program(
    name: str, build: Build, sources: Sources, cache: Path, folder: Path, main: str, flags: Sequence[str] = ()
) -> list[str]:
    """The command that starts a program of generated files, compiled beside them. Raises UsageError when that fails."""
    library = built_library(name, build, sources, cache)
    (folder / "debug_log.cc").write_text(DEBUG_LOG)
    program = folder / f"{main}.elf"
    includes = [f"-isystem{sources.folder / each}" for each in INCLUDES]
    common = [*SMALL, *_TFLM, *_MACROS[build.kernels], *flags, *includes]
    files = [str(folder / each) for each in (main, "model_data.cc", "debug_log.cc")]
    if build.machine is None:
        _run(["g++", *common, *files, str(library), "-o", str(program)])
        return [str(program)]
    cpu = [*_CPUS[build.core], "-mthumb", "-funsigned-char"]
    startup = str(folder / "startup.o")
    _run(["arm-none-eabi-gcc", *cpu, "-O1", "-c", str(NATIVE / "startup.c"), "-o", startup])
    script = f"-T{NATIVE / f'cortex-{build.core}.ld'}"
    linking = ["-nostartfiles", script, f"-L{NATIVE}", "--specs=rdimon.specs", "-lm", "-Wl,--gc-sections"]
    sections = ["-ffunction-sections", "-fdata-sections"]
    _run(["arm-none-eabi-g++", *cpu, *common, *sections, *files, startup, str(library), *linking, "-o", str(program)])
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none", "-nic", "user,restrict=on"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    return ["qemu-system-arm", "-M", build.machine, *quiet, *semihosting, "-kernel", str(program)]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{command[0]} fails:\n{done.stderr[-4000:]}")
