"""Cascading measured: docs/benchmarks/cascade.md, beside the claims of TVM's RFC."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from bench_networks import named
from cascade_tables import BOTH, CHAINS, INT8_IO, KERNELS, NO_CASCADE, STOCK, Run, document
from tflm_times import time_ratio

from tflite_memopt.analysis.macs import model_macs
from tflite_memopt.equivalence.original import arena_for
from tflite_memopt.equivalence.runner import run_models
from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize

_HEAD: dict[str, Any] = {"objective": "head"}
MODES: dict[str, dict[str, Any]] = {
    NO_CASCADE: {"cascade": False},
    "total": {},
    "head": _HEAD,
    "head, MACs +0 %": {**_HEAD, "max_extra_macs": 0.0},
    "head, MACs +30 %": {**_HEAD, "max_extra_macs": 0.3},
}
INTEGERS: dict[str, dict[str, Any]] = {INT8_IO: {**_HEAD, "io": "int8"}}
"""For models that quantise their input themselves."""
HALOS: dict[str, dict[str, Any]] = {
    NO_CASCADE: {"cascade": False},
    "recompute": {**_HEAD, "halos": ("recompute",)},
    "rolling": {**_HEAD, "halos": ("rolling",)},
    BOTH: _HEAD,
}
"""For the plain chains that the RFC speaks of."""
_REPEATS = 15
_SLOW_MACS = 4e9
"""From here on one invocation takes a minute: its time is not measured, and one plan alone is proved."""
_ORDER = (STOCK, *MODES, *INTEGERS, *HALOS)


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--samples", default=20, show_default=True, help="Inputs in the proof on TFLM; 1 for slow models.")
@click.option("--time-limit", default=30.0, show_default=True, help="Seconds for each search.")
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep each figure in this folder as it comes, and measure none that is there.",
)
def cascade(
    sources: tuple[Path, ...], output: Path | None, samples: int, time_limit: float, results: Path | None
) -> None:
    """Head, total, MACs and run time in stripes, of the convolutional models among SOURCES (files or folders)."""
    command = f"scripts/bench cascade {' '.join(map(named, sources))} --samples {samples} --time-limit {time_limit:g}"
    options = Options(samples=samples, time_limit=time_limit, runtimes=("tflm",))
    measured: dict[str, tuple[Run, ...]] = {}
    for file in _files(sources):
        measured[file.stem] = _kept(file, options, results)
        if output is not None:  # after each, since all of them take long
            output.write_text("\n".join(document(measured, command)) + "\n")
    if output is None:
        click.echo("\n".join(document(measured, command)))


def _files(sources: Sequence[Path]) -> Iterator[Path]:
    for path in sources:
        yield from sorted(path.glob("*.tflite")) if path.is_dir() else [path]


def _kept(file: Path, options: Options, results: Path | None) -> tuple[Run, ...]:
    """The runs of one model: those of an earlier call where there are any. Each is kept as soon as it is done."""
    kept = None if results is None else results / f"{file.stem}.json"
    done = [] if kept is None or not kept.exists() else [Run(**each) for each in json.loads(kept.read_text())]
    click.echo(file.stem, err=True)
    for run in _runs(file.stem, file.read_bytes(), options, {(run.kernels, run.mode) for run in done}):
        done.append(run)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps([asdict(each) for each in done], indent=1))
    return tuple(sorted(done, key=lambda run: (KERNELS.index(run.kernels), _ORDER.index(run.mode))))


def _runs(name: str, data: bytes, options: Options, done: Collection[tuple[str, str]]) -> Iterator[Run]:
    """Those that are not done; none for a model without convolutions, or one that TFLM does not load."""
    model = read_model(data)
    if not _is_convolutional(model) or not run_models("tflm", {"model": data}, [], arena_for(model))["model"].ran:
        return
    is_slow = model_macs(model) > _SLOW_MACS
    options = replace(options, samples=1) if is_slow else options
    todo = [(kernels, mode) for kernels in KERNELS for mode in _modes(name, model) if (kernels, mode) not in done]
    for kernels, mode in todo:
        click.echo(f"  {kernels}, {mode}", err=True)
        changes = _modes(name, model)[mode] | {"verify": not is_slow or mode == BOTH}
        result = optimize(data, replace(options, kernels=kernels, **changes))
        if mode == NO_CASCADE and (kernels, STOCK) not in done:
            yield _stock(kernels, result, options)
        yield _run(kernels, mode, result, None if is_slow else time_ratio(data, result.model, _REPEATS), options)


def _modes(name: str, model: Model) -> dict[str, dict[str, Any]]:
    if name in CHAINS:
        return HALOS
    return MODES | INTEGERS if _quantises_its_input(model) else MODES


def _is_convolutional(model: Model) -> bool:
    return any(operator.name in ("CONV_2D", "DEPTHWISE_CONV_2D") for operator in model.main.operators)


def _quantises_its_input(model: Model) -> bool:
    return any(use.operator.name == "QUANTIZE" for tensor in model.main.inputs for use in tensor.uses)


def _stock(kernels: str, result: Result, options: Options) -> Run:
    before, size = result.report.before, result.report.file_bytes["before"]
    return Run(
        kernels=kernels,
        mode=STOCK,
        head=before.arena_bytes,
        proved=before.tflm.get("head") == before.arena_bytes,
        required=before.required_bytes["32"],
        extra_macs=0.0,
        operators=before.operators,
        file_bytes=size,
        ratio=1.0,
        cascades=(),
        samples=options.samples,
        time_limit=options.time_limit,
    )


def _run(kernels: str, mode: str, result: Result, ratio: float | None, options: Options) -> Run:
    report = result.report
    before, after = report.before, report.after
    return Run(
        kernels=kernels,
        mode=mode,
        head=after.arena_bytes,
        proved=any(verdict.equal for verdict in report.equivalence.values())
        and after.tflm.get("head") == after.arena_bytes,
        required=after.required_bytes["32"],
        extra_macs=after.macs / max(1, before.macs) - 1,
        operators=after.operators,
        file_bytes=report.file_bytes["after"],
        ratio=ratio,
        cascades=tuple(use.rule.removeprefix("cascade in ") for use in report.rewrites if "cascade" in use.rule),
        samples=options.samples,
        time_limit=options.time_limit,
    )
