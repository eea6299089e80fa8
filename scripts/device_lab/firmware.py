"""Programs that `tflite-memopt codegen` wrote, compiled with TFLM's sources for one of the table's builds."""

from __future__ import annotations

import hashlib
import os
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
_HEADERS = """// What every program includes of TFLM: to parse it takes most of the time to compile one.
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"
"""
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
    compiled = str(folder / f"{main}.o")
    files = [compiled, *(str(folder / each) for each in ("model_data.cc", "debug_log.cc"))]
    if build.machine is None:
        if ram is not None:
            raise UsageError(f"{name} runs on this machine, whose RAM is not limited: name a build for QEMU")
        compiler = ["g++", *common]
        _run([*compiler, *_parsed_headers(compiler, library.parent), "-c", str(folder / main), "-o", compiled])
        _run([*compiler, *files, str(library), "-o", str(program)])
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
    compiler = ["arm-none-eabi-g++", *cpu, *common, *sections]
    _run([*compiler, *_parsed_headers(compiler, library.parent), "-c", str(folder / main), "-o", compiled])
    _run([*compiler, *files, startup, str(library), *linking, "-o", str(program)])
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none", "-nic", "user,restrict=on"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    return ["qemu-system-arm", "-M", build.machine, *quiet, *semihosting, "-kernel", str(program)]


def _parsed_headers(compiler: Sequence[str], folder: Path) -> list[str]:
    """Flags by which a compiler takes TFLM's headers as it has parsed them; they are kept for each set of its flags."""
    kept = folder / f"headers-{hashlib.sha256(' '.join(compiler).encode()).hexdigest()[:16]}"
    header, parsed = kept / "tflm.h", kept / "tflm.h.gch"
    if not parsed.exists():
        kept.mkdir(exist_ok=True)
        header.write_text(_HEADERS)
        new = kept / f"{os.getpid()}.gch"  # the rename comes last, so that it is whole or absent
        _run([*compiler, "-x", "c++-header", str(header), "-o", str(new)])
        new.rename(parsed)
    return ["-include", str(header)]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{command[0]} fails:\n{done.stderr[-4000:]}")
