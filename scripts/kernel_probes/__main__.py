"""The command; see ``scripts/probe_kernels --help``."""

from __future__ import annotations

import sys

import click

from scripts.device_lab.build import build_runner, default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.sources import VARIABLE, sources_from_environment
from scripts.kernel_probes.probe import SAMPLES, STEP, Execute, on_runner, on_wheel, probe
from scripts.kernel_probes.tables import all_rows, closing_line, grid_of, group_rows
from scripts.kernel_probes.windows import KINDS, random_windows
from tflite_memopt.equivalence.external_runner import command_of
from tflite_memopt.errors import UsageError
from tflite_memopt.kernels.profiles import profile_named


@click.command()
@click.option("--full", is_flag=True, help="The whole grid; else a part of it, which takes a quarter of the time.")
@click.option("--build", type=click.Choice(tuple(BUILDS)), help=f"On a runner of scripts/device; needs {VARIABLE}.")
@click.option("--runner", help="On a runner of your own, a command.")
@click.option("--kernels", help="The profile whose rules are probed. Default: the build's, else reference.")
@click.option("--random", "count", default=0, help="This many random operators in place of the grid.")
@click.option("--kind", default=KINDS[0], show_default=True, type=click.Choice(KINDS), help="Of random operators.")
@click.option("--seed", default=0, show_default=True, help="Of the random operators.")
@click.option("--step", default=STEP, show_default=True, help="Bytes between two distances; 1 for int8 operators only.")
@click.option("--summary", is_flag=True, help="One line for each group of operators.")
def main(
    full: bool,
    build: str | None,
    runner: str | None,
    kernels: str | None,
    count: int,
    kind: str,
    seed: int,
    step: int,
    summary: bool,
) -> None:
    """Print a table of a profile's distances against those that TFLM needs; exit with 1 if one is below."""
    execute = _execute(build, runner)
    name = kernels or (BUILDS[build].profile if build else "reference")
    relations = profile_named(name).relations
    where = build or ("a runner of your own" if runner else "the tflite-micro wheel")
    click.echo(f"# The {name} profile on {where}\n")
    click.echo(
        f"Made by `scripts/probe_kernels {' '.join(sys.argv[1:])}`: {SAMPLES} inputs a probe, steps of {step} bytes."
    )
    click.echo("Distances are offset(input) - offset(output) in bytes; sharing may be used at the rule's or above.\n")
    cases = (
        [window.case for window in random_windows(count, seed, kind)] if count else grid_of(full, bool(build or runner))
    )
    with click.progressbar(cases, file=sys.stderr, label="operators") as bar:
        probes = [found for case in bar for found in probe(case, relations, execute, step)]
    for line in group_rows(probes) if summary else all_rows(probes):
        click.echo(line)
    click.echo(f"\n{closing_line(probes)}")
    sys.exit(0 if all(p.is_safe for p in probes if not p.error) else 1)


def _execute(build: str | None, runner: str | None) -> Execute:
    if build and runner:
        raise UsageError("--build and --runner exclude each other")
    if runner:
        return on_runner(command_of(runner))
    if not build:
        return on_wheel
    sources = sources_from_environment(default_cache())
    if sources is None:
        raise UsageError(f"say where TFLM's sources are: {VARIABLE}")
    return on_runner([str(build_runner(build, BUILDS[build], sources, default_cache()))])


if __name__ == "__main__":
    try:
        main()
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
