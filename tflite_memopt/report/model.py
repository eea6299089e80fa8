"""The report: plain data whose fields are those of schema/report.schema.json. All sizes are bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


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
class BindingStep:
    """The operator during which the plan occupies most ``bytes`` of the head."""

    subgraph: int
    index: int
    operator: str
    output: str
    bytes: int


@dataclass(frozen=True)
class MemoryUse:
    """A model's need of RAM. ``required_bytes`` maps pointer width in bits to the arena to reserve;
    ``required_is_exact`` is False when an operator's structures are a guess. ``tflm`` holds head, tail and total
    as TFLM measured them, or ``error`` with the reason why not."""

    operators: int
    tensors: int
    macs: int
    peak_bytes: int
    arena_bytes: int
    tail_bytes: dict[str, int]
    planner_temporary_bytes: dict[str, int]
    required_bytes: dict[str, int]
    required_is_exact: bool
    scratch_operators: int
    tflm: dict[str, int | str]
    peak: StepUse | None


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on the head: by inputs and outputs, by any order, by this order."""

    io: int
    schedule: int
    plan: int


@dataclass(frozen=True)
class Search:
    """What a scheduler or planner did."""

    method: str
    optimal: bool
    seconds: float


@dataclass(frozen=True)
class RewriteUse:
    """What was applied at one place: its rules' names, joined by `` + ``, and the operators they changed.

    ``exactness`` is that of the loosest; ``saved_bytes`` of the objective, 0 for what was not searched for.
    """

    rule: str
    operators: tuple[str, ...]
    exactness: str
    saved_bytes: int


@dataclass(frozen=True)
class InterfaceTensor:
    """An input or output of a model; ``side`` says which. ``real = scale * (value - zero_point)``.

    ``scale`` and ``zero_point`` are None for what is not quantised with one scale.
    """

    side: str
    name: str
    shape: tuple[int, ...]
    type: str
    bytes: int
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class Refusal:
    """A rule that fits an operator, named by its first output, and was not applied."""

    rule: str
    operator: str
    reason: str


@dataclass(frozen=True)
class SharingUse:
    """An operator whose output lies on its input in the plan; ``saved_bytes`` are the bytes that both are on."""

    operator: str
    kind: str
    input: str
    output: str
    saved_bytes: int


@dataclass(frozen=True)
class Verdict:
    """One runtime's word on equality; ``equal`` is None when it could not judge, for ``reason``.

    ``equal`` means: to the bit when ``exactness`` is "exact"; within ``tolerance`` when it is "reassociates"; when it
    is "approximates", that stripes, order and plan change nothing, however far off the rewritten graph itself is.
    The differences are those of outputs from the original's: the largest, in units of the output; of float outputs, as
    a share of the largest magnitude in the tensor; of integer outputs, in steps; and the share of values that differ.
    ``agreeing_argmax_share``: how often the largest of a row of scores is the same (None: no such output).
    """

    samples: int
    equal: bool | None
    max_abs_diff: float
    reason: str | None
    exactness: str = "exact"
    tolerance: dict[str, float] | None = None
    max_relative_diff: float | None = None
    max_lsb_diff: float | None = None
    differing_share: float = 0.0
    agreeing_argmax_share: float | None = None


@dataclass(frozen=True)
class Analysis:
    """What ``analyze`` says of one model: its memory as it stands, bounds, and every operator's working set."""

    model: str | None
    kernels: str
    file_bytes: int
    memory: MemoryUse
    bounds: Bounds
    steps: tuple[StepUse, ...]


@dataclass(frozen=True)
class Report:
    """What ``optimize`` did and found; see schema/report.schema.json.

    ``interface`` is that of the model "before" and "after", inputs first. ``binding`` is looked for when the budget is
    not met.
    ``operators_added`` names what a firmware's op resolver must have as well. ``arena_by_kernels`` is the head in
    bytes that each kernel profile would allow, in its own best order.
    """

    version: str
    model: str | None
    kernels: str
    objective: str
    budget: int | None
    within_budget: bool | None
    binding: BindingStep | None
    before: MemoryUse
    after: MemoryUse
    bounds: Bounds
    interface: dict[str, tuple[InterfaceTensor, ...]]
    schedule: Search
    plan: Search
    rewrites: tuple[RewriteUse, ...]
    refused: tuple[Refusal, ...]
    sharing: tuple[SharingUse, ...]
    operators_added: tuple[str, ...]
    arena_by_kernels: dict[str, int]
    equivalence: dict[str, Verdict]
    file_bytes: dict[str, int]
    seconds: dict[str, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class MethodUse:
    """One method's result in a comparison: ``bytes`` is a peak, an arena, or a sum of objects.

    ``states`` counts what a scheduler visited; None for planners.
    """

    method: str
    bytes: int
    lower_bound: int
    optimal: bool
    seconds: float
    states: int | None


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found. The planners all plan the order of ``planned_order``, a scheduler's name.

    ``shared_objects`` are for runtimes that cannot place tensors at offsets: bytes of all objects.
    """

    model: str | None
    kernels: str
    operators: int
    schedulers: tuple[MethodUse, ...]
    planned_order: str
    planners: tuple[MethodUse, ...]
    shared_objects: tuple[MethodUse, ...]


def to_json(record: Report | Analysis | Comparison) -> str:
    """Indented JSON text of a report, an analysis or a comparison."""
    return json.dumps(_plain(asdict(record)), indent=2) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)  # JSON has no infinity; a difference is infinite when shapes differ
    return value
