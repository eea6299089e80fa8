"""Builds the benchmark networks as .tflite, with random weights.

scripts/zoo [NAME ...] [--size full|tiny] [--int8] [-o FOLDER] [--force]     all networks, or those named
scripts/zoo --list                                                           their names
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from scripts.zoo_networks.quiet import prepare_environment, quiet
from tflite_memopt.io.files import write_files
from tflite_memopt.io.reader import read_model

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
@click.option("--list", "only_list", is_flag=True, help="Show the names and stop.")
def main(names: tuple[str, ...], size: str, int8: bool, output: Path, force: bool, only_list: bool) -> None:
    """Build the networks NAMES (all without one) into a folder, smallest first."""
    prepare_environment()
    with quiet():
        from scripts.zoo_networks.catalogue import NETWORKS  # TensorFlow, several seconds.
    if only_list:
        click.echo("\n".join(NETWORKS))
        return
    unknown = [name for name in names if name not in NETWORKS]
    if unknown:
        raise click.UsageError(f"no network {', '.join(unknown)}; there are {', '.join(NETWORKS)}")
    output.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        target = output / f"{name}{'_tiny' if size == 'tiny' else ''}{'_int8' if int8 else ''}.tflite"
        if names and name not in names:
            continue
        if target.exists() and not force:
            click.echo(f"{target.name}: exists")
            continue
        started = time.perf_counter()
        with quiet():
            data = build(name, size == "tiny", int8)
        write_files({target: data})
        click.echo(f"{target.name}: {_summary(data)}, {time.perf_counter() - started:.1f} s")


def build(name: str, tiny: bool, int8: bool) -> bytes:
    """The bytes of one network; the same bytes at every call, in any order of calls."""
    import keras

    from scripts.zoo_networks.catalogue import NETWORKS
    from scripts.zoo_networks.weights import randomise
    from tflite_memopt.keras_model import Precision, to_tflite

    network = NETWORKS[name]
    keras.utils.clear_session()  # Layer names count up, and reach the file.
    keras.utils.set_random_seed(SEED)
    model = network.tiny() if tiny else network.full()
    randomise(model, SEED)
    small = Precision.SMALL_WEIGHTS if network.small_weights and not tiny else Precision.FLOAT32
    return to_tflite(model, Precision.INT8 if int8 else small, SEED)


def _summary(data: bytes) -> str:
    return f"{len(read_model(data).main.operators)} operators, {len(data):,} bytes"


if __name__ == "__main__":
    main()
