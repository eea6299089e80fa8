"""Compile generated files, and run them on the TFLM of PyPI's tflite-micro wheel, or on one that somebody has built.

The wheel's shared library exports TFLM's C++. A program is compiled against declarations of our own (``interface/``) as
a shared library, and its ``main`` is called in a Python process that has loaded the wheel's: nothing of TFLM is built.
A probe, once for each process of tests, checks that the declarations fit the library.

``TFLITE_MEMOPT_TFLM=FOLDER`` names a TFLM of the user's own instead, for this machine and with the reference kernels:
TFLM's headers as its ``create_tflm_tree.py`` lays them out (``tensorflow/``, ``third_party/``), or its checkout with
``flatbuffers``, ``gemmlowp`` and ``ruy`` beside it, and one static library (``*.a``) in ``lib/`` or in the folder.

``TFLITE_MEMOPT_HEADERS=FOLDER`` names the headers of xmos-ai-tools, a TFLM in the namespace ``tflite_micro``: with
gemmlowp's ``fixedpoint.h`` of the system, generated C++ compiles against them. It does not link.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

import tflite_memopt
from tests.model_builder import ModelBuilder
from tflite_memopt.firmware.resolver import CUSTOM, builtin_method
from tflite_memopt.model.io.flatbuffer import builtin_code
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.operators.table import REFERENCE

VARIABLE, HEADERS = "TFLITE_MEMOPT_TFLM", "TFLITE_MEMOPT_HEADERS"
HOST = "host" if os.environ.get(VARIABLE) else "wheel"
"""The target of firmware that runs here."""
_GEMMLOWP = Path("/usr/include/gemmlowp")
INTERFACE = Path(__file__).parent / "interface"
PROBE = Path(__file__).parent / "probe.cc"
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

    With the wheel's TFLM, unless the environment names another one; skips the test where there is neither. Raises
    RuntimeError with the compiler's message where it does not compile.
    """
    files = [str(folder / name) for name in (main, "model_data.cc")]
    if not os.environ.get(VARIABLE):
        _check_layout()
        return _run_on_the_wheel(folder, files, *flags)
    tflm = built_tflm()
    (folder / "debug_log.cc").write_text(DEBUG_LOG)
    program = folder / f"{main}.elf"
    includes = [f"-isystem{each}" for each in tflm.includes]
    command = [compiler(), *SMALL, *_DEFINED, *_WARNINGS, *flags, *includes, *files, str(folder / "debug_log.cc")]
    _compile([*command, str(tflm.library), "-o", str(program)])
    return _output_of([str(program)])


_CALL = "import ctypes, sys; ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL); sys.exit(ctypes.CDLL(sys.argv[2]).main())"
IN_THE_WHEEL = ("TFLM_IN_MICRO", "TFLM=tflite::micro")
"""Macros for our declarations of TFLM, where the wheel has its classes."""
_ON_THE_WHEEL = (*(f"-D{each}" for each in IN_THE_WHEEL), "-fPIC", "-shared", "-Wl,-Bsymbolic")


def _run_on_the_wheel(folder: Path, files: Sequence[str], *flags: str) -> tuple[int, str]:
    program = folder / "program.so"
    includes = [f"-I{each}" for each in (folder, INTERFACE, _operators())]
    _compile([compiler(), *SMALL, *_DEFINED, *_WARNINGS, *_ON_THE_WHEEL, *flags, *includes, *files, "-o", str(program)])
    return _output_of(called_with_the_wheel(program))


def called_with_the_wheel(program: Path) -> list[str]:
    """Return the command that calls ``main`` of a shared library which takes its TFLM from the wheel."""
    return [sys.executable, "-c", _CALL, _library_of_the_wheel(), str(program)]


def run_sources(folder: Path, *files: str, flags: Sequence[str] = ()) -> tuple[int, str]:
    """Compile sources with the wheel's TFLM, each C++ but those that end in ``.c``, and call their ``main``."""
    _check_layout()
    objects = []
    for name in files:
        if name.endswith(".c"):
            objects.append(str(folder / f"{name}.o"))
            _compile(["gcc", "-fPIC", "-Wall", "-Werror", "-c", str(folder / name), "-o", objects[-1]])
        else:
            objects += ["-x", "c++", str(folder / name), "-x", "none"]
    return _run_on_the_wheel(folder, objects, *flags)


def _compile(command: Sequence[str]) -> None:
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr[-4000:])


def _output_of(command: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


@cache
def _library_of_the_wheel() -> str:
    """Return the wheel's shared library; skip the test where there is none."""
    found = find_spec("tflite_micro")
    if found is None or found.origin is None:
        pytest.skip("the tflite-micro wheel is not installed, and TFLITE_MEMOPT_TFLM names no built TFLM")
    (library,) = Path(found.origin).parent.rglob("_runtime.so")
    return str(library)


@cache
def _operators() -> Path:
    """Return a folder with the methods of a resolver, one for each operator of the table."""
    folder = Path(mkdtemp(prefix="operators"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    builtin = {builtin_method(name): f"{builtin_code(name)}" for name in REFERENCE if name not in CUSTOM}
    custom = {method: f'-1, "{name}"' for name, method in CUSTOM.items()}
    lines = [f"  TfLiteStatus {method}() {{ return Add({given}); }}\n" for method, given in (builtin | custom).items()]
    (folder / "operators.inc").write_text("".join(lines))
    return folder


@cache
def _check_layout() -> None:
    """Run the probe. Raises RuntimeError where the wheel's library is laid out in another way than we declare."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 6), zero_point=3), b.tensor("y", (1, 6), zero_point=3)
    data = write_model(b.finish(b.operator("RELU", (x,), (y,)).outputs[0]))
    memory = tflite_memopt.analyze(data, target=HOST).memory
    used = memory.arena_bytes + memory.tail_bytes["target"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        numbers = ", ".join(map(str, data))
        constants = f"constexpr unsigned kBytes = 6, kArena = {used};\n"
        text = f"alignas(16) constexpr unsigned char kModel[] = {{{numbers}}};\n{constants}"
        (folder / "probe_model.h").write_text(text)
        code, said = _run_on_the_wheel(folder, [str(PROBE)])
    if code:
        raise RuntimeError(f"{said or f'the probe ended with {code}'}: see tests/firmware/interface")


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


def interface_folders() -> tuple[Path, Path]:
    """Return the folders with our declarations of TFLM."""
    return INTERFACE, _operators()


def check_against_the_interface(folder: Path, *macros: str, mains: Sequence[str] = OF_A_MODEL) -> str:
    """Return the compiler's messages on generated files with TFLM's interface alone; empty when all is well."""
    return _said_of(folder, mains, *macros, f"-I{INTERFACE}", f"-I{_operators()}", f"-I{folder}")


def _said_of(folder: Path, files: Sequence[str], *options: str) -> str:
    said = []
    for file in filter(lambda each: (folder / each).exists(), files):  # the sketch is not for every model
        command = [compiler(), *SMALL, *_WARNINGS, *options, "-fsyntax-only", "-x", "c++", str(folder / file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append(done.stderr)
    return "".join(said)
