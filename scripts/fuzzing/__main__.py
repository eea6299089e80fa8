"""The commands; see ``scripts/fuzz --help``."""

from __future__ import annotations

import random
import resource
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import click

from scripts.benchmarks.figures import Row
from scripts.benchmarks.figures import keep as keep_figures
from scripts.fuzzing import runtimes as table_of_runtimes
from scripts.fuzzing.cases import damaged
from scripts.fuzzing.cells import cells
from scripts.fuzzing.firmware import Ends, of_network
from scripts.fuzzing.judge import Counts, table
from scripts.fuzzing.kernels import met_by
from scripts.fuzzing.proofs import Attack, attacked, attacked_plans, attacked_results, attacked_streams
from scripts.fuzzing.ranges import tried
from tests.models import ALL
from tflite_memopt import Options, optimize
from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.model.io.associated_files import append
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import AssociatedFile

_MEMORY = 4 << 30
_SLOW_SECONDS = 5.0
"""Of the processor: what else runs on the machine does not count."""
OPTIONS = Options(verify=False, cascade=False, rewrite=False, planner="tflm_greedy")
"""Everything but the verification and the searches: they are not what files are dangerous to."""


def bases() -> list[bytes]:
    """The models that are damaged: all corners of the format that the tests build, planned ones and one with a file."""
    plain = [write_model(make()) for make in ALL.values()]
    planned = [optimize(data, OPTIONS).model for data in plain[:4]]
    return [*plain, *planned, append(plain[0], (AssociatedFile("labels.txt", b"cat\ndog\n" * 9, compressed=True),))]


@click.group()
def main() -> None:
    """Attacks on the tool."""


