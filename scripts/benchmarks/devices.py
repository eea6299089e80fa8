"""Stock and optimized models on real builds of TFLM, the host's and Cortex-M's: docs/benchmarks/devices.md."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np

import tflite_memopt
from scripts.device_lab.build import build_runner, default_cache, missing_tools
from scripts.device_lab.builds import BUILDS, Build
from scripts.device_lab.runs import run_external
from scripts.device_lab.sources import VARIABLE, sources_from_environment
from scripts.kernel_probes.probe import on_runner, probe
from scripts.kernel_probes.tables import closing_line, grid_of, group_rows
from tflite_memopt.equivalence.adapter import Run, RunJob
from tflite_memopt.equivalence.external_runner import run_external_jobs
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.errors import MemoptError, UsageError
from tflite_memopt.io.reader import read_model
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

_HEADER = (
    "model | stock head | tail | smallest arena | our head | tail | smallest arena | `required_bytes` | off by "
    "| outputs | instructions | estimated | seconds"
)
_MOST_INSTRUCTIONS = 1.1

_EXPLANATION = """Bytes. `smallest arena`: the smallest multiple of 16 that AllocateTensors accepts. `off by`:
`required_bytes` against it. `outputs`: against the stock model's on the same build, in the largest arena and in one of
exactly `required_bytes`. `instructions`: executed under QEMU, ours to stock's, all inputs together. `estimated`: the
same as the report says it for the kernels of this build. `seconds`: of the optimization, unproved.
"""
_OF_DISTANCES = """Distances of overlap, offset(input) - offset(output): every pair of tensors that the profile or
that of the reference kernels lets share memory was tried at all distances, in steps of 16;
`scripts/probe_kernels --build NAME` prints each. `below need`: a rule under what the kernel needs. `needs over the
reference rule`: the most that a kernel of the group needs above the rule for TFLM's own loops.
"""
GOALS: Mapping[str, Mapping[str, int]] = {
    "cortex-m7-cmsis-nn": {
        "mlperf_vww_int8": 60_000,
        "tflm_person_detect": 54_000,
        "mlperf_ic_int8": 36_000,
        "mcunet_vww": 138_000,
        "darts_cifar_s1_f8": 96_000,
        "mlperf_sww_int8": 14_816,
        "tflm_micro_speech": 5_056,
    },
    "cortex-m55-cmsis-nn": {
        "mlperf_vww_int8": 59_000,
        "mlperf_ic_int8": 35_000,
        "mlperf_kws_int8": 20_768,
        "mcunet_vww": 138_000,
    },
}
"""The smallest arena in bytes that was asked for, by build and model."""


@dataclass(frozen=True)
class Figures:
    """What a runner measured of one model: bytes, and instructions where it counts them."""

    head: int
    tail: int
    smallest: int
    instructions: int | None

    @classmethod
    def of(cls, run: Run) -> Figures:
        """Of a run that looked for the smallest arena."""
        return cls(run.facts["head"], run.facts["tail"], run.facts["smallest_arena"], run.facts.get("instructions"))


@dataclass(frozen=True)
class Row:
    """One model on one build. ``promised`` is the report's ``required_bytes``, ``differing`` the outputs, of
    ``outputs``, that are not the stock model's, in the largest arena or in the promised one. ``refused``: why there is
    nothing else; ``failed``: why the optimized model does not run in the promised arena.
    """

    model: str
    stock: Figures | None = None
    ours: Figures | None = None
    promised: int = 0
    outputs: int = 0
    differing: int = 0
    estimated: float = 0.0
    seconds: float = 0.0
    failed: str = ""
    refused: str = ""

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        assert self.stock is not None
        assert self.ours is not None
        off = 100 * (self.promised - self.ours.smallest) / self.ours.smallest
        first = [f"{n:,}" for each in (self.stock, self.ours) for n in (each.head, each.tail, each.smallest)]
        below = " **too small**" if self.promised < self.ours.smallest else ""
        worse = " **above stock**" if self.promised > self.stock.smallest else ""
        required = f"{self.promised:,}{worse}"
        time = self._time(), f"{self.estimated:.3f}", f"{self.seconds:.0f}"
        return [self.model, *first, required, f"{off:+.2f} %{below}", self._said(), *time]

    def _said(self) -> str:
        if self.failed:
            return f"**does not run in `required_bytes`**: {self.failed}"
        return "equal" if not self.differing else f"**{self.differing} of {self.outputs} differ**"

    def _time(self) -> str:
        before, after = (None if each is None else each.instructions for each in (self.stock, self.ours))
        if not before or not after:
            return "-"
        return f"{after / before:.3f}" + (" **above 1.10**" if after / before > _MOST_INSTRUCTIONS else "")


@dataclass(frozen=True)
class _Job:
    """``key`` says of which code, runner, model and options the row is."""

    key: str
    build: str
    runner: str
    path: Path
    options: Options


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option(
    "--build", "builds", multiple=True, type=click.Choice(tuple(BUILDS)), help="Default: all that can be built."
)
@click.option("--kernels", help="A profile in place of the build's target, such as portable.")
@click.option("--model", "models", multiple=True, help="Only files whose name contains this.")
@click.option("--samples", default=10, show_default=True, help="Inputs for each model.")
@click.option("--time-limit", default=Options.time_limit, show_default=True, help="Seconds for each search.")
@click.option("--distances/--no-distances", default=True, show_default=True, help="Probe the kernels, too.")
@click.option("--cascade/--no-cascade", default=True, show_default=True, help="Run regions in stripes.")
@click.option("--jobs", default=2, show_default=True, help="Models at a time.")
def devices(
    folder: Path,
    output: Path | None,
    builds: tuple[str, ...],
    kernels: str | None,
    models: tuple[str, ...],
    samples: int,
    time_limit: float,
    distances: bool,
    cascade: bool,
    jobs: int,
) -> None:
    """Every model of FOLDER on each build of TFLM: stock and optimized for the kernels of that build.

    Rows are kept in the cache as they are made: called again, it goes on where it was, as long as code, runner, model
    and options are the same.
    """
    runners = _runners(builds)
    paths = [path for path in sorted(folder.glob("*.tflite")) if not models or any(m in path.stem for m in models)]
    options = Options(samples=samples, time_limit=time_limit, cascade=cascade, verify=False)
    meant = {name: _for(BUILDS[name], options, kernels) for name in runners}
    rows = _rows([_job(name, runner, path, meant[name]) for name, runner in runners.items() for path in paths], jobs)
    command = " ".join(word for word in sys.argv[2:] if word not in (str(folder), "-o", str(output)))
    lines = list(_head(f"scripts/bench devices FOLDER {command}".strip(), distances))
    lines += _goals(rows)
    for name, runner in runners.items():
        lines += _section(name, meant[name], [rows[name, path] for path in paths])
        if distances:
            lines += _distances(name, runner, meant[name].profile.name)
    text = "\n".join(lines)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


def _for(build: Build, options: Options, kernels: str | None) -> Options:
    return replace(options, kernels=kernels or build.profile, target=None if kernels else build.target)


def _head(command: str, distances: bool) -> Iterator[str]:
    yield "# Devices\n"
    yield f"Made by `{command}` with {VARIABLE} set."
    yield _EXPLANATION
    if distances:
        yield _OF_DISTANCES


def _runners(names: tuple[str, ...]) -> Mapping[str, Path]:
    sources = sources_from_environment(default_cache())
    if sources is None:
        raise UsageError(f"say where TFLM's sources are: {VARIABLE}")
    wanted = names or [n for n, b in BUILDS.items() if not missing_tools(b) and not sources.missing(b.library)]
    return {name: build_runner(name, BUILDS[name], sources, default_cache()) for name in wanted}


def _goals(rows: Mapping[tuple[str, Path], Row]) -> Iterator[str]:
    """What was asked for against what there is."""
    found = {(build, row.model): row.ours.smallest for (build, _), row in rows.items() if row.ours is not None}
    asked = [(build, model, goal) for build, each in GOALS.items() for model, goal in each.items()]
    if not any((build, model) in found for build, model, _ in asked):
        return
    yield "## Goals\n"
    yield "| build | model | smallest arena, at most | reached | |"
    yield "|---|---|---|---|---|"
    for build, model, goal in asked:
        if (build, model) in found:
            arena = found[build, model]
            word = "met" if arena <= goal else f"**{arena - goal:,} more**"
            yield f"| {build} | {model} | {goal:,} | {arena:,} | {word} |"
    yield ""


def _section(name: str, options: Options, rows: Sequence[Row]) -> Iterator[str]:
    yield f"## {name}, plans for {options.target or 'any target'} with `{options.profile.name}`\n"
    yield f"| {_HEADER} |"
    yield "|" + "---|" * (_HEADER.count("|") + 1)
    yield from (f"| {' | '.join(row.cells)} |" for row in rows if not row.refused)
    yield ""
    refused = [f"- {row.model}: {row.refused}" for row in rows if row.refused]
    if refused:
        yield from ("Not run:", "", *refused, "")


def _distances(name: str, runner: Path, profile: str) -> Iterator[str]:
    execute, relations = on_runner([str(runner)]), profile_named(profile).relations
    click.echo(f"{name}: probing", err=True)
    probes = [found for case in grid_of(full=False, library=True) for found in probe(case, relations, execute)]
    yield f"### Distances of overlap on {name}\n"
    yield from group_rows(probes)
    yield f"\n{closing_line(probes)}\n"


def _job(build: str, runner: Path, path: Path, options: Options) -> _Job:
    texts = (_code(), runner.parent.name, hashlib.sha256(path.read_bytes()).hexdigest(), repr(options))
    return _Job(hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24], build, str(runner), path, options)


def _code() -> str:
    """A digest of the package's sources."""
    digest = hashlib.sha256()
    folder = Path(tflite_memopt.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _rows(jobs: Sequence[_Job], at_once: int) -> dict[tuple[str, Path], Row]:
    """By build and model; those that an earlier call made are read from the cache."""
    folder = default_cache() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    found = {job: row for job in jobs if (row := _stored(folder, job)) is not None}
    left = [job for job in jobs if job not in found]
    click.echo(f"{len(found)} rows are there, {len(left)} to be made", err=True)
    with ProcessPoolExecutor(at_once) as pool:
        waiting: dict[Future[Row], _Job] = {pool.submit(_measure, job): job for job in left}
        for done in as_completed(waiting):
            job, row = waiting[done], done.result()
            (folder / f"{job.key}.json").write_text(json.dumps(asdict(row)))
            found[job] = row
            click.echo(f"{job.build} {job.path.stem} ({len(found)} of {len(jobs)})", err=True)
    return {(job.build, job.path): found[job] for job in jobs}


def _stored(folder: Path, job: _Job) -> Row | None:
    path = folder / f"{job.key}.json"
    if not path.exists():
        return None
    fields = json.loads(path.read_text())
    figures = {side: fields[side] and Figures(**fields[side]) for side in ("stock", "ours")}
    return Row(**(fields | figures))


def _measure(job: _Job) -> Row:
    data, command, name = job.path.read_bytes(), [job.runner], job.path.stem
    try:
        inputs = seeded_inputs(read_model(data), job.options.samples, job.options.seed)
        stock = run_external(command, data, inputs)
        if stock.error:
            return Row(name, refused=_plain(stock.error))
        result = optimize(data, job.options)
    except MemoptError as error:
        return Row(name, refused=_plain(str(error)))
    required = result.report.after.required_bytes
    promised = required.get("target", required[str(BUILDS[job.build].pointer_bits)])
    # Without a target the report counts for TFLM's own kernels, and for each other library beside them.
    others = result.report.libraries["after"]
    if len(others) > 1 and BUILDS[job.build].profile != "reference":
        promised = others[BUILDS[job.build].profile].required
    ours = run_external(command, result.model, inputs)
    if ours.error:
        return Row(name, refused=f"**the optimized model does not run**: {_plain(ours.error)}")
    exact = run_external_jobs(command, {"exact": RunJob(result.model, inputs, promised)}, search=False)["exact"]
    wrong = max(
        sum(not np.array_equal(run.arrays[output], array) for output, array in stock.arrays.items())
        for run in (ours, exact)
        if run.ran
    )
    seconds = result.report.timing["total"]
    library = profile_named(BUILDS[job.build].profile).prices.library
    before, after = result.report.before.instructions, result.report.after.instructions
    estimated = after[library] / max(1, before[library])
    figures = Figures.of(stock), Figures.of(ours)
    return Row(name, *figures, promised, len(stock.arrays), wrong, estimated, seconds, _plain(exact.error or ""))


def _plain(error: str) -> str:
    """TFLM names its source files by the folders of this machine."""
    return re.sub("/[^ ]*/tensorflow/", "tensorflow/", error)[:200]
