"""Programs that `tflite-memopt codegen` wrote, compiled with TFLM's sources for one of the table's builds."""

from __future__ import annotations

import re
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
    name: str,
    build: Build,
    sources: Sources,
    cache: Path,
    folder: Path,
    main: str,
    flags: Sequence[str] = (),
    ram: int | None = None,
) -> list[str]:
    """The command that starts a program of generated files, compiled beside them. Raises UsageError when that fails.

    ``ram``: bytes that an emulated core has for data, heap and stack; None: as much as the emulated board.
    """
    library = built_library(name, build, sources, cache)
    (folder / "debug_log.cc").write_text(DEBUG_LOG)
    program = folder / f"{main}.elf"
    includes = [f"-isystem{sources.folder / each}" for each in INCLUDES]
    common = [*SMALL, *_TFLM, *_MACROS[build.kernels], *flags, *includes]
    files = [str(folder / each) for each in (main, "model_data.cc", "debug_log.cc")]
    if build.machine is None:
        if ram is not None:
            raise UsageError(f"{name} runs on this machine, whose RAM is not limited: name a build for QEMU")
        _run(["g++", *common, *files, str(library), "-o", str(program)])
        return [str(program)]
    cpu = [*_CPUS[build.core], "-mthumb", "-funsigned-char"]
    startup = str(folder / "startup.o")
    _run(["arm-none-eabi-gcc", *cpu, "-O1", "-c", str(NATIVE / "startup.c"), "-o", startup])
    linked = (NATIVE / f"cortex-{build.core}.ld").read_text()
    if ram is not None:
        linked = re.sub(r"(DATA .*LENGTH = )\w+", rf"\g<1>{ram}", linked)
    (folder / "core.ld").write_text(linked)
    script = f"-T{folder / 'core.ld'}"
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
