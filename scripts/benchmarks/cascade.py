"""The search for stripes under its limits: repeatable, monotone, what each buys: docs/benchmarks/cascade.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from .markdown_table import row, table
from .networks import named
from .whole_run import whole_run

AXES: dict[str, tuple[tuple[str, ...], ...]] = {
    "MACs": tuple(("--max-extra-macs", share) for share in ("0%", "5%", "10%", "30%", "100%")),
    "effort": (("--effort", "quick"), ("--effort", "normal"), ("--effort", "thorough")),
    "operators": (("--max-extra-operators", "0"), ("--max-extra-operators", "24"), ()),
    "halos": (("--halo", "recompute"), ()),
    "halos, rolling": (("--halo", "rolling"), ()),
    "loops": (("--no-loops",), ()),
    "MACs, head, quick": tuple(
        ("--objective", "head", "--effort", "quick", "--max-extra-macs", share) for share in ("0%", "10%", "30%")
    ),
}
"""Limits from narrow to wide: what is found under a wider one must not need more."""
_WAYS = ("alone", "again", "under load", "one core", "two cores")
_LOAD = 2
"""Processes that keep the cores busy meanwhile."""


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--part", type=click.Choice(["same", "monotone", "front"]), multiple=True, help="[default: all]")
@click.option("--effort", default="quick", show_default=True, help="Of the fronts.")
@click.option(
    "--results",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep each figure in this folder as it comes, and measure none that is there.",
)
def cascade(sources: tuple[Path, ...], output: Path | None, part: tuple[str, ...], effort: str, results: Path) -> None:
    """The same bytes every time, limits from narrow to wide, and the fronts, of the models SOURCES."""
    kept = _Kept(results)
    for source in sources:
        if "same" in part or not part:
            for way in _WAYS:
                kept.run(source, "same", way)
        if "monotone" in part or not part:
            for limits in (each for axis in AXES.values() for each in axis):
                kept.run(source, "limit", *limits)
        if "front" in part or not part:
            for kernels in ("portable", "reference"):
                kept.front(source, kernels, effort)
    text = "\n".join(_document(kept, f"scripts/bench cascade {' '.join(map(named, sources))} --effort {effort}")) + "\n"
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


class _Kept:
    """Figures by model and what was asked for, in a file a model; measured where they are not there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.models = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}

    def run(self, model: Path, kind: str, *what: str) -> None:
        """One process of ``optimize``: by the flags that are a limit, or the same in one of the ways."""
        key = " ".join((kind, *what))
        if key in self.models.get(model.stem, {}):
            return
        click.echo(f"{model.stem}: {key}", err=True)
        with _load(_LOAD if what == ("under load",) else 0):
            cores = {"one core": ("taskset", "-c", "0"), "two cores": ("taskset", "-c", "0,1")}
            found = whole_run(model, () if kind == "same" else (*what, "--no-verify"), cores.get(" ".join(what), ()))
        if isinstance(found, str):
            self._keep(model, key, {"error": found})
            return
        after = found.report["after"]
        need = after["arena_bytes"] if "head" in what else after["required_bytes"]["32"]
        figures = {"need": need, "macs": after["macs"], "operators": after["operators"]}
        self._keep(model, key, {**figures, "digest": found.digest, "processor": round(found.processor, 1)})

    def front(self, model: Path, kernels: str, effort: str) -> None:
        """One process of ``explore``."""
        key = f"front {kernels} {effort}"
        if key in self.models.get(model.stem, {}):
            return
        click.echo(f"{model.stem}: {key}", err=True)
        command = [sys.executable, "-m", "tflite_memopt", "explore", str(model), "--json", "--time-limit", "900"]
        done = subprocess.run(
            [*command, "--kernels", kernels, "--effort", effort], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            self._keep(model, key, json.loads(done.stdout))

    def _keep(self, model: Path, key: str, found: dict[str, Any]) -> None:
        self.models.setdefault(model.stem, {})[key] = found
        (self._folder / f"{model.stem}.json").write_text(json.dumps(self.models[model.stem], indent=1))


@contextmanager
def _load(count: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def _document(kept: _Kept, command: str) -> Iterator[str]:
    yield "# Stripes under limits"
    yield ""
    yield (
        f"Made by `{command}`, on {os.cpu_count()} cores that others used too. Bytes; the need is the arena to reserve "
        "on 32 bits, or the head where it says so. What stripes and limits are: [cascading.md](../cascading.md)."
    )
    yield from ("", "## The same bytes every time", "")
    yield (
        "SHA-256 of the file that `optimize` writes with its default options, verification included: twice, with "
        f"{_LOAD} processes beside it that compute without end, and bound to one core and to two."
    )
    yield ""
    yield from table(" | ".join(("model", *_WAYS, "processor, s", "same")))
    yield from (_same(name, found) for name, found in kept.models.items() if "same alone" in found)
    yield from ("", "## A wider limit never needs more", "")
    yield "The need under each limit, from narrow to wide; the rest as by default, no verification. `-`: not measured."
    yield ""
    yield from table("model | limits | narrow to wide | need | never more")
    for name, found in kept.models.items():
        yield from _monotone(name, found)
    yield from _fronts(kept)


def _same(name: str, found: dict[str, Any]) -> str:
    runs = [found.get(f"same {way}", {}) for way in _WAYS]
    digests = [run.get("digest", "-")[:12] for run in runs]
    seconds = " / ".join(str(run.get("processor", "-")) for run in runs)
    return row(name, *digests, seconds, "yes" if len(set(digests) - {"-"}) == 1 else "NO")


def _monotone(name: str, found: dict[str, Any]) -> Iterator[str]:
    for axis, limits in AXES.items():
        runs = [found.get(" ".join(("limit", *each)), {}) for each in limits]
        needs = [run["need"] for run in runs if "need" in run]
        if not needs:
            continue
        said = ", ".join(_short(each) for each in limits)
        texts = " / ".join(f"{run['need']:,}" if "need" in run else "-" for run in runs)
        yield row(name, axis, said, texts, "yes" if all(a >= b for a, b in pairwise(needs)) else "NO")


def _short(flags: Sequence[str]) -> str:
    return flags[-1].removeprefix("--") if flags else "any"


def _fronts(kept: _Kept) -> Iterator[str]:
    yield from ("", "## The fronts", "")
    yield (
        "What `explore` finds: each point is the best under a limit, and no other one equals or beats it in all of "
        "total, head, MACs, operators and bytes of file."
    )
    for name, found in kept.models.items():
        for key, front in found.items():
            if key.startswith("front "):
                _, kernels, effort = key.split(" ")
                yield from ("", f"### {name}, {kernels}, {effort}", "")
                yield from table("point | total | head | MACs | operators | file | found with | stripes")
                for number, point in enumerate([front["before"], *front["points"]]):
                    yield _point(number, point, front["before"])


def _point(number: int, point: dict[str, Any], before: dict[str, Any]) -> str:
    macs = f"{100 * (point['macs'] / max(1, before['macs']) - 1):+.1f} %"
    figures = point["total"], point["head"], macs, point["operators"], point["file_bytes"]
    return row(number or "now", *figures, point["limits"] or "-", "; ".join(point["stripes"]) or "-")
