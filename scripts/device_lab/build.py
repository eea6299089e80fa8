"""Builds programs on TFLM by the makefile beside this file, once for each content of sources, flags and compiler."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from scripts.device_lab.builds import Build
from scripts.device_lab.sources import Sources
from tflite_memopt.errors import UsageError

NATIVE = Path(__file__).resolve().parent / "native"
_ARM_TOOLS = ("arm-none-eabi-g++", "arm-none-eabi-gcc", "qemu-system-arm")
_HOST_TOOLS = ("g++", "gcc")
_HOST_PACKAGES = "make g++"
_ARM_PACKAGES = "make gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm"
_ZIG_CACHES = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
_QEMU = """#!/bin/sh
# {name}, under QEMU; its virtual clock counts instructions, one nanosecond each. -nic silences a warning.
args=arg=runner
for word in "$@"; do args="$args,arg=$word"; done
exec qemu-system-arm -M {machine} -icount shift=0 -display none -monitor none -serial none -nic user,restrict=on \\
  -semihosting-config "enable=on,target=native,$args" -kernel "{program}" </dev/null
"""


def default_cache() -> Path:
    """The folder of everything that is built; TFLITE_MEMOPT_CACHE names another."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TFLITE_MEMOPT_CACHE") or Path(home) / "tflite_memopt")


def zig() -> Path | None:
    """The compiler of modules, which PyPI's ziglang carries; None where it is not installed."""
    found = importlib.util.find_spec("ziglang")
    return None if found is None or found.origin is None else Path(found.origin).parent / "zig"


def missing_tools(build: Build) -> str | None:
    """What this machine lacks to build and run a build, and how to get it; None when it has all."""
    if build.is_module:
        lacks_zig = "not installed: ziglang (scripts/runners installs it)" if zig() is None else None
        return lacks_zig if shutil.which("make") else "not installed: make"
    wanted = _HOST_TOOLS if build.machine is None else _ARM_TOOLS
    lacking = [tool for tool in ("make", *wanted) if shutil.which(tool) is None]
    if not lacking:
        return None
    packages = _HOST_PACKAGES if build.machine is None else _ARM_PACKAGES
    return f"not installed: {', '.join(lacking)} (Debian: apt-get install {packages})"


def build_runner(name: str, build: Build, sources: Sources, cache: Path, jobs: int = 2) -> Path:
    """The path of the executable runner, or of the module, built if this content has not been.

    Raises UsageError when tools or sources are missing, or when a compiler fails.
    """
    problem = missing_tools(build)
    absent = sources.missing(build.library)
    if problem or absent:
        raise UsageError(f"cannot build {name}: {problem or 'no sources of ' + ', '.join(absent)}")
    library = _library_key(build, sources)
    folder = cache / f"{name}-{_key(library, *_own_sources(), _QEMU, sources.commit(build.library))}"
    runner = folder / (f"{name}.wasm" if build.is_module else "runner")
    if runner.exists():
        return runner
    folder.mkdir(parents=True, exist_ok=True)
    objects = _objects(cache, build, library)
    with _lock(objects.with_name(f"{objects.name}.lock")):
        if not runner.exists():
            program = folder / ("program" if build.machine is None else "program.elf")
            _make(name, build, sources, objects, program, jobs)
            _finish(name, build, program, runner)
    return runner


def built_library(name: str, build: Build, sources: Sources, cache: Path, jobs: int = 2) -> Path:
    """The static library of TFLM with the kernels of a build, for programs of your own. Raises as ``build_runner``."""
    build_runner(name, build, sources, cache, jobs)
    return _objects(cache, build, _library_key(build, sources)) / f"lib-{build.kernels}.a"


def _objects(cache: Path, build: Build, library: str) -> Path:
    return cache / f"objects-{build.core}{f'-{build.enums}' if build.is_module else ''}-{library}"


def _library_key(build: Build, sources: Sources) -> str:
    files = ("Makefile", "precompiled.h", *(("dsp_instructions.h",) if build.is_module else ()))
    return _key(sources.key, *((NATIVE / each).read_text() for each in files), _compiler(build))


def _make(name: str, build: Build, sources: Sources, objects: Path, program: Path, jobs: int) -> None:
    own = f"-DRUNNER_KERNELS={build.library} -DRUNNER_COMMIT={sources.commit(build.library)}"
    variables = {
        "CORE": build.core,
        "KERNELS": build.kernels,
        "SOURCES": sources.folder,
        "OBJECTS": objects,
        "ENUMS": build.enums,
        "PROGRAM": "module.cc" if build.is_module else "runner.cc",
        "OUT": program,
        "OWN_DEFINES": own,
        "ZIG": zig() or "",
    }
    words = [f"{key}={value}" for key, value in variables.items()]
    done = subprocess.run(
        ["make", "-f", str(NATIVE / "Makefile"), f"-j{jobs}", *words],
        cwd=NATIVE,
        env=os.environ | {name: str(objects.with_name("zig")) for name in _ZIG_CACHES},
        capture_output=True,
        text=True,
        check=False,
    )
    (program.parent / "build.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-10:])
        raise UsageError(f"cannot build {name} (all output: {program.parent / 'build.log'}):\n{last}")


def _finish(name: str, build: Build, program: Path, runner: Path) -> None:
    """Make the program executable by the runner's name; the rename comes last, so that a runner is whole or absent."""
    ready = program if build.machine is None else program.with_name("qemu")
    if build.machine is not None:
        ready.write_text(_QEMU.format(name=name, machine=build.machine, program=program.resolve()))
    ready.chmod(0o755)
    ready.rename(runner)


def _own_sources() -> list[str]:
    return [path.read_text() for path in sorted(NATIVE.rglob("*")) if path.is_file()]


def _compiler(build: Build) -> str:
    if build.is_module:
        return subprocess.run([str(zig()), "version"], capture_output=True, text=True, check=True).stdout
    tool = "g++" if build.machine is None else "arm-none-eabi-g++"
    return subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout


def _key(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One process at a time builds into a folder of objects."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
