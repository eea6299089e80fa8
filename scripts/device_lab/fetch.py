"""The sources of TFLM and its kernel libraries from GitHub, each at the commit that the project is measured with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tflite_memopt.errors import UsageError

GITHUB = "https://github.com"
PINS: Mapping[str, tuple[str, str]] = {
    "tflite-micro": ("tensorflow/tflite-micro", "90b983c2b3f1480642e040bbd2ddb37b998f3424"),
    "cmsis-nn": ("ARM-software/CMSIS-NN", "4ab83cc3cc98fb85ed6dafb55e8ca02f1628dcae"),
    "flatbuffers": ("google/flatbuffers", "187240970746d00bbd26b0f5873ed54d2477f9f3"),
    "gemmlowp": ("google/gemmlowp", "719139ce755a0f31cbf1c37f7f98adcc7fc9f425"),
    "ruy": ("google/ruy", "d37128311b445e758136b8602d1bbd2a755e115d"),
    "esp-nn": ("espressif/esp-nn", "d45b843ca5f873ca9d0706ab0e7f14eafd132e98"),
    "esp-tflite-micro": ("espressif/esp-tflite-micro", "99f49e1498b0984f4db54d9bf3938aceb99ad422"),
}
"""By folder: the repository and its commit; those of flatbuffers, gemmlowp and ruy are TFLM's own pins."""
_PATCHES = {"flatbuffers": "tflite-micro/tensorflow/lite/micro/tools/make/flatbuffers.patch"}
"""What TFLM's makefile applies to a library after it has downloaded it."""


def fetched_sources(cache: Path, host: str = GITHUB, pins: Mapping[str, tuple[str, str]] = PINS) -> Path:
    """A folder of all of them, fetched by git where it is not there yet. Raises UsageError when that fails."""
    folder = cache / f"fetched-{pins['tflite-micro'][1][:12]}"
    for name, (repository, commit) in pins.items():
        if (folder / name).is_dir():
            continue
        new = folder / f".{name}.{os.getpid()}"
        new.mkdir(parents=True)
        try:
            _git(new, "init", "--quiet")
            _git(new, "fetch", "--quiet", "--depth", "1", f"{host}/{repository}", commit)
            _git(new, "checkout", "--quiet", "FETCH_HEAD")
            if name in _PATCHES:
                _git(new, "apply", str((folder / _PATCHES[name]).resolve()))
            new.rename(folder / name)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder


def _git(folder: Path, *words: str) -> None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"cannot start git: {error}") from error
    if done.returncode:
        raise UsageError(f"git {words[0]} fails: {' '.join(done.stderr.split())[-300:]}")
