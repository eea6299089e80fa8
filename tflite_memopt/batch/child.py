"""The process that a worker keeps: optimises one model after the other, and may die of one.

Called as ``python -m tflite_memopt.batch.child PARENT``. Standard input holds the pickled setting and then jobs,
standard output the answers, both in the words of :mod:`tflite_memopt.equivalence.wire`. Ends with its parent, and when
it has had nothing to do for a while.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..equivalence import wire
from ..equivalence.limits import apply_in_process
from ..errors import MemoptError
from ..io.files import read_file, write_files
from ..report.model import Report, to_json
from .job import BatchSetting

IDLE_SECONDS = 60.0
Arrays = dict[str, npt.NDArray[Any]]


def main(parent: int) -> None:
    """Answer jobs until the input ends."""
    apply_in_process(0, parent)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print goes to standard error
    first = wire.receive(sys.stdin.buffer)
    if first is None:
        return
    setting: BatchSetting = pickle.loads(first.arrays["setting"].tobytes())
    wire.send(answers, {}, {})  # what it takes to start is no model's time
    while (message := _next()) is not None:
        head, arrays = _answer(setting, message)
        wire.send(answers, head, arrays)


def _next() -> wire.Message | None:
    with _ending_when_idle():
        return wire.receive(sys.stdin.buffer)


@contextmanager
def _ending_when_idle() -> Iterator[None]:
    """Workers of a cluster live on when a run is over; what it took from them is given back."""
    timer = threading.Timer(IDLE_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _answer(setting: BatchSetting, message: wire.Message) -> tuple[dict[str, Any], Arrays]:
    head, arrays = message
    try:
        data = arrays["model"].tobytes() if "model" in arrays else read_file(head["path"])
        result = setting.work(data, setting.options)
        text, times = without_times(replace(result.report, model=head["name"]))
        if head["output"] is not None:
            target = Path(head["output"])
            target.parent.mkdir(parents=True, exist_ok=True)
            write_files({target: result.model})
    except MemoryError:
        return {"status": "memory", "error": "Python could get no more memory"}, {}
    except MemoptError as error:
        return {"status": "refused", "error": f"{type(error).__name__}: {' '.join(str(error).split())}"}, {}
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
        return {"status": "failed", "error": " ".join(said.split())}, {}
    back: Arrays = {} if head["output"] is not None else {"model": np.frombuffer(result.model, np.uint8)}
    return {"status": "done", "error": None, "report": text, "times": times}, back


def without_times(report: Report) -> tuple[str, dict[str, float]]:
    """The report as JSON on one line, equal on every machine, and the seconds that were in it, by stage."""
    fields = json.loads(to_json(report))
    times: dict[str, float] = fields.pop("timing")
    return json.dumps(fields, separators=(",", ":")), times


if __name__ == "__main__":
    main(int(sys.argv[1]))
