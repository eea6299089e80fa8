"""Builds the benchmark networks as .tflite, with random weights.

scripts/zoo [NAME ...] [--size full|tiny] [--int8] [-o FOLDER] [--force]     all networks, or those named
scripts/zoo --list                                                           their names
scripts/zoo --others [NAME ...]      networks of which other tools publish the RAM, in int8
scripts/zoo --people [NAME ...]      networks that people train for microcontrollers, in float, int8 and int16x8
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from scripts.zoo_networks.from_keras import Precision, to_tflite
from scripts.zoo_networks.quiet import NoConversionError, prepare_environment, quiet
from tflite_memopt.model.io.files import write_files
from tflite_memopt.model.io.reader import read_model

SEED = 0


def default_folder() -> Path:
    """The user's cache, as the XDG base directory specification has it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tflite_memopt" / "zoo"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--size", type=click.Choice(["full", "tiny"]), default="full", show_default=True)
@click.option("--int8", is_flag=True, help="Full-integer int8 instead of float32.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_folder,
    help="Folder for the files; without it ~/.cache/tflite_memopt/zoo.",
)
@click.option("--force", is_flag=True, help="Build files that exist, too.")
@click.option("--people", is_flag=True, help="Small networks of every kind, trained a little, in all types of numbers.")
@click.option("--others", is_flag=True, help="Networks of which other tools publish the RAM, in int8.")
@click.option("--list", "only_list", is_flag=True, help="Show the names and stop.")
def main(
    names: tuple[str, ...],
    size: str,
    int8: bool,
    output: Path,
    force: bool,
    people: bool,
    others: bool,
    only_list: bool,
) -> None:
    """Build the networks NAMES (all without one) into a folder, smallest first."""
    prepare_environment()
    with quiet():
        # TensorFlow, several seconds.
        jobs = _people_jobs() if people else _others_jobs() if others else _jobs(size == "tiny", int8)
    every = list(dict.fromkeys(job.network for job in jobs))
    if only_list:
        click.echo("\n".join(every))
        return
    unknown = [name for name in names if name not in every]
    if unknown:
        raise click.UsageError(f"no network {', '.join(unknown)}; there are {', '.join(every)}")
    output.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        if not names or job.network in names:
            click.echo(_built(job, output / f"{job.file}.tflite", force))


@dataclass(frozen=True)
class Job:
    """A file to build: of which network, under which name, and how."""

    network: str
    file: str
    make: Callable[[], bytes]


def _jobs(tiny: bool, int8: bool) -> list[Job]:
    from scripts.zoo_networks.catalog import NETWORKS

    ending = f"{'_tiny' if tiny else ''}{'_int8' if int8 else ''}"
    return [Job(name, f"{name}{ending}", partial(build, name, tiny, int8)) for name in NETWORKS]


def _people_jobs() -> list[Job]:
    from scripts.zoo_networks.people.build import build_people
    from scripts.zoo_networks.people.catalog import PEOPLE

    every = ((name, numbers) for name, each in PEOPLE.items() for numbers in each.numbers)
    return [
        Job(name, f"people_{name}_{numbers}", partial(build_people, name, numbers, SEED)) for name, numbers in every
    ]


def _others_jobs() -> list[Job]:
    from scripts.zoo_networks.others import OTHERS

    return [Job(name, f"others_{name}", partial(_converted, make, Precision.INT8)) for name, make in OTHERS.items()]


def _built(job: Job, target: Path, force: bool) -> str:
    """One line on the file, which is built where it does not exist."""
    if target.exists() and not force:
        return f"{target.name}: exists"
    started = time.perf_counter()
    try:
        with quiet():
            data = job.make()
    except NoConversionError as error:
        return f"{target.name}: the converter refuses it: {error}"
    write_files({target: data})
    return f"{target.name}: {_summary(data)}, {time.perf_counter() - started:.1f} s"


def build(name: str, tiny: bool, int8: bool) -> bytes:
    """The bytes of one network; the same bytes at every call, in any order of calls."""
    from scripts.zoo_networks.catalog import NETWORKS

    network = NETWORKS[name]
    small = Precision.SMALL_WEIGHTS if network.small_weights and not tiny else Precision.FLOAT32
    return _converted(network.tiny if tiny else network.full, Precision.INT8 if int8 else small)


def _converted(make: Callable[[], Any], precision: Precision) -> bytes:
    import keras

    from scripts.zoo_networks.weights import randomize

    keras.utils.clear_session()  # Layer names count up, and reach the file.
    keras.utils.set_random_seed(SEED)
    model = make()
    randomize(model, SEED)
    return to_tflite(model, precision, SEED)


def _summary(data: bytes) -> str:
    return f"{len(read_model(data).main.operators)} operators, {len(data):,} bytes"


if __name__ == "__main__":
    main()
