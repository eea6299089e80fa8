"""The table of what runtimes make of a file: each cell run on three of them, and compared with the specification."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from scripts.benchmarks.figures import ROOT
from scripts.fuzzing.cell import Cell, Key
from scripts.fuzzing.cells import LEFT_OUT
from scripts.fuzzing.oracle import Real, State, expected, quantized
from tflite_memopt.evidence.equivalence.adapter import OPTIMIZED_KERNELS, REFERENCE, Array, ModelRun, RunJob
from tflite_memopt.evidence.equivalence.runner import Interpreters, ModelRunner, ProcessLimits
from tflite_memopt.kernels.faults import MOST_STEPS
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor

TABLE = ROOT / "docs" / "runtimes.csv"
PACKAGES = ("ai-edge-litert", "tflite-micro", "numpy")
EQUAL, REFUSES, FAILS, CRASHES, BEYOND = "equal", "refuses", "fails", "crashes", "beyond"
WRONG = max(MOST_STEPS.values())
"""More steps are those of no right kernel."""
_ARENA = 1 << 20
_FILL = 85
"""What TFLM's arena holds before: a byte that a kernel leaves unwritten is one of these."""
_FLOAT_STEP = 1 / 256
"""Of the largest value of an output: a step of a float."""
_CLOSE = 1e-4
"""The same: floats so close are equal, since sums are in another order."""
_HALF = 0.5 + 1e-3


class Answers(NamedTuple):
    """What LiteRT by default without delegates, its reference kernels, and TFLM make of a cell.

    Each is "equal", a number of steps, "refuses" (in Prepare), "fails" (in Invoke), "crashes" (the process ends), or
    "beyond" (it reads beyond a constant).
    """

    litert: str
    reference: str
    tflm: str


_RUNS = {"litert": ("litert", OPTIMIZED_KERNELS), "reference": ("litert", REFERENCE), "tflm": ("tflm", REFERENCE)}


def measured(cells: Sequence[Cell]) -> dict[Key, Answers]:
    """Run all cells; a cell in ``LEFT_OUT`` is none of them."""
    models = [cell.make() for cell in cells]
    samples = [cell.samples for cell in cells]
    jobs = [(write_model(model), given) for model, given in zip(models, samples, strict=True)]
    wanted = [_wanted(model, given) for model, given in zip(models, samples, strict=True)]
    with ThreadPoolExecutor(len(_RUNS)) as threads:
        found = list(threads.map(partial(_runs, jobs), _RUNS.values()))
    told = [
        [_told(model.main.outputs, run, exact) for model, run, exact in zip(models, runs, wanted, strict=True)]
        for runs in found
    ]
    return {cell.key: Answers(*each) for cell, *each in zip(cells, *told, strict=True)}


def _wanted(model: Model, samples: Sequence[Sequence[Array]]) -> list[list[Real]]:
    state = State()
    with np.errstate(all="ignore"):
        return [expected(model, sample, state) for sample in samples]


Ended = ModelRun | str


def _runs(jobs: Sequence[tuple[bytes, list[list[Array]]]], runtime_and_kernels: tuple[str, str]) -> list[Ended]:
    runtime, kernels = runtime_and_kernels
    with Interpreters((runtime,), ProcessLimits(20.0, 4 << 30)) as interpreters:
        return [_ended(interpreters[runtime], kernels, *job) for job in jobs]


def _ended(runner: ModelRunner, kernels: str, data: bytes, samples: list[list[Array]]) -> Ended:
    run = runner.run(RunJob(data, samples, _ARENA, kernels=kernels, fill=_FILL))
    if run.ran:
        return run
    if "crashed" in run.reason or "finish" in run.reason or "ended" in run.reason:
        return CRASHES
    is_loaded = runner.run(RunJob(data, [], _ARENA, kernels=kernels)).ran
    return FAILS if is_loaded else REFUSES


def _told(outputs: Sequence[Tensor], run: Ended, wanted: Sequence[Sequence[Real]]) -> str:
    if isinstance(run, str):
        return run
    with np.errstate(all="ignore"):
        steps = max(
            _steps(tensor, np.stack(run.outputs[at]), np.stack([each[at] for each in wanted]))
            for at, tensor in enumerate(outputs)
        )
    return EQUAL if steps == 0 else f"{int(min(steps, 99999))}"


def _steps(tensor: Tensor, array: Array, exact: Real) -> float:
    """How far outputs are from the numbers that they should be, in steps of their scale; 0 where rounded right.

    The first dimension is that of the samples.
    """
    given = array.astype(np.float64)
    if tensor.dtype in (DType.FLOAT32, DType.FLOAT16):
        largest = float(np.abs(exact[np.isfinite(exact)]).max(initial=1e-6))
        gap = float((np.where(given == exact, 0, np.abs(given - exact)) / largest).max(initial=0))
        return 0.0 if gap <= _CLOSE else float(np.ceil(np.nan_to_num(gap, nan=math.inf) / _FLOAT_STEP))
    gaps = np.abs(given - np.stack([quantized(tensor, each) for each in exact]))
    if tensor.quantization is None:
        return float(np.ceil(gaps.max(initial=0)))
    return max(0.0, float(np.ceil(gaps.max(initial=0) - _HALF)))


# The file -------------------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """The versions of the packages that are installed."""
    return {name: version(name) for name in PACKAGES}


def runs(answer: str) -> bool:
    """Tell whether a runtime gives results."""
    return answer == EQUAL or answer.isdigit()


def steps_of(answer: str) -> int:
    """The steps by which results differ from the specification."""
    return 0 if answer == EQUAL else int(answer)


def write(found: Mapping[Key, Answers]) -> None:
    """Write the table: the versions, the cells that some runtime takes, and those that are not made."""
    with TABLE.open("w", newline="") as file:
        file.write("# " + " ".join(f"{name}={each}" for name, each in versions().items()) + "\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Key._fields, *Answers._fields))
        writer.writerows((*key, *found[key]) for key in sorted(found) if any(map(runs, found[key])))
        writer.writerows((*key, *answers) for key, answers in LEFT_OUT.items())


def read() -> tuple[dict[str, str], dict[Key, Answers]]:
    """The versions of the packages with which the table was made, and its cells without those that are not made."""
    with TABLE.open(newline="") as file:
        made_with = dict(each.split("=") for each in file.readline().split()[1:])
        rows = list(csv.reader(file))[1:]
    found = {Key(*row[: len(Key._fields)]): Answers(*row[len(Key._fields) :]) for row in rows}
    return made_with, {key: answers for key, answers in found.items() if not {CRASHES, BEYOND} & set(answers)}


def changed(found: Mapping[Key, Answers], known: Mapping[Key, Answers]) -> Iterable[str]:
    """The cells that are other than the table says, in words.

    A step is the difference between processors. By how many steps a wrong kernel is off may depend on what it finds in
    memory, as LiteRT's reference kernel of SUM shows.
    """
    for key, answers in found.items():
        if key not in known:
            if any(map(runs, answers)):
                yield f"{key}: was taken by no runtime, is {', '.join(answers)}"
            continue
        for name, now, was in zip(Answers._fields, answers, known[key], strict=True):
            if not _is_alike(now, was):
                yield f"{key}: {name} was {was}, is {now}"


def _is_alike(now: str, was: str) -> bool:
    if not (runs(now) and runs(was)):
        return now == was
    least, most = sorted((steps_of(now), steps_of(was)))
    return most - least <= 1 or least > WRONG
