"""Random candidates of the three families that a search for a microcontroller draws from, in int8.

mobilenet   convolution, then blocks of expansion, depthwise, projection, with a sum where shapes allow it
resnet      convolution, then blocks of two 3x3 convolutions beside a skip, which is a 1x1 where shapes change
ds-cnn      for spectrograms: convolution, then pairs of depthwise and 1x1

``scripts/bench costs`` compares what a search may count of them with what ``optimize`` prints.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import correlation, median
from tempfile import TemporaryDirectory

import click

from scripts.benchmarks.figures import Row
from scripts.benchmarks.figures import keep as keep_figures
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, cost
from tflite_memopt.batch.cluster import open_cluster
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.results import DONE, Results
from tflite_memopt.batch.run import run_batch
from tflite_memopt.costs.cost import cost_under
from tflite_memopt.memory.file import read_planned
from tflite_memopt.model.analysis.lifetimes import compute_timeline
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import NO_ACTIVATION
from tflite_memopt.model.ir.model import Tensor


def _head(b: ModelBuilder, x: Tensor, classes: int) -> Tensor:
    x = b.average_pool(x, min(x.shape[1:3]))
    return b.softmax(b.dense(b.reshape(x, (1, x.elements)), classes))


def mobilenet(draw: random.Random, planes: Sequence[int] = (1, 3), classes: Sequence[int] = (2, 10)) -> ModelBuilder:
    """Return inverted bottlenecks: resolution 48 to 96, widths 0.25 to 0.75, expansions 1 to 6."""
    b, width = ModelBuilder(), draw.choice((0.25, 0.35, 0.5, 0.75))
    side = draw.choice((48, 64, 80, 96))
    x = b.conv(b.input("image", (1, side, side, draw.choice(planes))), _wide(16, width), 3, 2)
    for channels, stride in zip((16, 24, 32, 64), (1, 2, 2, 2), strict=True):
        expansion, kernel = draw.choice((1, 3, 4, 6)), draw.choice((3, 5))
        for number in range(draw.choice((1, 2))):
            x = _bottleneck(b, x, _wide(channels, width), expansion, kernel, stride if number == 0 else 1)
    b.finish(_head(b, b.conv(x, _wide(160, width)), draw.choice(classes)))
    return b


def _wide(channels: int, width: float) -> int:
    return max(8, int(channels * width + 4) // 8 * 8)


def _bottleneck(
    b: ModelBuilder, x: Tensor, channels: int, expansion: int, kernel: int, stride: int, skips: bool = True
) -> Tensor:
    wide = x if expansion == 1 else b.conv(x, x.shape[3] * expansion)
    y = b.conv(b.depthwise(wide, kernel, stride), channels, activation=NO_ACTIVATION)
    return b.add(x, y) if skips and x.shape == y.shape else y


def resnet(draw: random.Random) -> ModelBuilder:
    """Return residual blocks: resolution 32 to 64, first width 8 to 24, two or three stages."""
    b, channels = ModelBuilder(), draw.choice((8, 12, 16, 24))
    side = draw.choice((32, 48, 64))
    x = b.conv(b.input("image", (1, side, side, 3)), channels, draw.choice((3, 5)), draw.choice((1, 2)))
    for stage in range(draw.choice((2, 3))):
        for number in range(draw.choice((1, 2))):
            x = _residual(b, x, channels << stage, 2 if stage and number == 0 else 1)
    b.finish(_head(b, x, 10))
    return b


def _residual(b: ModelBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    y = b.conv(b.conv(x, channels, 3, stride), channels, 3, activation=NO_ACTIVATION)
    same = x.shape == y.shape
    return b.add(x if same else b.conv(x, channels, 1, stride, activation=NO_ACTIVATION), y)


def ds_cnn(draw: random.Random) -> ModelBuilder:
    """Return separable convolutions over 25 to 98 frames of 10 to 40 features."""
    b, channels = ModelBuilder(), draw.choice((24, 32, 48, 64, 96, 128))
    frames, features = draw.choice((25, 49, 98)), draw.choice((10, 20, 40))
    x = b.conv(b.input("spectrogram", (1, frames, features, 1)), channels, draw.choice((3, 5)), draw.choice((1, 2)))
    for _ in range(draw.choice((2, 3, 4, 5))):
        x = b.conv(b.depthwise(x, 3, draw.choice((1, 1, 2))), channels)
    b.finish(_head(b, x, 12))
    return b


FAMILIES: Mapping[str, Callable[[random.Random], ModelBuilder]] = {
    "mobilenet": mobilenet,
    "resnet": resnet,
    "ds-cnn": ds_cnn,
}


def candidate(family: str, seed: int) -> bytes:
    """Return the .tflite of one candidate."""
    return write_model(FAMILIES[family](random.Random(f"{family} {seed}")).model)


# ------------------------------------------------------------------------------------------------------------ figures


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 0; equal ones share the mean of theirs.

    >>> ranks([30, 10, 30, 20])
    [2.5, 0.0, 2.5, 1.0]
    """
    ordered = sorted(values)
    return [ordered.index(each) + (ordered.count(each) - 1) / 2 for each in values]


