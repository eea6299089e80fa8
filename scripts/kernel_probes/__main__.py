"""The command; see ``scripts/probe_kernels --help``."""

from __future__ import annotations

import sys

import click

from scripts.kernel_probes.grid import GRIDS
from scripts.kernel_probes.probe import SAMPLES, probe


@click.command()
@click.option("--full", is_flag=True, help="The whole grid; else a part of it, which takes a quarter of the time.")
def main(full: bool) -> None:
    """Print a table of the reference profile's distances against those that TFLM needs; exit with 1 if one is below."""
    click.echo("# The reference profile against TFLM\n")
    click.echo(
        f"Made by `scripts/probe_kernels{' --full' * full}`: {SAMPLES} random inputs a probe, steps of 16 bytes."
    )
    click.echo(
        "Distances are offset(input) - offset(output) in bytes; an overlap may be used at the rule's or above.\n"
    )
    click.echo("| operator | kind | rule, bytes | TFLM needs | above by | a row | a pixel |")
    click.echo("|---|---|---|---|---|---|---|")
    probes = []
    for grid in GRIDS:
        for case in grid(full):
            for found in probe(case):
                probes.append(found)
                need, above = ("NOT SAFE", "-") if found.found is None else (found.found, found.rule - found.found)
                cells = (found.label, found.kind, found.rule, need, above, found.row, found.pixel)
                click.echo("| " + " | ".join(map(str, cells)) + " |")
    unsafe, far = sum(not p.is_safe for p in probes), sum(p.is_safe and not p.is_close for p in probes)
    click.echo(f"\n{len(probes)} probes: {unsafe} below what TFLM needs, {far} above it by more than a row.")
    sys.exit(1 if unsafe else 0)


if __name__ == "__main__":
    main()
