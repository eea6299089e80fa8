"""The command; see ``scripts/prove --help``."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from scripts.benchmarks.figures import Row, keep
from scripts.benchmarks.networks import random_networks
from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.verification import infer_shapes
from tflite_memopt.evidence.proof import Proof, Status, prove, prove_plan
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.file import places_in_force, read_planned
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize

ORIGINAL, RESULT = ".original.tflite", ".result.tflite"
Pair = tuple[str, bytes, bytes]


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--kernels", type=click.Choice(list(PROFILES)), help="Prove the results' plans as well, for these kernels."
)
@click.option("--random", "count", type=int, help="In place of a folder: so many random networks, optimized.")
@click.option("--seed", default=0, show_default=True, help="Which random networks.")
@click.option("--figures", is_flag=True, help="Write the counts to docs/results/proofs.csv.")
def main(folder: Path | None, kernels: str | None, count: int | None, seed: int, figures: bool) -> None:
    """Prove all pairs NAME.original.tflite, NAME.result.tflite of FOLDER; exit with 1 unless all are proved.

    Seconds are those of the processor.
    """
    if (folder is None) == (count is None):
        raise click.UsageError("name a folder, or --random")
    click.echo("| model | equal | seconds | plan | seconds |\n|---|---|---:|---|---:|")
    pairs = _random_pairs(seed, count or 0, kernels) if folder is None else _pairs(folder)
    ends, times = Counter[str](), list[tuple[float, float]]()
    for name, original, result in pairs:
        started = time.process_time()
        said, status = _equality(original, result)
        seconds = time.process_time() - started
        started, planned = time.process_time(), ("", "proved")
        if kernels is not None:
            planned = _plan(result, PROFILES[kernels])
        times.append((seconds, time.process_time() - started))
        spent = "" if kernels is None else f"{times[-1][1]:.2f}"
        click.echo(f"| {name} | {said} | {seconds:.2f} | {planned[0]} | {spent} |")
        ends[f"{status}" if planned[1] == "proved" else f"plan {planned[1]}"] += 1
    click.echo("\n" + ", ".join(f"{count} {end}" for end, count in ends.items()))
    if figures:
        what = f"{count} random networks, seed {seed}" if folder is None else f"pairs of {folder.name}"
        options = "" if kernels is None else f"--kernels {kernels}"
        source = f"scripts/prove --random {count} --seed {seed}" if folder is None else "scripts/prove FOLDER"
        values: dict[str, object] = {"pairs": len(times), **ends}
        for of, each in zip(("function", "plan"), zip(*times, strict=True), strict=False):
            values |= {f"{of}: seconds, all": f"{sum(each):.1f}", f"{of}: seconds, longest": f"{max(each):.2f}"}
        keep("proofs", f"{source} {options} --figures", [Row(what, "", options, values)])
    sys.exit(0 if set(ends) <= {"proved", "reassociated"} else 1)


def _pairs(folder: Path) -> Iterator[Pair]:
    for original in sorted(folder.glob(f"*{ORIGINAL}")):
        name = original.name.removesuffix(ORIGINAL)
        yield name, original.read_bytes(), original.with_name(name + RESULT).read_bytes()


def _random_pairs(seed: int, count: int, kernels: str | None) -> Iterator[Pair]:
    """Optimize random networks with a quick search."""
    options = Options(kernels=kernels, objective="head", effort="quick", max_slowdown=1.0, verify=False)
    for number, original in enumerate(random_networks(count, seed), seed):
        result = _optimized(original, options)
        if isinstance(result, bytes):
            yield f"random {number}", original, result
        else:
            click.echo(f"| random {number} | refused: {result} | | | |")


def _optimized(original: bytes, options: Options) -> bytes | MemoptError:
    try:
        return optimize(original, options).model
    except MemoptError as error:
        return error


def _equality(original: bytes, result: bytes) -> tuple[str, str]:
    """Of an original that is not followed as it came, the file with the shapes that LiteRT infers."""
    try:
        proof = prove(read_model(original), read_model(result), converts=True)
        if not proof.proved:
            shaped = infer_shapes(original, Options(), lambda _: None)
            proof = prove(shaped.model, read_model(result), converts=True)
        return _said(proof)
    except MemoptError as error:
        return f"unreadable: {error}", "unreadable"


def _plan(result: bytes, profile: KernelProfile) -> tuple[str, str]:
    try:
        model = read_planned(result)
        return _said(prove_plan(model, places_in_force(model, profile)))
    except MemoptError as error:
        return f"no plan: {error}", "unreadable"


def _said(proof: Proof) -> tuple[str, str]:
    said = f"{proof} (chance of a false proof {proof.chance:.0e})" if proof.proved else str(proof)
    return said, "not proved" if proof.status is Status.UNKNOWN else proof.status.name.lower()


if __name__ == "__main__":
    main()