def _tensors(data: bytes) -> int:
    """The largest sum of the bytes of tensors that are alive at once, in the file's order: the usual formula."""
    model = read_planned(data)
    timeline = compute_timeline(model)
    return max(
        sum(
            tensor.nbytes
            for tensor, life in timeline.tensors.items()
            if life.start < span.end and span.start < life.end
        )
        for span in timeline.spans.values()
    )


def _of_mcufit(command: str, files: Sequence[bytes]) -> Iterator[int]:
    """Yield the arena that mcufit, a checker on PyPI, measures with TFLM's own kernels."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.tflite")
        for data in files:
            path.write_bytes(data)
            words = (command, "check", str(path), "-b", "esp32-s3", "--json")
            done = subprocess.run(words, capture_output=True, text=True, check=False)  # 1: it does not fit
            yield int(json.loads(done.stdout)["estimate"]["total_arena_bytes"])


def _compared(counted: Sequence[float], full: Sequence[float]) -> Mapping[str, object]:
    """Return rank correlation, the share of pairs in wrong order, and the range of the ratio to the full cost."""
    pairs = list(combinations(zip(counted, full, strict=True), 2))
    wrong = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in pairs)
    ratios = sorted(one / other for one, other in zip(counted, full, strict=True))
    return {
        "Spearman": f"{correlation(ranks(counted), ranks(full)):.3f}",
        "pairs in wrong order, %": f"{100 * wrong / len(pairs):.1f}",
        "ratio, least": f"{ratios[0]:.2f}",
        "ratio, median": f"{median(ratios):.2f}",
        "ratio, most": f"{ratios[-1]:.2f}",
    }


@click.command()
@click.option("--candidates", "count", default=100, show_default=True, help="Of each family.")
@click.option("--seed", default=20_000, show_default=True, help="The first one.")
@click.option("--cache", type=click.Path(path_type=Path), help="A file that keeps full costs, to go on after an end.")
@click.option("--mcufit", help="The command mcufit (PyPI), for its figure as well.")
def costs(count: int, seed: int, cache: Path | None, mcufit: str | None) -> None:
    """Compare estimates of random candidates, and what else a search may count, with the full cost of each."""
    source = f"scripts/bench costs --candidates {count} --seed {seed}" + " --mcufit mcufit" * bool(mcufit)
    keep_figures("costs", source, _rows(count, seed, cache, mcufit))


def _rows(count: int, seed: int, cache: Path | None, mcufit: str | None) -> Iterator[Row]:
    files = [candidate(family, seed + number) for number in range(count) for family in FAMILIES]
    checked = {"mcufit": list(_of_mcufit(mcufit, files))} if mcufit else {}
    name = f"{len(files)} candidates"
    for target in ("cortex-m7", "esp32s3"):
        started = time.process_time()
        estimates = [cost(data, target, depth="estimate", cache=None) for data in files]
        seconds = (time.process_time() - started) / len(files)
        full = [cost(data, target, cache=cache) for data in files]
        needs = [each.optimized for each in full]
        ways: Mapping[str, Sequence[float]] = {
            "the estimate": [each.optimized for each in estimates],
            "the arena as it stands": [each.ram for each in full],
            "tensors alive at once": [_tensors(data) for data in files],
            **checked,
        }
        for way, counted in ways.items():
            yield Row(name, target, way, _compared(counted, needs))
        yield Row(name, target, "the estimate, each", {"seconds of processor": f"{seconds:.2f}"})
        for budget in (32, 64, 96):
            fits = {
                "as they stand": [each.macs for each in full if each.ram <= budget * 1024],
                "optimized": [each.macs for each in full if each.optimized <= budget * 1024],
            }
            found = {f"{way}, {what}": value for way, macs in fits.items() for what, value in _found(macs).items()}
            yield Row(name, target, f"{budget} KiB", found)


def _found(macs: Sequence[int]) -> Mapping[str, int]:
    return {"candidates that fit": len(macs), "most multiply-accumulates": max(macs, default=0)}


# --------------------------------------------------------------------------------------------------------- throughput


@click.command()
@click.option("--candidates", "count", default=1_000, show_default=True)
@click.option("--workers", default=2, show_default=True)
def throughput(count: int, workers: int) -> None:
    """Estimate candidates with ``batch`` on Dask's workers, end after a half, and go on."""
    source = f"scripts/bench throughput --candidates {count} --workers {workers}"
    keep_figures("throughput", source, _throughput_rows(count, workers))


