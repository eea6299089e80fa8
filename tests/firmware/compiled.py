"""Compile generated files: against TFLM's interface alone, and with a TFLM that somebody has built.

``TFLITE_MEMOPT_TFLM=FOLDER`` names such a build, for this machine and with the reference kernels: TFLM's headers as
its ``create_tflm_tree.py`` lays them out (``tensorflow/``, ``third_party/``), or its checkout with ``flatbuffers``,
``gemmlowp`` and ``ruy`` beside it, and one static library (``*.a``) in ``lib/`` or in the folder itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

VARIABLE = "TFLITE_MEMOPT_TFLM"
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


def check_against_the_interface(folder: Path, *macros: str) -> str:
    """Return the compiler's messages on all generated programs with TFLM's interface alone; empty when all is well."""
    said = []
    for main in ("main.cc", "main_two_arenas.cc", "model_data.cc", "snippets/arduino.ino"):
        include = [f"-I{INTERFACE}", f"-I{folder}", "-fsyntax-only", "-x", "c++"]
        command = [compiler(), *SMALL, *_WARNINGS, *macros, *include, str(folder / main)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append(done.stderr)
    return "".join(said)
