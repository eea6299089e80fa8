"""Where the sources of TensorFlow Lite Micro and its libraries are, and which commits they are of."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from tflite_memopt.errors import UsageError

VARIABLE = "TFLITE_MEMOPT_TFLM"
_ALWAYS = ("tflite-micro", "flatbuffers", "gemmlowp", "ruy")
_BY_LIBRARY = {"reference": (), "cmsis-nn": ("cmsis-nn",), "esp-nn": ("esp-nn", "esp-tflite-micro")}
_DOWNLOADS = Path("tensorflow/lite/micro/tools/make/downloads")
"""Where TFLM's own makefile puts the libraries."""
_DOWNLOADED_AS = {"cmsis-nn": "cmsis_nn"}
_SUFFIXES = (".c", ".cc", ".h")


@dataclass(frozen=True)
class Sources:
    """``folder`` holds one folder (or link) for each of the libraries that there are; ``key`` is of their content."""

    folder: Path
    key: str
    commits: Mapping[str, str]

    def missing(self, library: str) -> list[str]:
        """What a build with this kernel library still lacks."""
        return [name for name in (*_ALWAYS, *_BY_LIBRARY[library]) if not (self.folder / name).is_dir()]

    def commit(self, library: str) -> str:
        """Commits of TFLM and of the kernel library in one word, for the runner to tell."""
        names = ("tflite-micro", *_BY_LIBRARY[library])
        return ",".join(f"{name}-{self.commits.get(name, 'unknown')[:12]}" for name in names)


def sources_from_environment(cache: Path) -> Sources | None:
    """The sources that TFLITE_MEMOPT_TFLM names; None when it is not set."""
    named = os.environ.get(VARIABLE)
    return find_sources(Path(named), cache) if named else None


def needed_sources(cache: Path) -> Sources:
    """The sources that TFLITE_MEMOPT_TFLM names. Raises click.UsageError when it is not set."""
    found = sources_from_environment(cache)
    if found is None:
        raise click.UsageError(f"{VARIABLE} names no sources of TFLM")
    return found


def find_sources(given: Path, cache: Path) -> Sources:
    """Sources in a folder, in a packed archive of one, or in a checkout of tflite-micro with its downloads.

    Raises UsageError when there is no TFLM.
    """
    if given.is_file():
        given = _unpacked(given, cache)
    if not given.is_dir():
        raise UsageError(f"{VARIABLE} names '{given}', which is neither a folder nor an archive")
    if (given / _DOWNLOADS).is_dir():
        return _linked(given.resolve(), cache)
    if not (given / "tflite-micro").is_dir():
        raise UsageError(f"'{given}' holds no folder tflite-micro; docs/device_runner.md says what is needed")
    return Sources(given.resolve(), _content_key(given), _commits(given))


def _unpacked(archive: Path, cache: Path) -> Path:
    """The archive's only folder, unpacked once for each content."""
    folder = cache / f"sources-{hashlib.sha256(archive.read_bytes()).hexdigest()[:16]}"
    if not folder.is_dir():
        scratch = folder.with_suffix(f".{os.getpid()}")
        try:
            with tarfile.open(archive) as packed:
                packed.extractall(scratch, filter="data")
        except tarfile.TarError as error:
            raise UsageError(f"{VARIABLE}: cannot unpack '{archive}': {error}") from error
        try:
            scratch.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(scratch)
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 else folder


def _linked(checkout: Path, cache: Path) -> Sources:
    """Links in one folder to a checkout of tflite-micro and to what its makefile downloaded."""
    places = {"tflite-micro": checkout}
    for name in (*_ALWAYS[1:], "cmsis-nn", "esp-nn", "esp-tflite-micro"):
        found = checkout / _DOWNLOADS / _DOWNLOADED_AS.get(name, name)
        if found.is_dir():
            places[name] = found
    key = _content_key(checkout)
    folder = cache / f"sources-{key[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in places.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(place)
    commits = {name: commit for name, place in places.items() if (commit := _git_commit(place))}
    return Sources(folder, key, commits)


def _content_key(folder: Path) -> str:
    """A hash over every source file's name and content."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in _SUFFIXES and p.is_file()):
        digest.update(f"{path.relative_to(folder)}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _commits(folder: Path) -> dict[str, str]:
    """From SOURCES.md (``| folder | repository | commit ... |``) or from the folders' own git."""
    found = {}
    table = folder / "SOURCES.md"
    for line in table.read_text().splitlines() if table.exists() else ():
        row = re.match(r"\|\s*([\w-]+)\s*\|[^|]*\|\s*([0-9a-f]{7,40})\b", line)
        if row:
            found[row[1]] = row[2]
    for path in folder.iterdir():
        if path.name not in found and path.is_dir() and (commit := _git_commit(path)):
            found[path.name] = commit
    return found


def _git_commit(folder: Path) -> str | None:
    if not (folder / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
