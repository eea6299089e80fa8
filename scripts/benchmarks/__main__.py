"""Figures for docs/results.md.

scripts/bench models FOLDER... [--table NAME]   RAM, run time and flash of models, by target
scripts/bench --stale   tables with figures of other versions
scripts/bench programs FOLDER...   RAM in parts, and with an input that comes row by row: docs/results/programs.csv
scripts/bench converters FOLDER...   what is left of the operators that converters of PyTorch write
scripts/bench faults FOLDER...   operators that meet a fault of a kernel library, before and after
scripts/bench slide SOURCE...   hops of a sliding window against the whole window and a fed front
scripts/bench recurrent   a GRU layer of Keras: the sequence in one call, and one step per call
scripts/bench tail MODEL...   TFLM's own structures by kind, and the least that stock TFLM permits
scripts/bench costs   what a search over networks may count, against the full cost: docs/results/costs.csv
scripts/bench sweeps   RAM by resolution, width, kernel, and so on, one at a time: docs/results/sweeps.csv
scripts/bench searches   a search that counts the stock arena, and one the optimized: docs/results/searches.csv
scripts/bench throughput   candidates that batch estimates per second: docs/results/throughput.csv
scripts/bench ablations MODEL...                               the bytes and seconds that every mechanism saves
"""

from __future__ import annotations

import click

from .ablations import ablations
from .candidates import costs, sweeps, throughput
from .converters import converters
from .faults import faults
from .figures import stale as stale_figures
from .models import models
from .programs import programs
from .recurrent import recurrent
from .searches import searches
from .slide import slide
from .tail import tail


@click.group(invoke_without_command=True, no_args_is_help=True)
@click.option("--stale", is_flag=True, help="List the tables that have figures of other versions of the package.")
def cli(stale: bool) -> None:
    """Benchmarks of tflite_memopt."""
    for each in stale_figures() if stale else ():
        click.echo(f"{each.table}: {each.figures} figures of {each.version}: {each.source}")


for _command in (
    models,
    programs,
    converters,
    slide,
    recurrent,
    faults,
    tail,
    costs,
    sweeps,
    searches,
    throughput,
    ablations,
):
    cli.add_command(_command)

if __name__ == "__main__":
    cli()
