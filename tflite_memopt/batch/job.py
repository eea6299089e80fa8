"""What is asked of a worker for one model, and what comes back. Plain data that travels between machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..options import Options
from ..report.model import Report

Status = Literal["done", "refused", "failed", "crashed", "timeout", "memory", "lost"]
"""``refused``: an error that names what is wrong with the model. ``failed``: a fault of this tool. ``crashed``: the
process that worked on it died. ``timeout``, ``memory``: it took more than its share. ``lost``: its worker in a
cluster died, and so did the next ones."""
DONE: Status = "done"
REFUSED: Status = "refused"
LASTING = (DONE, REFUSED)
"""What another try would not change."""


class Optimized(Protocol):
    """What optimizing one model gives."""

    @property
    def model(self) -> bytes:
        """The new file."""

    @property
    def report(self) -> Report:
        """What was done."""


Work = Callable[[bytes, Options], Optimized]
"""A function of a module, that another process can import by its name. Raises MemoptError for what it refuses."""


@dataclass(frozen=True)
class WorkerLimits:
    """For one model: ``seconds`` of wall time, and ``memory_bytes`` resident in all of its processes.

    Where ``memory_bytes`` is None, a worker may take one of ``shares`` equal parts of four fifths of its machine's
    memory; 0 shares stand for as many as it has processors to use.
    """

    seconds: float = 900.0
    memory_bytes: int | None = None
    shares: int = 1


@dataclass(frozen=True)
class BatchSetting:
    """What is the same for all models of a run."""

    work: Work
    options: Options
    limits: WorkerLimits


@dataclass(frozen=True)
class BatchJob:
    """One model. ``content``: SHA-256 of its bytes, in hexadecimal. ``name``: its path, for people.

    ``path`` is where the worker reads it, on storage that it shares; ``model`` are its bytes where it shares none.
    ``output``: where the worker writes the result, None where the bytes come back.
    """

    content: str
    name: str
    path: str
    model: bytes | None = None
    output: str | None = None


@dataclass(frozen=True)
class ModelOutcome:
    """What became of the model of that ``content``.

    ``report``: the JSON of the report without its times, None without one. ``model``: the new file, where it comes
    back. ``seconds`` in all, ``times`` of stages by name, and ``worker``, the host and the process that worked on it,
    differ from run to run.
    """

    status: Status
    error: str | None = None
    content: str = ""
    report: str | None = None
    model: bytes | None = None
    seconds: float = 0.0
    times: Mapping[str, float] = field(default_factory=dict)
    worker: str = ""
