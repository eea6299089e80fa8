"""Tensors over a fast and a slow memory: docs/benchmarks/memories.md."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.exploring import explore
from tflite_memopt.kernels.chips import CHIP_MEMORIES
from tflite_memopt.kernels.targets import target_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.memory.schedule_problem import schedule_problem
from tflite_memopt.memory.spread import spread_use
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.published.sram_study import off_chip_traffic

from .markdown_table import row, table

_SLOW = 8 << 20
_COLUMNS = (
    "model | memories | bytes in use | all in slow memory | largest first | chosen | lower bound | Belady | TiGrIS: "
    "fast + slow, moved | s"
)


@dataclass(frozen=True)
class _Run:
    """A model on some memories; ``form``: as it came, optimized, or explored for the memories."""

    path: Path
    options: Options
    name: str
    sizes: Mapping[str, int]
    form: str
    tigris: str | None


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True, help="Without --chips.")
@click.option("--fast", multiple=True, type=int, help="Sizes in KB, each beside slow memory; repeatable.")
@click.option("--slow", default=_SLOW >> 10, show_default=True, help="Size of the slow memory, in KB.")
@click.option("--chips", is_flag=True, help="The memories of every chip that codegen knows, for its own core.")
@click.option(
    "--form", type=click.Choice(["as-it-came", "optimized", "explored"]), default="optimized", show_default=True
)
@click.option("--tigris", metavar="COMMAND", help="TiGrIS's command, for its plan of the model as it came.")
def memories(
    sources: tuple[Path, ...], target: str, fast: tuple[int, ...], slow: int, chips: bool, form: str, tigris: str | None
) -> None:
    """SOURCES: bytes that move through slow memory, of the optimized model or of another form of it."""
    sets = {f"{size} KB": (target, {"fast": size << 10, "slow": slow << 10}) for size in fast}
    if chips:
        sets |= {name: (target_named(name).name, dict(found)) for name, found in CHIP_MEMORIES.items()}
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        made: dict[str, bytes] = {}
        for name, (core, sizes) in sets.items():
            run = _Run(path, Options(target=core, verify=False), name, sizes, form, tigris)
            if form == "optimized" and core not in made:
                made[core] = optimize(path, run.options).model
            click.echo(_row(run, made.get(core)))


def _row(run: _Run, data: bytes | None) -> str:
    start = time.process_time()
    try:
        model = read_planned(_model(run) if data is None else data)
        use = spread_use(model, run.options.profile, run.sizes)
    except MemoptError as error:
        return row(run.path.stem, run.name, str(error), *[""] * 5, _tigris(run), "")
    seconds = time.process_time() - start
    problem = schedule_problem(model.main, memory_layout(model, run.options.profile))
    belady = off_chip_traffic(problem, range(len(problem.steps)), next(iter(run.sizes.values()))).total
    used = " + ".join(f"{each.used:,}" for each in use.memories)
    figures = (use.moved, use.largest_first, use.slow_bytes, use.bound, belady)
    return row(run.path.stem, run.name, used, *figures, _tigris(run), f"{seconds:.1f}")


def _model(run: _Run) -> bytes:
    if run.form == "as-it-came":
        return run.path.read_bytes()
    found = explore(run.path, run.options, memories=run.sizes)
    return optimize(run.path, replace(found.options[found.exploration.choice.point], verify=False)).model


def _tigris(run: _Run) -> str:
    """Its peaks in fast and slow memory, and the bytes that it writes to the slow one and reads from there."""
    if run.tigris is None:
        return ""
    sizes = [word for size in run.sizes.values() for word in ("-m", str(size))]
    command = [run.tigris, "analyze", str(run.path), *sizes, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        return (done.stderr or done.stdout).strip().splitlines()[-1]
    return _said_by_tigris(json.loads(done.stdout))


def _said_by_tigris(found: dict[str, dict[str, object]]) -> str:
    fast, slow = found["fast"], found.get("slow") or {}
    traffic = slow.get("traffic") or {"written": 0, "read": 0}
    assert isinstance(traffic, dict)
    refused = found["model"]["unsupported_operators"]
    if refused or fast["infeasible"]:
        return f"no: {refused or fast['infeasible']}"
    return f"{fast['scheduled_peak_bytes']:,} + {slow.get('peak_bytes', 0):,}, {sum(traffic.values()):,}"
