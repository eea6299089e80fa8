"""Networks that people train for microcontrollers: docs/results.md."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from scripts.makers.runs import run_models
from tflite_memopt.equivalence.adapter import OPTIMIZED_KERNELS, REFERENCE, ModelRun
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize

from .figures import echo_text
from .markdown_table import row, table

KERNELS = ("portable", "reference", "cmsis-nn")
PREFIX = "people_"
_HEADER = (
    "network | numbers | kernels | stock head | head | % | stock total | total | % | MACs | operators | s | proved on"
    " | binds"
)
_INTRODUCTION = """\
Made by `scripts/zoo --people` and `scripts/bench people FOLDER`. Head and total are bytes of the arena on 32 bits,
total being what must be reserved; total less head is the tail. Stock is TFLM's own plan of the model as it came, with
the shapes that its operators make where those of the file are wrong. `binds`: the operator at whose step the most bytes
are alive after. `proved on`: runtimes that computed the same; `TFLM: result alone` where stock TFLM does not run the
file, or runs it wrongly, and the result with its plan gives what it gives with no memory shared. Times are wall seconds
on two cores that others used too.
"""
_NOTES = "\n## What binds\n"
"""The heading of what the command leaves as it is."""
_WRONG = "network | numbers | stock TFLM with the file as it came | the result on TFLM"
_KERNELS_OF_LITERT = (REFERENCE, OPTIMIZED_KERNELS)
_SAMPLES = 20
"""Inputs over which TFLM's outputs are held against LiteRT's."""


@dataclass(frozen=True)
class PeopleRun:
    """One file under one kernel profile: bytes, MACs and operators before and after; or the ``error``.

    ``came``: stock TFLM computes the file as it came wrongly, or not at all.
    """

    network: str
    numbers: str
    kernels: str
    head: tuple[int, int] = (0, 0)
    total: tuple[int, int] = (0, 0)
    macs: tuple[int, int] = (0, 0)
    operators: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    proved: str = ""
    binds: str = ""
    came: bool = False
    error: str | None = None


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--kernels", multiple=True, default=KERNELS, show_default=True)
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep each figure in this folder as it comes, and measure none that is there.",
)
@click.option("--kept-only", is_flag=True, help="Show the figures that --results has, and measure none.")
def people(
    sources: tuple[Path, ...], output: Path | None, kernels: tuple[str, ...], results: Path | None, kept_only: bool
) -> None:
    """Head, total, MACs and time of the files of `scripts/zoo --people` (files or folders)."""
    files = [file for path in sources for file in (sorted(path.glob("*.tflite")) if path.is_dir() else [path])]
    runs: list[PeopleRun] = []
    for file in files:
        for profile in kernels:
            if kept_only and not (results is not None and _place(results, file, profile).exists()):
                continue
            runs.append(_kept(file, profile, results))
            if output is not None:  # after each, since all of them take long
                output.write_text(
                    "\n".join(_document(runs, {file.stem: file for file in files})) + "\n" + _kept_notes(output)
                )
    if output is None:
        echo_text("people", "\n".join(_document(runs, {file.stem: file for file in files})))


def _kept_notes(output: Path) -> str:
    """What people have written below the tables of an older page."""
    _, heading, notes = output.read_text().partition(_NOTES) if output.exists() else ("", "", "")
    return heading + notes


def _kept(file: Path, kernels: str, results: Path | None) -> PeopleRun:
    kept = None if results is None else _place(results, file, kernels)
    if kept is not None and kept.exists():
        found = json.loads(kept.read_text())
        pairs = {name: tuple(found[name]) for name in ("head", "total", "macs", "operators")}
        return PeopleRun(**{**found, **pairs, "came": bool(found["came"])})
    click.echo(f"{file.stem} {kernels}", err=True)
    run = _run(file, kernels)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(run)))
    return run


def _place(results: Path, file: Path, kernels: str) -> Path:
    return results / f"{file.stem}.{kernels}.json"


def _run(file: Path, kernels: str) -> PeopleRun:
    network, _, numbers = file.stem.removeprefix(PREFIX).rpartition("_")
    data, started = file.read_bytes(), time.perf_counter()
    try:
        result = optimize(data, Options(kernels=kernels))
    except MemoptError as error:
        return PeopleRun(network, numbers, kernels, error=str(error))
    seconds, report = time.perf_counter() - started, result.report
    before, after = report.before, report.after
    is_wrong = any("TFLM itself computes" in each or "TFLM itself does not" in each for each in report.warnings)
    return PeopleRun(
        network,
        numbers,
        kernels,
        (before.arena_bytes, after.arena_bytes),
        (before.required_bytes["32"], after.required_bytes["32"]),
        (before.macs, after.macs),
        (before.operators, after.operators),
        seconds,
        _verification(result),
        _binding(result),
        is_wrong or "error" in before.tflm,
    )


def _verification(result: Result) -> str:
    """The runtimes that computed the same as from the original; TFLM's plan where it has run the result alone."""
    found = [{"litert": "LiteRT", "tflm": "TFLM"}.get(n, n) for n, v in result.report.equivalence.items() if v.equal]
    if "TFLM" not in found and result.report.basis.plan_executed:
        found.append("TFLM: result alone")
    return ", ".join(found)