@main.command()
@click.option("--cases", default=20_000, show_default=True, help="How many.")
@click.option("--seed", default=0, show_default=True, help="Which.")
@click.option("--first", default=0, show_default=True, help="Number of the first case.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for the cases that fail.")
def files(cases: int, seed: int, first: int, keep: Path | None) -> None:
    """Give damaged models to the tool; exit with 1 when one is slow, or neither optimized nor refused in one line."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    models, ends, slowest, failures = bases(), Counter[str](), (0.0, 0), []
    before = _peak()
    for number in range(first, first + cases):
        data = damaged(models, number, seed)
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            end = ending(data)
        seconds = time.process_time() - started
        slowest = max(slowest, (seconds, number))
        ends[end.split(":")[0]] += 1
        if end.startswith("FAILED") or seconds > _SLOW_SECONDS:
            failures.append(f"case {number}: {seconds:.1f} s, {end}")
            if keep is not None:
                keep.mkdir(exist_ok=True)
                (keep / f"case{number}.tflite").write_bytes(data)
    click.echo("| end | cases |\n|---|---|")
    for end, count in ends.most_common():
        click.echo(f"| {end} | {count:,} |")
    click.echo(
        f"\nslowest: {slowest[0]:.3f} s (case {slowest[1]}); memory grew by {(_peak() - before) >> 10} MB in all"
    )
    for line in failures:
        click.echo(line)
    sys.exit(1 if failures else 0)


@main.command()
@click.option("--mutants", default=20_000, show_default=True, help="Mutants of models, in all.")
@click.option("--plans", default=5_000, show_default=True, help="Plans with one tensor moved, in all.")
@click.option("--streams", default=1_000, show_default=True, help="Slid, stepped, and parted results changed, in all.")
@click.option("--samples", default=200, show_default=True, help="Inputs for a mutant that is proved, extremes first.")
@click.option("--seed", default=0, show_default=True, help="Which.")
@click.option("--first", default=0, show_default=True, help="Number of the first original.")
@click.option("--seconds", default=1e9, help="Begin no other original after so long, a third of it for each sort.")
@click.option("--pairs", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Mutate results as well.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for the pairs that are falsely proved.")
@click.option("--figures", is_flag=True, help="Write the counts to docs/results/attacks.csv.")
def proof(
    mutants: int,
    plans: int,
    streams: int,
    samples: int,
    seed: int,
    first: int,
    seconds: float,
    pairs: Path | None,
    keep: Path | None,
    figures: bool,
) -> None:
    """Change one field of a model, a place of a plan, or something of a result that is called or run in parts, and look
    whether what is proved is so on LiteRT and TFLM.

    Exits with 1 when a proof is false: a runtime differs, or does not run what it runs of the original, or the proof
    crashes.
    """
    attack = Attack(seed, samples, seconds / 3, keep)
    every = [
        attacked(attack, mutants, first),
        attacked_plans(attack, plans, first),
        attacked_streams(attack, streams, first),
    ]
    if pairs is not None:
        every.append(attacked_results(attack, mutants, pairs))
    for counts in every:
        for line in (*table(counts), "", *counts.false):
            click.echo(line)
    if figures:
        counted = f"--mutants {mutants} --plans {plans} --streams {streams} --samples {samples}"
        limits = f"{counted} --seconds {seconds:g} --seed {seed}"
        source = f"scripts/fuzz proof {limits} --figures"
        keep_figures(
            "attacks",
            source,
            (_row(*each) for each in zip(("fields", "plans", "streams", "fields of results"), every, strict=False)),
        )
    sys.exit(1 if any(counts.false for counts in every) else 0)


def _row(what: str, counts: Counts) -> Row:
    tried, proved = sum(counts.tried.values()), sum(counts.proved.values())
    return Row(
        what, "", "", {"originals": len(counts.tried), "tried": tried, "proved": proved, "false": len(counts.false)}
    )


@main.command()
@click.option("--networks", "count", default=50_000, show_default=True, help="How many.")
@click.option("--first", default=0, show_default=True, help="Number of the first network.")
@click.option("--seed", default=0, show_default=True, help="Which.")
def ranges(count: int, first: int, seed: int) -> None:
    """Run random networks on LiteRT and TFLM, and look whether every tensor is inside of what is derived of it.

    Both derivations are tried: that of rewrites, and that of the proof. Exits with 1 when a value is outside of one.
    """
    found = tried(count, first, seed)
    click.echo("| intervals | tensors followed | with a constant channel |\n|---|---:|---:|")
    for name in sorted(found.followed):
        click.echo(f"| {name} | {found.followed[name]:,} | {found.constant[name]:,} |")
    kinds = ", ".join(f"{times:,} {kind}" for kind, times in found.tensors.most_common())
    click.echo(f"\n{found.networks:,} networks: {kinds}")
    click.echo("; ".join(f"{what} {times:,}" for what, times in sorted(found.runs.items())))
    click.echo(f"outside: {len(found.outside)}")
    for line in found.outside:
        click.echo(line)
    sys.exit(1 if found.outside else 0)


@main.command()
@click.option("--target", default="esp32s3", show_default=True, help="Whose kernels.")
@click.option("--networks", "count", default=5_000, show_default=True, help="How many.")
@click.option("--first", default=0, show_default=True, help="Number of the first network.")
def kernels(target: str, count: int, first: int) -> None:
    """Optimize networks of stock layers, and look whether what is written meets a fault of a kernel library.

    Exits with 1 if a written file meets a fault that its original does not meet.
    """
    met = met_by(target, first, count, Options(target=target, verify=False, effort="quick"))
    click.echo("| fault | networks as they came | as written |\n|---|---:|---:|")
    for name in sorted(met.before | met.after):
        click.echo(f"| {name} | {met.before[name]:,} | {met.after[name]:,} |")
    click.echo(f"\n{count:,} networks, {met.mended:,} mended; refused: {dict(met.refused)}")
    for line in met.wrong:
        click.echo(line)
    sys.exit(1 if met.wrong else 0)


@main.command()
@click.option("--sample", type=int, help="So many cells, drawn by the seed; all where it is left out.")
@click.option("--seed", default=0, show_default=True, help="Which.")
@click.option("--write", "is_written", is_flag=True, help="Write docs/runtimes.csv, with all cells.")
def runtimes(sample: int | None, seed: int, is_written: bool) -> None:
    """Run models of one operator on LiteRT, its reference kernels, and TFLM, beside the specification's arithmetic.

    Exits with 1 when a cell is not what docs/runtimes.csv says, as with another wheel.
    """
    made_with, known = table_of_runtimes.read()
    every = cells()
    chosen = every if sample is None or is_written else random.Random(seed).sample(every, min(sample, len(every)))
    started = time.monotonic()
    found = table_of_runtimes.measured(chosen)
    if is_written:
        table_of_runtimes.write(found)
    wrong = [*table_of_runtimes.changed(found, known)]
    present = table_of_runtimes.versions()
    click.echo(f"{len(found):,} cells in {time.monotonic() - started:.0f} s; {len(wrong)} differ from the table")
    for name in (name for name in present if present[name] != made_with[name]):
        click.echo(f"{name} {present[name]}; the table was made with {made_with[name]}")
    for line in wrong:
        click.echo(line)
    sys.exit(1 if wrong and not is_written else 0)


@main.command()
@click.option("--networks", "count", default=300, show_default=True, help="How many.")
@click.option("--first", default=0, show_default=True, help="Number of the first network.")
def firmware(count: int, first: int) -> None:
    """Optimize networks, write firmware, and run it on TFLM: in the arena that it reserves, and in 16 bytes less.

    Exits with 1 when outputs differ from the original's, or the smaller arena suffices.
    """
    ends = Ends()
    with Interpreters((), ProcessLimits()) as interpreters:
        for number in range(first, first + count):
            of_network(number, interpreters, ends)
    click.echo("| firmware | as LiteRT | as TFLM runs the original | refused |\n|---|---:|---:|---:|")
    for kind in sorted(ends.equal | ends.tflm | ends.refused):
        click.echo(f"| {kind} | {ends.equal[kind]} | {ends.tflm[kind]} | {ends.refused[kind]} |")
    for reason, times in ends.why.most_common():
        click.echo(f"refused {times} times: {reason}")
    for line in ends.wrong:
        click.echo(f"WRONG: {line}")
    sys.exit(1 if ends.wrong else 0)


def ending(data: bytes) -> str:
    """How the tool ended on a file: ``optimized``, the name of the error that refused it, or FAILED with the fault."""
    try:
        optimize(data, OPTIONS)
    except MemoptError as error:
        return type(error).__name__ if str(error) and "\n" not in str(error) else f"FAILED: message {str(error)!r}"
    except Exception as error:
        return f"FAILED: {type(error).__name__}: {error}"
    return "optimized"


def _peak() -> int:
    """Kilobytes of memory that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
