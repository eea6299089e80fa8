"""Operators that meet a fault of a kernel library, before and after: docs/results/faults.csv."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.kernels import faults as table_of_faults
from tflite_memopt.kernels.faults import faults_in
from tflite_memopt.memory.file import read_planned
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize

from .figures import Row, keep
from .models import AFTER, files_of

MET, LEFT, UNAWARE = "faults before", "faults after", "RAM after without the table, bytes"
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m55", "riscv32", "esp32", "esp32s3", "esp32p4")


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", "targets", multiple=True, default=TARGETS, help="The core or chip to plan for; repeatable.")
@click.option("--limit", default=1 << 20, help="Leave out files of more bytes than this.", show_default=True)
def faults(sources: tuple[Path, ...], targets: tuple[str, ...], limit: int) -> None:
    """For every .tflite of SOURCES and every target: the operators that meet a fault as the file comes and as it is
    written, and the RAM; the last column is the RAM if no fault were known.

    Files that meet none, at no cost, are only counted.
    """
    source = f"scripts/bench faults FOLDER...{''.join(f' --target {each}' for each in targets if targets != TARGETS)}"
    keep("faults", source, _rows(sources, targets, limit))


def _rows(sources: tuple[Path, ...], targets: tuple[str, ...], limit: int) -> Iterator[Row]:
    for target in targets:
        options, clean, refused = Options(target=target, verify=False), 0, 0
        for path in files_of(sources):
            if path.stat().st_size > limit:
                continue
            try:
                met = _met(path, options)
            except MemoptError:
                refused += 1
                continue
            clean += not met
            if met:
                yield Row(path.stem, target, "--no-verify", met)
        yield Row("all", target, "--no-verify", {"files that meet none": clean, "files refused": refused})


def _met(path: Path, options: Options) -> Mapping[str, object]:
    """The figures of a file; nothing where neither it nor its result meets a fault, and the table costs no byte."""
    before = _names(faults_in(read_planned(path.read_bytes()), options.profile))
    result = optimize(path, options)
    after = _names(faults_in(read_model(result.model), options.profile))
    answer = result.report.answer.reserve
    with patch.object(table_of_faults, "_BY_PROFILE", {}):
        unaware = optimize(path, options).report.answer.reserve
    if not (before or after or answer != unaware):
        return {}
    return {MET: before or "0", LEFT: after or "0", AFTER: answer, UNAWARE: unaware}


def _names(met: tuple[table_of_faults.FaultMet, ...]) -> str:
    """Such as "2 esp-nn 31"."""
    return ", ".join(f"{count} {name}" for name, count in sorted(Counter(each.fault.name for each in met).items()))
