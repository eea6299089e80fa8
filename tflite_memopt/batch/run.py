"""A whole run: models go to the workers of a cluster, and each answer is written down at once."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..costs.cost import NetworkCost
from ..errors import MemoptError
from ..kernels.support import said_of
from ..memory.work import slowest
from ..model.io.files import read_file
from ..options import Options
from ..report.model import to_json
from ..report.warnings import of_former_plan
from ..run.pipeline import Result
from .cluster import answers_of
from .find import FoundModel
from .results import DONE, FAILED, LOST, REFUSED, UNRUNNABLE, Line, Results

Work = Callable[[bytes, Options], Result | NetworkCost]
"""A function of a module, which workers import by its name. Raises MemoptError for models that it refuses."""
Watch = Callable[[int, int, Line], None]
"""Told after each model: how many are done, of how many, and its line."""


@dataclass(frozen=True)
class _Job:
    files: tuple[FoundModel, ...]
    data: bytes


def run_batch(
    client: Any, work: Work, models: Sequence[FoundModel], options: Options, results: Results, watch: Watch
) -> tuple[Counter[str], int]:
    """Optimize all models without a lasting line, and those whose result is damaged or missing.

    Return how many files ended in each status, now or before, and how many of them before.
    Of files with the same bytes one is worked on, and each has the result under its own path. The largest go first: a
    long one that came last would keep one worker busy and all others idle. Raises OutputError when results cannot be
    written.
    """
    counts, left, alike = Counter[str](), list[list[FoundModel]](), dict[str, list[FoundModel]]()
    for found in models:
        alike.setdefault(found.content, []).append(found)
    for content, files in alike.items():
        line = results.lasting.get(content)
        if line is not None and results.restore(files, line):
            counts[line["status"]] += len(files)
        else:
            left.append(files)
    before = counts.total()
    left.sort(key=lambda files: (-files[0].nbytes, files[0].name))
    jobs = (_Job(tuple(files), read_file(files[0].path)) for files in left)
    with closing(answers_of(client, partial(_worked, work=work, options=options), jobs)) as answers:
        for number, (job, answer) in enumerate(answers, 1):
            line, model = (_lost(answer), None) if isinstance(answer, BaseException) else answer
            counts[line["status"]] += len(job.files)
            for file in job.files:
                results.write(file, line, model)
            watch(number, len(left), {**line, "model": job.files[0].name})
    return counts, before


def _lost(error: BaseException) -> Line:
    return {"status": LOST, "error": " ".join(str(error).split()).partition(". ")[0]}


def _worked(job: _Job, work: Work, options: Options) -> tuple[Line, bytes | None]:
    """Optimize one model on a worker; never raise for a fault of the model."""
    try:
        result = work(job.data, options)
    except MemoptError as error:
        return {"status": REFUSED, "error": f"{type(error).__name__}: {' '.join(str(error).split())}"}, None
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
        return {"status": FAILED, "error": " ".join(fault.split())}, None
    if isinstance(result, NetworkCost):
        sizes = {"before": result.ram, "after": result.optimized, "slowdown": result.slowdown}
        return {"status": DONE, "error": None, **sizes, "warning": result.warning, "cost": asdict(result)}, None
    report = replace(result.report, model=job.files[0].name)
    before, after = report.before, report.after
    line = {
        "status": DONE if report.tflm.runs else UNRUNNABLE,
        "error": None if report.tflm.runs else said_of(report.tflm),
        "before": before.required_for_target if report.as_it_came.has_size else None,
        "after": after.required_for_target,
        "slowdown": slowest(before.instructions, after.instructions),
        "warning": next(of_former_plan(report.planned_for), None),
        "report": json.loads(to_json(report)),
    }
    return line, result.model