def _throughput_rows(count: int, workers: int) -> Iterator[Row]:
    options, work = Options(target="cortex-m7"), partial(cost_under, depth="estimate")
    with TemporaryDirectory() as folder, open_cluster(workers, None, None) as client:
        for number in range(count):
            family = list(FAMILIES)[number % len(FAMILIES)]
            Path(folder, f"{family}{number}.tflite").write_bytes(candidate(family, number))
        started, found = time.perf_counter(), find_models([folder])
        for models in (found[: count // 2], found):
            results = Results(Path(folder, "out"), options, keeps_models=False, estimates=True)
            counts, before = run_batch(client, work, models, options, results, lambda *_: None)
        seconds = time.perf_counter() - started
    processor = sum(os.times()[:4])  # of this process and of the workers, which have ended
    yield Row(
        f"{count} candidates",
        "cortex-m7",
        f"{workers} workers",
        {
            "done": counts[DONE],
            "of an earlier run": before,
            "candidates per second": f"{count / seconds:.1f}",
            "seconds of processor, each": f"{processor / count:.3f}",
        },
    )


# ------------------------------------------------------------------------------------------------------------- sweeps


SWEEPS: Mapping[str, Sequence[int]] = {
    "resolution": (48, 56, 64, 72, 80, 96),
    "width": (8, 12, 14, 16, 18, 20, 24, 32),
    "expansion": (1, 2, 3, 4, 6),
    "kernel": (3, 5, 7),
    "skips": (0, 1),
    "stem stride": (1, 2),
    "blocks a stage": (1, 2, 3),
}
_BASE: Mapping[str, int] = dict(zip(SWEEPS, (64, 16, 4, 3, 1, 2, 2), strict=True))


def swept(changed: Mapping[str, int]) -> bytes:
    """Return three stages of inverted bottlenecks, each twice as wide as the one before, with some of _BASE changed."""
    side, width, expansion, kernel, skips, stride, blocks = ({**_BASE, **changed}).values()
    b = ModelBuilder()
    x = b.conv(b.input("image", (1, side, side, 3)), width, 3, stride)
    for stage in range(3):
        for number in range(blocks):
            first = 2 if stage and number == 0 else 1
            x = _bottleneck(b, x, width << stage, expansion, kernel, first, bool(skips))
    b.finish(_head(b, x, 10))
    return write_model(b.model)


@click.command()
def sweeps() -> None:
    """Change one property of a network at a time, and say what it costs on Cortex-M7."""
    keep_figures("sweeps", "scripts/bench sweeps", _swept_rows())


def _swept_rows() -> Iterator[Row]:
    for name, values in SWEEPS.items():
        for value in values:
            found = cost(swept({name: value}), "cortex-m7", cache=None)
            said = {"as it stands": found.ram, "optimized": found.optimized, "multiply-accumulates": found.macs}
            yield Row("three stages", "cortex-m7", f"{name} {value}", said)
