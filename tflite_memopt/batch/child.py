"""The process that a worker keeps: optimizes one model after the other, and may die of one.

Standard input brings a pickled setting and then jobs, standard output takes the outcomes. Ends with its input, whatever
it is doing, and when it has had nothing to do for a while.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import MemoptError
from ..io.files import read_file, write_files
from ..report.model import Report, to_json
from .job import BatchJob, BatchSetting, ModelOutcome

IDLE_SECONDS = 60.0
"""Workers of a cluster live on when a run is over; what it took from them is given back."""


def main() -> None:
    """Answer jobs until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool decides, Ctrl-C goes to the whole group
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print goes to standard error
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(told,), daemon=True).start()
    setting: BatchSetting = told.get()
    outcome: ModelOutcome | None = None  # the first answer: what it takes to start is no model's time
    while True:
        pickle.dump(outcome, answers)
        answers.flush()
        try:
            outcome = _outcome_of(told.get(timeout=IDLE_SECONDS), setting)
        except queue.Empty:
            os._exit(0)


def _listen(told: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            told.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)  # whoever asked is gone


def _outcome_of(job: BatchJob, setting: BatchSetting) -> ModelOutcome:
    try:
        data = read_file(Path(job.path)) if job.model is None else job.model
        result = setting.work(data, setting.options)
        text, times = without_times(replace(result.report, model=job.name))
        if job.output is not None:
            target = Path(job.output)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_files({target: result.model})
    except MemoryError:
        return ModelOutcome("memory", "Python could get no more memory")
    except MemoptError as error:
        return ModelOutcome("refused", f"{type(error).__name__}: {' '.join(str(error).split())}")
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
        return ModelOutcome("failed", " ".join(said.split()))
    return ModelOutcome("done", report=text, model=None if job.output is not None else result.model, times=times)


def without_times(report: Report) -> tuple[str, dict[str, float]]:
    """The report as JSON on one line, equal on every machine, and the seconds that were in it, by stage."""
    fields = json.loads(to_json(report))
    times: dict[str, float] = fields.pop("timing")
    return json.dumps(fields, separators=(",", ":")), times


if __name__ == "__main__":
    main()
