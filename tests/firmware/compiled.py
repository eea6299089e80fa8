"""Compile generated files: against TFLM's interface alone, and with a TFLM that somebody has built.

``TFLITE_MEMOPT_TFLM=FOLDER`` names such a build, for this machine and with the reference kernels: TFLM's headers as
its ``create_tflm_tree.py`` lays them out (``tensorflow/``, ``third_party/``), or its checkout with ``flatbuffers``,
``gemmlowp`` and ``ruy`` beside it, and one static library (``*.a``) in ``lib/`` or in the folder itself.

``TFLITE_MEMOPT_HEADERS=FOLDER`` names the headers of xmos-ai-tools, a TFLM in the namespace ``tflite_micro``: with
gemmlowp's ``fixedpoint.h`` of the system, generated C++ compiles against them. It does not link.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

VARIABLE, HEADERS = "TFLITE_MEMOPT_TFLM", "TFLITE_MEMOPT_HEADERS"
_GEMMLOWP = Path("/usr/include/gemmlowp")
INTERFACE = Path(__file__).parent / "interface"
SMALL = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-O1")
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
_DEFINED = ("-DTF_LITE_STATIC_MEMORY", "-DNDEBUG")
_HEADERS = ("", "tflite-micro", *(f"third_party/{name}" for name in ("flatbuffers/include", "gemmlowp", "ruy")))
_HEADERS_BESIDE = ("flatbuffers/include", "gemmlowp", "ruy")
DEBUG_LOG = """// Where messages go is the platform's: here to standard output.
#include <cstdarg>
#include <cstddef>
#include <cstdio>
extern "C" void DebugLog(const char* format, va_list args) { vprintf(format, args); }
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}
"""


@dataclass(frozen=True)
class BuiltTflm:
    """TFLM's headers and its static library."""

    includes: tuple[Path, ...]
    library: Path

    def header(self, name: str) -> Path:
        """Return the path of a header."""
        return next(folder / name for folder in self.includes if (folder / name).is_file())


def built_tflm() -> BuiltTflm:
    """Return the build that the environment names; skip the test where it names none."""
    named = os.environ.get(VARIABLE)
    if not named:
        pytest.skip(f"{VARIABLE} names no built TFLM (CONTRIBUTING.md)")
    folder = Path(named)
    libraries = [*folder.glob("lib/*.a"), *folder.glob("*.a")]
    assert len(libraries) == 1, f"{VARIABLE}: {len(libraries)} static libraries in {folder}, expected one"
    includes = [folder / name for name in (*_HEADERS, *_HEADERS_BESIDE)]
    return BuiltTflm(tuple(each for each in includes if each.is_dir()), libraries[0])


def compiler() -> str:
    """Return a C++ compiler; skip the test where there is none."""
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("no C++ compiler is installed")
    return found


def run_on_tflm(folder: Path, main: str, *flags: str) -> tuple[int, str]:
    """Compile and link a program of generated files with TFLM, run it, and return its exit code and output.

    Raises RuntimeError with the compiler's message where it does not compile.
    """
    tflm = built_tflm()
    (folder / "debug_log.cc").write_text(DEBUG_LOG)
    program = folder / f"{main}.elf"
    includes = [f"-isystem{each}" for each in tflm.includes]
    files = [str(folder / name) for name in (main, "model_data.cc", "debug_log.cc")]
    command = [compiler(), *SMALL, *_DEFINED, *_WARNINGS, *flags, *includes, *files, str(tflm.library)]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr[-4000:])
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def headers_of_a_tflm() -> Path:
    """Return the headers that the environment names; skip the test where it names none."""
    named = os.environ.get(HEADERS)
    if not named or not _GEMMLOWP.is_dir():
        pytest.skip(f"{HEADERS} names no headers of TFLM, or gemmlowp is not installed (CONTRIBUTING.md)")
    return Path(named)


def check_against_headers(folder: Path, *files: str) -> str:
    """Return the compiler's messages on generated files with the headers that the environment names."""
    includes = [f"-isystem{each}" for each in (headers_of_a_tflm(), _GEMMLOWP)]
    return _said_of(folder, files, "-Dtflite=tflite_micro", *includes)


OF_A_PROGRAM = ("main.cc", "model_data.cc")
RIGHT = ("-DTF_LITE_STATIC_MEMORY", "-DTFLITE_MEMOPT_KERNELS_ARE_RIGHT")
"""Macros that the firmware of a program defines."""
OF_A_MODEL = ("main.cc", "main_two_arenas.cc", "model_data.cc", "snippets/arduino.ino")


def check_against_the_interface(folder: Path, *macros: str, mains: Sequence[str] = OF_A_MODEL) -> str:
    """Return the compiler's messages on generated files with TFLM's interface alone; empty when all is well."""
    return _said_of(folder, mains, *macros, f"-I{INTERFACE}", f"-I{folder}")


def _said_of(folder: Path, files: Sequence[str], *options: str) -> str:
    said = []
    for file in filter(lambda each: (folder / each).exists(), files):  # the sketch is not for every model
        command = [compiler(), *SMALL, *_WARNINGS, *options, "-fsyntax-only", "-x", "c++", str(folder / file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append(done.stderr)
    return "".join(said)
