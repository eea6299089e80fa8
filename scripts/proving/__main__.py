"""The command; see ``scripts/prove --help``."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.layout import places_in_force
from tflite_memopt.proof import Proof, prove, prove_plan

ORIGINAL, RESULT = ".original.tflite", ".result.tflite"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--kernels", type=click.Choice(list(PROFILES)), help="Prove the results' plans as well, for these kernels."
)
def main(folder: Path, kernels: str | None) -> None:
    """Prove all pairs NAME.original.tflite, NAME.result.tflite of FOLDER; exit with 1 unless all are proved."""
    click.echo("| model | equal | seconds | plan | seconds |\n|---|---|---:|---|---:|")
    ends = Counter[str]()
    for original in sorted(folder.glob(f"*{ORIGINAL}")):
        name = original.name.removesuffix(ORIGINAL)
        result = original.with_name(name + RESULT)
        if not result.exists():
            click.echo(f"| {name} | no {result.name} | | | |")
            ends["no result"] += 1
            continue
        started = time.perf_counter()
        said, is_proved = _equality(original.read_bytes(), result.read_bytes())
        seconds = time.perf_counter() - started
        started, planned = time.perf_counter(), ("", True)
        if kernels is not None:
            planned = _plan(result.read_bytes(), PROFILES[kernels])
        spent = "" if kernels is None else f"{time.perf_counter() - started:.2f}"
        click.echo(f"| {name} | {said} | {seconds:.2f} | {planned[0]} | {spent} |")
        ends["proved" if is_proved and planned[1] else "not proved"] += 1
    click.echo("\n" + ", ".join(f"{count} {end}" for end, count in ends.items()))
    sys.exit(0 if set(ends) == {"proved"} else 1)


def _equality(original: bytes, result: bytes) -> tuple[str, bool]:
    try:
        return _said(prove(read_model(original), read_model(result), converts=True))
    except MemoptError as error:
        return f"unreadable: {error}", False


def _plan(result: bytes, profile: KernelProfile) -> tuple[str, bool]:
    try:
        model = read_planned(result)
        return _said(prove_plan(model, places_in_force(model, profile)))
    except MemoptError as error:
        return f"no plan: {error}", False


def _said(proof: Proof) -> tuple[str, bool]:
    return (f"{proof} (chance of a false proof {proof.chance:.0e})" if proof.proved else str(proof)), proof.proved


if __name__ == "__main__":
    main()
