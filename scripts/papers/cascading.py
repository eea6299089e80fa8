"""The cascading RFC's example and networks, rerun: the page cascading_rfc."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from scripts.benchmarks.kept_parts import KeptParts
from scripts.benchmarks.markdown_table import row, table
from scripts.makers.mechanisms import halo_alone
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.files import write_files
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model

from .claims import Rerun
from .graphs import files_in

NETWORKS = {"MobileNet": "mobilenet_v1", "VGG-16": "vgg_like"}
WAYS = {
    "rolling": Options(objective="head", effort="quick", every_byte=True),
    "default": Options(effort="quick", every_byte=True),
}
"""``rolling`` is the RFC's: rows that two stripes need are kept and not computed again; only activations count."""
_VALID = 1
_CLOSE = 0.1
_TILES = 16


@dataclass(frozen=True)
class Striped:
    """One run of ``optimize``: bytes of the head before and after, MACs after over before, processor seconds."""

    before: int
    after: int
    macs: float
    operators: int
    processor: float


def example(kernel_of_b: int = 1) -> Model:
    """Convolution A, 3x3 to 32 channels, and B, 1x1 to 8, on a (1, 26, 26, 3) image in int8."""
    builder = ModelBuilder("rfc")
    image = builder.input("image", (1, 26, 26, 3))
    between = builder.conv(image, 32, kernel=3, padding=_VALID, seed=1)
    return builder.finish(builder.conv(between, 8, kernel=kernel_of_b, padding=_VALID, seed=2))


def outputs_of(model: Model) -> list[int]:
    """Bytes of each operator's result."""
    return [operator.outputs[0].nbytes for operator in model.main.operators]


def measured(sources: Sequence[Path], kept: KeptParts) -> dict[str, tuple[Striped, Striped]]:
    """The example and the networks among SOURCES: in rolling stripes for the head alone, and by our defaults."""
    files = files_in(sources)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "example.tflite"
        write_files({small: write_model(example())})
        paths = {"example": small, **{name: files[stem] for name, stem in NETWORKS.items()}}
        return {
            name: (_kept(kept, name, path, "rolling"), _kept(kept, name, path, "default"))
            for name, path in paths.items()
        }


def _kept(kept: KeptParts, name: str, path: Path, way: str) -> Striped:
    return Striped(**kept.part(f"{name}_{way}", partial(_run, name, path, way)))


def _run(name: str, path: Path, way: str) -> dict[str, Any]:
    """Optimize one model. Equality is proved of the example; the networks are too large to run in a table's time."""
    click.echo(f"{name}: {way}", err=True)
    started = time.process_time()
    with halo_alone("rolling") if way == "rolling" else nullcontext():
        report = optimize(path, replace(WAYS[way], verify=name == "example")).report
    before, after = report.before, report.after
    used = time.process_time() - started
    return asdict(Striped(before.arena_bytes, after.arena_bytes, after.macs / before.macs, after.operators, used))


def reruns(found: Mapping[str, tuple[Striped, Striped]]) -> Iterator[Rerun]:
    """Every claim of the RFC's file."""
    first, second = outputs_of(example())
    yield Rerun("first", f"{first / 1000:.1f}", "-", _is_close(first / 1000, 18.4), first / 1000)
    with_3x3 = outputs_of(example(3))[1]
    why = (
        f"The printed shape has 24 x 24 x 8 = {second:,} bytes. 3.9 kB are {with_3x3:,}, the result of a 3x3 kernel "
        "without padding: the row seems to have been computed for that B, before the text made it 1x1 to leave the "
        "overlap aside. Nothing else in the text depends on it."
    )
    yield Rerun("second", f"{second / 1000:.1f}", "-", _is_close(second / 1000, 3.9), second / 1000, why)
    tile = first // _TILES
    yield Rerun("stripe", f"{tile / 1000:.1f}", "0.8 (one row)", _is_close(tile / 1000, 1.2), tile / 1000)
    rolling, ours = found["example"]
    fits = rolling.after < first
    yield Rerun("peak", f"{rolling.after / 1000:.1f}", f"{ours.after / 1000:.1f}", fits)
    for key, name in (("mobilenet", "MobileNet"), ("vgg", "VGG-16")):
        rolling, ours = found[name]
        share = rolling.after / rolling.before
        yield Rerun(key, f"{share:.2f}", f"{ours.after / ours.before:.2f}", share <= 0.333 * (1 + _CLOSE), share)


def _is_close(value: float, published: float) -> bool:
    return abs(value / published - 1) <= _CLOSE


def tables(found: Mapping[str, tuple[Striped, Striped]]) -> Iterator[str]:
    """Heads before and after."""
    yield "## Heads, bytes\n"
    yield "The RFC prints no algorithm. The rerun keeps rows rather than computes them twice:"
    yield '`Options(objective="head", effort="quick", every_byte=True)`, with rolling stripes alone.'
    yield "Ours counts the whole arena and may compute rows twice: `optimize --effort quick --changes all`."
    yield "The RFC cuts in both directions of an image, ours in one: the example's stripe is a row of 24 x 32 bytes"
    yield "instead of a tile of 6 x 6 x 32. MobileNet (v1) and VGG-16 are the zoo's, in float: ratios do not depend"
    yield "on it. Equality is proved of the example here, not of the two networks.\n"
    yield from table(
        "model | before | rolling | times | MACs | operators | default | times | MACs | operators | seconds"
    )
    for name, (rolling, ours) in found.items():
        cells = [cell for each in (rolling, ours) for cell in _cells(each)]
        yield row(name, rolling.before, *cells, f"{rolling.processor:.0f}, {ours.processor:.0f}")


def _cells(each: Striped) -> tuple[object, ...]:
    return each.after, f"{each.before / each.after:.1f}", f"{100 * (each.macs - 1):+.1f} %", each.operators
