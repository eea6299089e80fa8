"""Stock and optimised models on real builds of TFLM, the host's and Cortex-M's: docs/benchmarks/devices.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from scripts.device_lab.build import build_runner, default_cache, missing_tools
from scripts.device_lab.builds import BUILDS, Build
from scripts.device_lab.sources import VARIABLE, sources_from_environment
from scripts.kernel_probes.probe import on_runner, probe
from scripts.kernel_probes.tables import closing_line, grid_of, group_rows
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.external_runner import ExternalRun, run_external, run_external_jobs
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.errors import MemoptError, UsageError
from tflite_memopt.io.reader import read_model
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

_HEADER = (
    "model | stock head | tail | smallest arena | our head | tail | smallest arena | `required_bytes` | off by "
    "| outputs | instructions"
)


_EXPLANATION = """Bytes. `smallest arena`: the smallest multiple of 16 that AllocateTensors accepts. `off by`:
`required_bytes` against it. `outputs`: against the stock model's on the same build, in the largest arena and in one of
exactly `required_bytes`. `instructions`: executed under QEMU, ours to stock's, all inputs together.

Distances of overlap, offset(input) - offset(output): every pair of tensors that the profile or that of the reference
kernels lets share memory was tried at all distances, in steps of 16; `scripts/probe_kernels --build NAME` prints each.
`below need`: a rule under what the kernel needs. `needs over the reference rule`: the most that a kernel of the group
needs above the rule for TFLM's own loops.
"""


@dataclass(frozen=True)
class Measured:
    """One model on one build. ``promised`` is the report's ``required_bytes``, ``at_promised`` a run in just that."""

    name: str
    stock: ExternalRun
    ours: ExternalRun
    at_promised: ExternalRun
    promised: int

    @property
    def differing(self) -> int:
        """How many outputs, of all samples, are not the stock model's, in the largest arena or in the promised one."""
        wanted = self.stock.arrays
        runs = [run.arrays for run in (self.ours, self.at_promised) if run.ran]
        return max(sum(not np.array_equal(found[name], array) for name, array in wanted.items()) for found in runs)

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        off = 100 * (self.promised - _smallest(self.ours)) / _smallest(self.ours)
        first = [f"{n:,}" for run in (self.stock, self.ours) for n in (run.head, run.tail, _smallest(run))]
        below = " **too small**" if self.promised < _smallest(self.ours) else ""
        worse = " **above stock**" if self.promised > _smallest(self.stock) else ""
        return [self.name, *first, f"{self.promised:,}{worse}", f"{off:+.2f} %{below}", self._outputs(), self._time()]

    def _outputs(self) -> str:
        if self.at_promised.error:
            return f"**does not run in `required_bytes`**: {self.at_promised.error[:80]}"
        return "equal" if not self.differing else f"**{self.differing} of {len(self.stock.arrays)} differ**"

    def _time(self) -> str:
        before, after = self.stock.instructions, self.ours.instructions
        return f"{after / before:.3f}" if before and after else "-"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option(
    "--build", "builds", multiple=True, type=click.Choice(tuple(BUILDS)), help="Default: all that can be built."
)
@click.option("--kernels", help="A profile in place of the build's target, such as portable.")
@click.option("--model", "models", multiple=True, help="Only files whose name contains this.")
@click.option("--samples", default=10, show_default=True, help="Inputs for each model.")
@click.option("--time-limit", default=60.0, show_default=True, help="Seconds for each search.")
@click.option("--distances/--no-distances", default=True, show_default=True, help="Probe the kernels, too.")
@click.option("--cascade/--no-cascade", default=True, show_default=True, help="Run regions in stripes.")
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
) -> None:
    """Every model of FOLDER on each build of TFLM: stock and optimised for the kernels of that build."""
    runners = _runners(builds)
    paths = [path for path in sorted(folder.glob("*.tflite")) if not models or any(m in path.stem for m in models)]
    options = Options(samples=samples, time_limit=time_limit, cascade=cascade, verify=False)
    command = " ".join(word for word in sys.argv[2:] if word not in (str(folder), "-o", str(output)))
    lines = list(_head(f"scripts/bench devices FOLDER {command}".strip()))
    for name, runner in runners.items():
        build = BUILDS[name]
        meant = replace(options, kernels=kernels or build.profile, target=None if kernels else build.target)
        lines += _section(name, runner, paths, meant)
        if distances:
            lines += _distances(name, runner, meant.kernels)
    text = "\n".join(lines)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


def _head(command: str) -> Iterator[str]:
    yield "# Devices\n"
    yield f"Made by `{command}` with {VARIABLE} set."
    yield _EXPLANATION


def _runners(names: tuple[str, ...]) -> Mapping[str, Path]:
    sources = sources_from_environment(default_cache())
    if sources is None:
        raise UsageError(f"say where TFLM's sources are: {VARIABLE}")
    wanted = names or [n for n, b in BUILDS.items() if not missing_tools(b) and not sources.missing(b.library)]
    return {name: build_runner(name, BUILDS[name], sources, default_cache()) for name in wanted}


def _section(name: str, runner: Path, paths: list[Path], options: Options) -> Iterator[str]:
    yield f"## {name}, plans for {options.target or 'any target'} with `{options.kernels}`\n"
    yield f"| {_HEADER} |"
    yield "|" + "---|" * (_HEADER.count("|") + 1)
    refused = []
    for path in paths:
        click.echo(f"{name} {path.stem}", err=True)
        found = _measure(path, BUILDS[name], runner, options)
        if isinstance(found, str):
            # TFLM names its source files by the folders of this machine.
            refused.append(f"- {path.stem}: " + re.sub("/[^ ]*/tensorflow/", "tensorflow/", found))
        else:
            yield f"| {' | '.join(found.cells)} |"
    yield ""
    if refused:
        yield from ("Not run:", "", *refused, "")


def _distances(name: str, runner: Path, profile: str) -> Iterator[str]:
    execute, relations = on_runner([str(runner)]), profile_named(profile).relations
    click.echo(f"{name}: probing", err=True)
    probes = [found for case in grid_of(full=False, library=True) for found in probe(case, relations, execute)]
    yield f"### Distances of overlap on {name}\n"
    yield from group_rows(probes)
    yield f"\n{closing_line(probes)}\n"


def _measure(path: Path, build: Build, runner: Path, options: Options) -> Measured | str:
    """A row, or why there is none."""
    data, command = path.read_bytes(), [str(runner)]
    try:
        inputs = seeded_inputs(read_model(data), options.samples, options.seed)
        stock = run_external(command, data, inputs)
        if stock.error:
            return stock.error[:200]
        result = optimize(data, options)
    except MemoptError as error:
        return str(error)
    required = result.report.after.required_bytes
    promised = required.get("target", required[str(build.pointer_bits)])
    ours = run_external(command, result.model, inputs)
    if ours.error:
        return f"**the optimised model does not run**: {ours.error[:200]}"
    exact = run_external_jobs(command, {"exact": RunJob(result.model, inputs, promised)}, search=False)["exact"]
    return Measured(path.stem, stock, ours, exact, promised)


def _smallest(run: ExternalRun) -> int:
    assert run.smallest_arena is not None  # every run here asks for it
    return run.smallest_arena
