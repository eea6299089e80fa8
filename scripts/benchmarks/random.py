"""Random networks and large ones: what they need, before and after, and the processor seconds of a run.

No verification, one process. The seeds begin at 5000: no test names one from there on.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from tests.cascade.networks import random_network
from tests.cells import cell_network
from tests.large_networks import LARGE, in_floats
from tests.test_random_models import random_model, random_rows
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize


@dataclass(frozen=True)
class RandomRun:
    """Bytes of the arena to reserve on 32 bits, and processor seconds; ``stages``: wall seconds by stage."""

    operators: int
    before: int
    after: int
    seconds: float
    stages: Mapping[str, float]


@click.command()
@click.option("--networks", default=300, show_default=True, help="How many random ones.")
@click.option("--first", default=5000, show_default=True, help="The seed of the first.")
@click.option("--large", is_flag=True, help="The networks of tests/large_networks.py before them.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON here.")
@click.option("--against", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="JSON of another commit.")
def random(networks: int, first: int, large: bool, output: Path | None, against: Path | None) -> None:
    """Need and processor time of random networks, int8 and float in turn, without verification."""
    runs: dict[str, RandomRun] = {}
    for name, model in _networks(first, networks, large):
        runs[name] = run = _run(model)
        click.echo(f"{name}: {run.operators} operators, {run.before} -> {run.after}, {run.seconds:.1f} s")
        if output is not None:  # after each, since all of them take long
            output.write_text(json.dumps({name: asdict(run) for name, run in runs.items()}, indent=1))
    _sum_up(runs)
    if against is not None:
        _compare(runs, {name: RandomRun(**run) for name, run in json.loads(against.read_text()).items()})


def _networks(first: int, count: int, large: bool) -> Iterator[tuple[str, Model]]:
    for name, make in LARGE.items() if large else ():
        yield f"{name} int8", make()
        yield f"{name} float", in_floats(make())
    for seed in range(first, first + count):
        dtype = (DType.INT8, DType.FLOAT32)[seed % 2]
        yield f"{seed} {dtype.label}", _random(seed, dtype)


def _random(seed: int, dtype: DType) -> Model:
    """By the four generators in turn, of several sizes."""
    kind, size = seed // 2 % 4, seed // 8 % 5
    if kind == 0:
        return random_network(seed, dtype, 4 + 3 * size, height=24)
    makers = (
        lambda: cell_network(seed, resolution=24, cells=1 + size % 3, nodes=3 + size),
        lambda: random_model(seed),
        lambda: random_rows(seed),
    )
    model = makers[kind - 1]()
    return model if dtype is DType.INT8 else in_floats(model)


def _run(model: Model) -> RandomRun:
    data, started = write_model(model), time.process_time()
    report = optimize(data, Options(verify=False)).report
    seconds, needs = time.process_time() - started, [use.required_bytes["32"] for use in (report.before, report.after)]
    return RandomRun(report.before.operators, needs[0], needs[1], round(seconds, 2), report.timing)


def _sum_up(runs: Mapping[str, RandomRun]) -> None:
    total = [sum(getattr(run, name) for run in runs.values()) for name in ("before", "after", "seconds")]
    left = statistics.median(run.after / run.before for run in runs.values())
    click.echo(f"needs {total[0]} -> {total[1]}, median {left:.4f} of before; {total[2]:.0f} s in all; the slowest:")
    for name in sorted(runs, key=lambda name: -runs[name].seconds)[:5]:
        click.echo(f"  {name}: {runs[name].seconds:.1f} s")


def _compare(runs: Mapping[str, RandomRun], others: Mapping[str, RandomRun]) -> None:
    """Needs as a part of those of another commit."""
    ratios = {name: runs[name].after / others[name].after for name in runs if name in others}
    times = [sum(each[name].seconds for name in ratios) for each in (others, runs)]
    click.echo(
        f"against it: needs {statistics.median(ratios.values()):.4f} in the median, {times[0]:.0f} -> {times[1]:.0f} s"
    )
    for name in sorted((name for name in ratios if ratios[name] != 1), key=lambda name: -ratios[name]):
        click.echo(f"  {name}: {others[name].after} -> {runs[name].after}, {ratios[name]:.4f}")
