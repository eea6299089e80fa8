"""Compare a search that counts the stock arena with one that counts the arena after optimization.

Both look for the network with the most multiply-accumulates that fits, among random networks of inverted bottlenecks
(``candidates.py``). The first search knows the exact stock arena. The second one goes from the most down, drops
networks by the estimate, and decides by the full cost.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import click

from scripts.benchmarks.candidates import mobilenet
from scripts.benchmarks.digits import accuracy
from scripts.benchmarks.figures import Row
from scripts.benchmarks.figures import keep as keep_figures
from tflite_memopt import NetworkCost, cost
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model

TARGET = "cortex-m7"
SIZES = (32, 48, 64, 80, 96, 128)
ROOM = 1.25
"""What an estimate may be above the size: then the full cost decides."""
WAYS = "as they stand", "optimized"
MACS, ACCURACY, SEEDS = "multiply-accumulates", "accuracy, %", 3


def drawn(number: int) -> Model:
    """Return a candidate for gray images of ten classes."""
    return mobilenet(random.Random(f"search {number}"), (1,), (10,)).model


@dataclass(frozen=True)
class _Search:
    """The candidates, from the most multiply-accumulates down, with their estimates."""

    estimates: Mapping[int, NetworkCost]
    cache: Path | None

    def as_they_stand(self, ram: int) -> tuple[int | None, int]:
        """Return the candidate found for ``ram`` bytes, if there is one, and the number of full costs computed."""
        return next((number for number, found in self.estimates.items() if found.ram <= ram), None), 0

    def optimized(self, ram: int) -> tuple[int | None, int]:
        """Return the same by the RAM after optimization."""
        tried = 0
        for number, found in self.estimates.items():
            if found.bound <= ram and found.optimized <= ROOM * ram:
                tried += 1
                if self.full(number).optimized <= ram:
                    return number, tried
        return None, tried

    def full(self, number: int) -> NetworkCost:
        return cost(write_model(drawn(number)), TARGET, cache=self.cache)


@click.command()
@click.option("--candidates", "count", default=500, show_default=True)
@click.option("--size", "sizes", multiple=True, type=int, default=SIZES, show_default=True, help="KiB of RAM.")
@click.option("--scenes", default=0, help="Train each network found on this many scenes, with three seeds.")
@click.option("--cache", type=click.Path(path_type=Path), help="A file that keeps costs, to go on after an end.")
def searches(count: int, sizes: Sequence[int], scenes: int, cache: Path | None) -> None:
    """Find the most multiply-accumulates in a size of RAM, as the networks stand and optimized."""
    said = "".join(f" --size {size}" for size in sizes if sizes != SIZES) + f" --scenes {scenes}" * bool(scenes)
    keep_figures("searches", f"scripts/bench searches --candidates {count}{said}", _rows(count, sizes, scenes, cache))


def _rows(count: int, sizes: Sequence[int], scenes: int, cache: Path | None) -> Iterator[Row]:
    estimates = {
        number: cost(write_model(drawn(number)), TARGET, depth="estimate", cache=cache) for number in range(count)
    }
    search = _Search(dict(sorted(estimates.items(), key=lambda each: -each[1].macs)), cache)
    named, chosen = f"{count} candidates", dict[str, int]()
    for size in sizes:
        for way, find in zip(WAYS, (search.as_they_stand, search.optimized), strict=True):
            number, tried = find(size * 1024)
            if number is None:
                continue
            found, chosen[f"{size} KiB, {way}"] = search.full(number), number
            values = {
                MACS: found.macs,
                "bytes as it stands": found.ram,
                "bytes optimized": found.optimized,
                "candidate": number,
                "full costs": tried,
            }
            yield Row(named, TARGET, f"{size} KiB, {way}", values)
    for run, number in chosen.items() if scenes else ():
        shares = [100 * accuracy(drawn(number), scenes, seed) for seed in range(SEEDS)]
        said = ", ".join(f"{share:.1f}" for share in shares)
        yield Row(named, TARGET, f"{run}, trained", {ACCURACY: f"{mean(shares):.1f}", "of each seed, %": said})
