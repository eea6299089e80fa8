"""What optimize leaves of the operators that converters write around a network: docs/results.md."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from types import MappingProxyType

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.memory.work import slowest
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize

from .figures import Row, keep
from .models import AFTER, BEFORE, REFUSED, SLOWER, files_of

COUNTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "TRANSPOSE": ("TRANSPOSE",),
        "PAD": ("PAD", "PADV2"),
        "RESHAPE": ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"),
        "QUANTIZE": ("QUANTIZE", "DEQUANTIZE"),
    }
)
"""Operators that are counted together, before and after, by the name of the figure."""


_CHANNELS_LAST = "--io channels-last"
_CASES = (("", _CHANNELS_LAST), *product(("cortex-m7", "esp32s3"), ("", _CHANNELS_LAST)))
"""Targets and options of ``--targets``."""


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--targets", is_flag=True, help="RAM, run time and proof for targets and with channels last, instead.")
def converters(sources: tuple[Path, ...], targets: bool) -> None:
    """RAM, seconds, proof and data movement of the files of `scripts/zoo --torch` (files or folders)."""
    if targets:
        rows = (_for_target(path, *case) for path in files_of(sources) for case in _CASES)
        keep("converters", "scripts/bench converters --targets FOLDER", rows)
    else:
        keep("converters", "scripts/bench converters FOLDER", (_row(path) for path in files_of(sources)))


def _row(path: Path) -> Row:
    return Row(path.stem, "", "", dict(_figures(path.read_bytes())))


def _for_target(path: Path, target: str, options: str) -> Row:
    turned = ("*",) if options else ()
    try:
        report = optimize(path.read_bytes(), Options(target=target or None, channels_last=turned)).report
    except MemoptError as error:
        return Row(path.stem, target, options, {REFUSED: str(error).replace("\n", " ")})
    added = slowest(report.before.instructions, report.after.instructions)
    figures = {
        BEFORE: report.before.required_for_target,
        AFTER: report.after.required_for_target,
        SLOWER: f"{100 * added:.1f}",
        "proof": report.proofs["result"].status,
    }
    return Row(path.stem, target, options, figures)


def _figures(data: bytes) -> Iterator[tuple[str, object]]:
    started = time.process_time()
    try:
        result = optimize(data, Options())
        seconds = time.process_time() - started
        reference = optimize(data, Options(kernels="reference", verify=False))
    except MemoptError as error:
        yield REFUSED, str(error).replace("\n", " ")
        return
    yield BEFORE, result.report.before.required_for_target
    yield AFTER, result.report.after.required_for_target
    yield "RAM after for --kernels reference, bytes", reference.report.after.required_for_target
    yield "processor, s", f"{seconds:.0f}"
    yield "proof", result.report.proofs["result"].status
    before, after = _names(data), _names(result.model)
    for kind, names in COUNTED.items():
        for when, found in (("before", before), ("after", after)):
            yield f"{kind} {when}", sum(found.count(name) for name in names)


def _names(data: bytes) -> list[str]:
    return [operator.name for graph in read_model(data).graphs for operator in graph.operators]
