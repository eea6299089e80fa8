"""What verification costs on the target's module and on the wheel, and whether the arena is the counted one.

Each model is optimized for the target and compared with the result as ``verify`` does, in a process of its own: seconds
of the processor, children included, which other load hardly changes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tflite_memopt import Options, optimize
from tflite_memopt.equivalence.module import VARIABLE
from tflite_memopt.errors import MemoptError

from .markdown_table import row, table

_COLUMNS = "model | kernels that ran | verified | arena counted | arena accepted | s, module | s, wheel"


@click.command()
@click.argument("target")
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def modules(target: str, models: tuple[str, ...]) -> None:
    """What verification costs on the target's module and on the wheel: a row for each model."""
    click.echo("\n".join(table(_COLUMNS)))
    for path in models:
        click.echo(row(Path(path).stem, *figures(target, path)))


def figures(target: str, path: str) -> tuple[object, ...]:
    """What the report says of TFLM, and the seconds of the module and of the wheel."""
    try:
        result = optimize(path, Options(target=target))
    except MemoptError as error:
        return (str(error), *([""] * 5))
    report, verdict = result.report, result.report.equivalence["tflm"]
    after = report.after
    with TemporaryDirectory() as folder:
        other = Path(folder) / "result.tflite"
        other.write_bytes(result.model)
        seconds = [_seconds(target, path, str(other), modules) for modules in (os.environ.get(VARIABLE, ""), folder)]
    said = {True: "equal", False: "DIFFERENT", None: verdict.reason or ""}[verdict.equal]
    kernels = (verdict.kernels or "-").partition(" ")[0]
    arenas = after.required_bytes["target"], after.tflm.get("smallest_arena", "-")
    return kernels, said[:60], *arenas, *(f"{each:.2f}" for each in seconds)


def _seconds(target: str, first: str, second: str, modules: str) -> float:
    """Of the processor, to compare two models where modules are in a folder; "" is the package's own."""
    code = f"from tflite_memopt import Options, verify\nverify({first!r}, {second!r}, Options(target={target!r}))"
    before = _spent()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {VARIABLE: modules})
    return _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
