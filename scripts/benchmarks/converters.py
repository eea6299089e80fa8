"""What optimize leaves of the operators that converters write around a network: docs/results.md."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

from .figures import Echo
from .markdown_table import row, table
from .strangers import files_of

COUNTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "TRANSPOSE": ("TRANSPOSE",),
        "PAD": ("PAD", "PADV2"),
        "RESHAPE": ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"),
        "QUANTIZE": ("QUANTIZE", "DEQUANTIZE"),
    }
)
"""By the heading of a column, the operators of which it has the number before and after."""


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def converters(sources: tuple[Path, ...]) -> None:
    """RAM, seconds, proof and data movement of the files of `scripts/zoo --torch` (files or folders)."""
    echo = Echo("converters")
    for line in table(" | ".join(("file", "RAM", "RAM, --kernels reference", "s", "equal", *COUNTED))):
        echo(line)
    for path in files_of(sources):
        echo(row(path.stem, *_cells(path.read_bytes())))


def _cells(data: bytes) -> Iterator[str]:
    started = time.process_time()
    try:
        result = optimize(data, Options())
        seconds = time.process_time() - started
        reference = optimize(data, Options(kernels="reference", verify=False))
    except MemoptError as error:
        yield f"refused: {error}".replace("\n", " ")
        return
    for report in (result.report, reference.report):
        yield f"{report.before.required_for_target:,} -> {report.after.required_for_target:,}"
    yield f"{seconds:.0f}"
    yield result.report.proofs["result"].status
    before, after = _names(data), _names(result.model)
    for names in COUNTED.values():
        yield " -> ".join(str(sum(each.count(name) for name in names)) for each in (before, after))


def _names(data: bytes) -> list[str]:
    return [operator.name for graph in read_model(data).graphs for operator in graph.operators]
