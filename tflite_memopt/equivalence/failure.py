"""What is to be verified, and what is kept of it when that fails."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import EquivalenceError, OutputError
from ..io.files import write_files
from ..ir.change import Exactness
from ..ir.model import Origin
from ..version import __version__
from .baseline import Baseline


@dataclass(frozen=True)
class Promise:
    """What is said of TFLM's memory: ``required_bytes`` of arena are enough, and the plan takes ``head`` bytes of them.

    None where nobody says so. A runner of the user's must keep to it. The wheel may be of a version that was not
    measured: where it takes more, the report notes it.
    """

    required_bytes: int | None = None
    head: int | None = None


NO_PROMISE = Promise()


@dataclass(frozen=True)
class Subject:
    """What is to be verified: the bytes of three models, and how far the rewriting may have changed values.

    ``rewritten`` is ``optimized`` before it was cut into stripes, ordered and planned. ``pieces`` are the origins of
    the optimized model's tensors by name, ``loop_pieces`` those in its subgraphs, by number. ``approximated``: the
    original's tensors that an approximation computes. ``promise`` is for the TFLM of the wheel, ``runner_promise`` for
    that of the user's runner. ``ties``: as of a ``Model``.
    """

    original: bytes
    rewritten: bytes
    optimized: bytes
    exactness: Exactness = "exact"
    pieces: Mapping[str, Origin] = field(default_factory=dict)
    approximated: tuple[str, ...] = ()
    promise: Promise = NO_PROMISE
    runner_promise: Promise = NO_PROMISE
    loop_pieces: Mapping[int, Mapping[str, Origin]] = field(default_factory=dict)
    ties: tuple[tuple[int, int], ...] = ()


class FailedVerificationError(EquivalenceError):
    """The optimized model does not compute what the original does. ``subject`` is what was compared."""

    def __init__(self, message: str, subject: Subject) -> None:
        super().__init__(message)
        self.subject = subject


def save_failure(
    folder: str | os.PathLike[str], step: str, failure: FailedVerificationError, baseline: Baseline | None
) -> None:
    """Write the models, the inputs and the message of a failed verification into a new folder of ``folder``.

    Raises OutputError when that cannot be written.
    """
    place = Path(folder) / step.replace(" ", "_")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder '{place}': {error.strerror or error}") from error
    subject = failure.subject
    files = {
        place / "original.tflite": subject.original,
        place / "rewritten.tflite": subject.rewritten,
        place / "optimized.tflite": subject.optimized,
        place / "message.txt": f"tflite-memopt {__version__}, {step}, {subject.exactness}: {failure}\n".encode(),
    }
    if baseline is not None and baseline.samples:
        files[place / "inputs.npz"] = _inputs(baseline)
    write_files(files)


def _inputs(baseline: Baseline) -> bytes:
    """As ``--inputs`` takes them."""
    stream = io.BytesIO()
    columns = zip(baseline.model.main.inputs, zip(*baseline.samples, strict=True), strict=True)
    np.savez(stream, **{tensor.name: np.stack(values) for tensor, values in columns})  # type: ignore[arg-type]
    return stream.getvalue()
