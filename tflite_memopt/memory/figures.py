"""The memory of a model in figures: plain data that reports show. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LiveTensor:
    """A tensor that is alive at some step."""

    name: str
    shape: tuple[int, ...]
    type: str
    bytes: int


@dataclass(frozen=True)
class StepUse:
    """An operator and the working set while it runs; ``live`` is largest first."""

    subgraph: int
    index: int
    operator: str
    output: str
    bytes: int
    scratch_bytes: int
    macs: int
    live: tuple[LiveTensor, ...]


@dataclass(frozen=True)
class MemoryUse:
    """A model's need of RAM.

    ``required_bytes`` is the arena to reserve by pointer width in bits, on the named target ("target"), and there with
    a plan that the firmware carries ("table"), its temporaries in the arena or not ("table_apart");
    ``required_is_exact`` is False when an operator's structures are a guess. ``tflm`` holds head, tail and total as
    TFLM measured them, or ``error`` with the reason why not.
    ``instructions``: an estimate of one run, by the kernel library (``memory/work.py``).
    """

    operators: int
    tensors: int
    macs: int
    instructions: dict[str, int]
    peak_bytes: int
    arena_bytes: int
    tail_bytes: dict[str, int]
    planner_temporary_bytes: dict[str, int]
    required_bytes: dict[str, int]
    required_is_exact: bool
    scratch_operators: int
    tflm: dict[str, int | str]
    peak: StepUse | None

    @property
    def required_for_target(self) -> int:
        """The arena that firmware must reserve on the named target; on 32 bits where none is named."""
        return self.required_bytes.get("target", self.required_bytes["32"])

    @property
    def temporaries_for_target(self) -> int:
        """What TFLM's planner takes while it loads the model, in the place of the head."""
        return self.planner_temporary_bytes.get("target", self.planner_temporary_bytes["32"])

    @property
    def tail_for_target(self) -> int:
        """What of that arena is neither head nor planner: TFLM's own structures."""
        return self.required_for_target - max(self.arena_bytes, self.temporaries_for_target)


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on the head: by inputs and outputs, by any order, by this order."""

    io: int
    schedule: int
    plan: int


@dataclass(frozen=True)
class InterfaceTensor:
    """An input or output of a model; ``side`` says which. ``real = scale * (value - zero_point)``.

    ``scale`` and ``zero_point`` are None for what is not quantized with one scale.
    """

    side: str
    name: str
    shape: tuple[int, ...]
    type: str
    bytes: int
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class ReuseInForce:
    """An operator whose output lies on its input in the plan; ``saved_bytes`` are the bytes that both are on."""

    operator: str
    kind: str
    input: str
    output: str
    saved_bytes: int


Sharing = Literal["none", "view", "in-place", "overlap"]


@dataclass(frozen=True)
class PlacedTensor:
    """A tensor or a scratch request in the head: bytes ``[offset, offset + bytes)`` in scopes ``[start, end)``.

    ``kind``: "input" and "output" of the model, "inner", or "scratch". ``operator``: position in ``ArenaMap.steps`` of
    what writes it, None for an input. ``sharing``: how it lies on an input of that operator.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    bytes: int
    offset: int
    start: int
    end: int
    kind: Literal["input", "output", "inner", "scratch"]
    operator: int | None
    sharing: Sharing


@dataclass(frozen=True)
class OperatorUse:
    """An operator that runs in scopes ``[start, end)``.

    ``working_set``: bytes alive while it runs; ``reach``: the highest byte of the head in use then, plus one.
    """

    subgraph: int
    index: int
    operator: str
    output: str
    macs: int
    working_set: int
    reach: int
    scratch_bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class TailPart:
    """Bytes of the tail that ``count`` tensors, operators or kernels of one kind take together."""

    name: str
    bytes: int
    count: int


@dataclass(frozen=True)
class ArenaMap:
    """What lies where in the head, and when. Time is counted in scopes, as TFLM does: ``[0, end)``.

    ``required``: bytes of the arena to reserve, at whose end the tail lies, in ``tail`` by part. ``graphs``: the names
    of the model's subgraphs, the main one first.
    """

    required: int
    tail: tuple[TailPart, ...]
    head: int
    end: int
    graphs: tuple[str, ...]
    tensors: tuple[PlacedTensor, ...]
    steps: tuple[OperatorUse, ...]


@dataclass(frozen=True)
class LibraryNeed:
    """Bytes on the profile's target: TFLM's head, and the arena to reserve. ``measured``: the library was run."""

    head: int
    required: int
    measured: bool
