"""Figures for docs/benchmarks.

scripts/bench people SOURCE... [-o docs/benchmarks/people.md]   the networks of `scripts/zoo --people`
scripts/bench others [NAME...] [-o docs/benchmarks/others.md]   the networks of `scripts/zoo --others`
scripts/bench parts MODEL...                                   models in parts, in QEMU
scripts/bench feed MODEL...                                    models that take rows of their input, in QEMU
scripts/bench schedule FOLDER... [-o docs/benchmarks/schedule.md]    every scheduler, the papers' tables
scripts/bench plan FOLDER... --minimalloc FOLDER [-o docs/benchmarks/plan.md]   every planner
scripts/bench ablations MODEL...                               what each mechanism saves
scripts/bench devices FOLDER [-o docs/benchmarks/devices.md]      runners of CMSIS-NN, esp-nn, Cortex-M
scripts/bench prices MODEL... [--build NAME]                    instructions of each operator, estimated and in QEMU
scripts/bench modules TARGET MODEL...                          seconds of verification, on module and wheel
"""

from __future__ import annotations

import click

from .ablations import ablations
from .devices import devices
from .feed import feed
from .modules import modules
from .others import others
from .parts import parts
from .people import people
from .plan import plan
from .prices import prices
from .schedule import schedule


@click.group()
def cli() -> None:
    """Benchmarks of tflite_memopt."""


for _command in (people, others, parts, feed, schedule, plan, ablations, devices, prices, modules):
    cli.add_command(_command)

if __name__ == "__main__":
    cli()