def _binding(result: Result) -> str:
    """The operator at whose step the most bytes are alive."""
    step = result.report.after.peak
    return "-" if step is None else f"{step.operator} {step.bytes:,}"


@lru_cache
def _beside_litert(file: Path) -> tuple[str, str]:
    """TFLM's outputs of the file as it came, and of the result without stripes, against LiteRT's of the former."""
    data = file.read_bytes()
    result = optimize(data, Options(verify=False, cascade=False)).model
    model = read_model(data)
    samples = seeded_inputs(model, _SAMPLES, 1)
    tried = ((run_models("litert", {"came": data}, samples, 0, each)["came"], each) for each in _KERNELS_OF_LITERT)
    wanted, kernels = next((run.arrays, kernels) for run, kernels in tried if run.ran)
    runs = run_models("tflm", {"came": data, "result": result}, samples, arena_for(model))
    return _apart(runs["came"], wanted, kernels), _apart(runs["result"], wanted, kernels)


def _apart(run: ModelRun, wanted: Mapping[str, Any], kernels: str) -> str:
    """How many outputs differ and by how much, or why there are none."""
    if not run.ran:
        return f"does not run it: {(run.error or '').partition('(')[2].partition(';')[0]}"
    pairs = [(values.astype(float), run.arrays[name].astype(float)) for name, values in wanted.items()]
    farthest = max(float(abs(a - b).max()) for a, b in pairs)
    share = sum(int((a != b).sum()) for a, b in pairs) / sum(a.size for a, _ in pairs)
    if not share:
        return f"all outputs are those of LiteRT's {kernels}"
    return f"{100 * share:.1f} % of the outputs are not those of LiteRT's {kernels}, by up to {farthest:.3g}"


def _document(runs: Sequence[PeopleRun], by_name: Mapping[str, Path]) -> Iterator[str]:
    yield "# Networks that people train\n"
    yield _INTRODUCTION
    yield from table(_HEADER)
    for run in runs:
        yield _row(run)
    wrong = dict.fromkeys((run.network, run.numbers) for run in runs if run.came)
    if wrong:
        yield "\n## Files that stock TFLM computes wrongly, or not at all\n"
        yield f"Outputs of {_SAMPLES} samples; the result without stripes.\n"
        yield from table(_WRONG)
        for network, numbers in wrong:
            yield row(network, numbers, *_beside_litert(by_name[f"{PREFIX}{network}_{numbers}"]))


def _row(run: PeopleRun) -> str:
    if run.error is not None:
        return row(run.network, run.numbers, run.kernels, *["-"] * 10, run.error[:160])
    shares = [f"{100 * after / max(1, before):.0f}" for before, after in (run.head, run.total)]
    added = run.macs[1] - run.macs[0]
    macs = f"{run.macs[0]:,}" + (f" +{100 * added / max(1, run.macs[0]):.1f} %" if added else "")
    return row(
        *(run.network, run.numbers, run.kernels, *run.head, shares[0], *run.total, shares[1], macs),
        *(f"{run.operators[0]} -> {run.operators[1]}", f"{run.seconds:.0f}", run.proved, run.binds),
    )
