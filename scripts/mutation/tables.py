"""Stale firmware: model, table and kernels that do not belong together must be refused before anything runs."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path

import click

from scripts.device_lab.build import default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import sources_from_environment
from tflite_memopt import Options, UsageError, optimize
from tflite_memopt.firmware.generate import PLANNER_FILE, generate

_MAIN, _MODEL, _HEADER = "main.cc", "model_data.cc", "model_data.h"
_ROW = re.compile(r"    \{.*\n")
_REFUSED = 2
"""Exit code of main.cc when AllocateTensors fails."""
Files = dict[str, bytes]


def stale(models: Sequence[Path], count: int, seed: int) -> Counter[tuple[str, str]]:
    """How often each kind of ``count`` drawn combinations was "refused", or what else happened."""
    chances = list(_combinations(models))
    random.Random(seed).shuffle(chances)
    found: Counter[tuple[str, str]] = Counter()
    for kind, files, build in chances[:count]:
        found[kind, _outcome(files, build)] += 1
        click.echo(".", nl=False, err=True)
    return found


def _combinations(models: Sequence[Path]) -> Iterator[tuple[str, Files, str]]:
    made = {path: _files(path, "host") for path in models}
    for one, other in permutations(models, 2):
        mixed = {**made[one], _MODEL: made[other][_MODEL], _HEADER: made[other][_HEADER]}
        mixed["resolver.h"] = made[other]["resolver.h"]
        yield "the table of another model", mixed, "host-reference"
    for path, files in made.items():
        plain = _files(path, "host", cascade=False)
        if plain[_MODEL] != files[_MODEL]:
            model = {name: plain[name] for name in (_MODEL, _HEADER)}
            yield "a plan of other options", {**files, **model}, "host-reference"
        for target in ("cortex-m7", "cortex-m55", "esp32"):
            yield f"a table for {target} with reference kernels", _files(path, target), "host-reference"
        text = files[PLANNER_FILE].decode()
        rows = _ROW.findall(text)
        for row in rows[:: max(1, len(rows) // 8)]:
            numbers = [int(each) for each in re.findall(r"-?\d+", row.split("}")[0])]
            for at, what in enumerate(("size", "first step", "last step", "offset", "memory")):
                wrong = list(numbers)
                wrong[at] += 1 if at in (1, 2, 4) else 16
                changed = f"    {{{wrong[0]}, {wrong[1]}, {wrong[2]}, {wrong[3]} + {wrong[4]}}},\n"
                yield (
                    f"a row with another {what}",
                    {**files, PLANNER_FILE: text.replace(row, changed).encode()},
                    "host-reference",
                )


def _files(path: Path, target: str, cascade: bool = True) -> Files:
    data = optimize(path, Options(target=target, verify=False, cascade=cascade)).model
    return generate(data, target, planner="table", force=True)


def _outcome(files: Files, build: str) -> str:
    sources = sources_from_environment(default_cache())
    assert sources is not None, "TFLITE_MEMOPT_TFLM names no sources"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, content in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        try:
            start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, _MAIN)
        except UsageError as error:
            return "refused" if "for other kernels" in str(error) or "with other kernels" in str(error) else str(error)
        done = subprocess.run(start, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == _REFUSED:
        return "refused"
    return "ran" if done.returncode == 0 else f"exit code {done.returncode}"
