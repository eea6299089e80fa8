"""The report: plain data whose fields are those of schema/report.schema.json. All sizes are bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..equivalence.verdict import Basis, Verdict
from ..io.plan_label import PlanLabel
from ..ir.change import Refusal, RewriteUse
from ..kernels.support import RUNS, TflmSupport
from ..memory.figures import (
    ArenaMap,
    Bounds,
    InterfaceTensor,
    LibraryNeed,
    MemoryUse,
    ReuseInForce,
    StepUse,
)
from ..options import Objective


@dataclass(frozen=True)
class BindingStep:
    """The operator during which the plan occupies most ``bytes`` of the head."""

    subgraph: int
    index: int
    operator: str
    output: str
    bytes: int


@dataclass(frozen=True)
class LineBuffer:
    """Rows of the tensor ``of`` that a loop keeps from turn to turn."""

    of: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class LoopUse:
    """A region as one loop: each of its ``turns`` writes so many ``rows`` of the ``result``.

    ``operators``: the kinds of those that run in a turn. ``reads``: the tensors that are read a few rows at a time.
    """

    result: str
    turns: int
    rows: int
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    line_buffers: tuple[LineBuffer, ...]


EndedBy = Literal["proof", "work_limit", "clock"]
"""The reason that a search ended: a proof that nothing smaller exists, its limit on work, or the clock."""


@dataclass(frozen=True)
class SearchUse:
    """The result of a scheduler.

    The order in force lies ``gap_bytes`` above ``lower_bound``, that of any order; 0: it is ``optimal``.
    """

    method: str
    optimal: bool
    lower_bound: int
    gap_bytes: int
    ended_by: EndedBy


@dataclass(frozen=True)
class SectionUse:
    """Tensors that are alive together with ``scratch_requests`` requests, and so need ``bytes`` in every plan.

    ``pinned``: the only tensor lies at a fixed offset, for an NPU, and the bytes are those up to its end.
    """

    bytes: int
    tensors: tuple[str, ...]
    scratch_requests: int
    pinned: bool


@dataclass(frozen=True)
class PlanUse(SearchUse):
    """The result of a planner; ``lower_bound`` is that of any plan of the order in force.

    ``bound_by`` says what proves it: the ``section``, or a search that tried everything below. ``dropped`` names the
    strategies whose answer broke a rule, with the rule.
    """

    bound_by: Literal["section", "search"]
    section: SectionUse
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """An option that could lower the result further, and what it would do."""

    option: str
    text: str


@dataclass(frozen=True)
class Summary:
    """The report in sentences, names shortened: one line, what changed, what limits the result, what would help."""

    headline: str
    changes: tuple[str, ...]
    limits: tuple[str, ...]
    advice: tuple[Advice, ...]


NO_SUMMARY = Summary("", (), (), ())


@dataclass(frozen=True)
class DeviceUse:
    """The chip or board that was named: its RAM and flash in bytes. ``flash_bytes`` is None where it is not known."""

    name: str
    chip: str
    ram_bytes: int
    flash_bytes: int | None


@dataclass(frozen=True)
class ProofUse:
    """A proof for all inputs, of the result or of its memory plan; see ``proof/``.

    ``status``: "proved"; "reassociated", which is proved as real polynomials, float sums taken in another order;
    "different"; or "unknown". ``reason``: why it is not proved. ``chance``: upper bound on the probability that a proof
    is false, over its random keys. ``facts``: names of the facts about kernels that it leans on (``proof/facts.py``).
    """

    status: str
    reason: str | None
    chance: float
    facts: tuple[str, ...] = ()

    @property
    def is_proved(self) -> bool:
        """Return whether it holds for all inputs."""
        return self.status in ("proved", "reassociated")


@dataclass(frozen=True)
class Analysis:
    """The analysis of one model: its memory as it stands, bounds, and every operator's working set.

    ``planned_for``: the label of the plan in the file. ``libraries``: as in a report. ``tflm``: whether
    TFLM can run the file. ``mends``: whether rewrites change that; figures are those of the model after these.
    """

    model: str | None
    target: str | None
    kernels: str
    file_bytes: int
    sha256: str
    planned_for: PlanLabel | None
    memory: MemoryUse
    libraries: dict[str, LibraryNeed]
    bounds: Bounds
    steps: tuple[StepUse, ...]
    summary: Summary
    arena: ArenaMap
    loops: tuple[LoopUse, ...] = ()
    tflm: TflmSupport = RUNS
    mends: bool = False
    device: DeviceUse | None = None


@dataclass(frozen=True)
class Way:
    """How ``optimize`` may write the model other than as one file; none of it is verified before it is written.

    ``flags``: of ``optimize``. ``need``: bytes of RAM, ``slowdown``: the share of run time that it adds, both None
    where there is no such result, for the ``reason``. ``fits``: whether it meets the budget.
    """

    flags: str
    need: int | None
    slowdown: float | None
    fits: bool
    reason: str | None


@dataclass(frozen=True)
class DeclinedUse:
    """A result that needs less, whose new operators or newer TFLM save too little to be taken without being asked for.

    ``need``: bytes of the objective. ``slowdown``: the share of run time that it adds with the slowest library.
    """

    need: int
    slowdown: float
    kernel_bytes: dict[str, int | None]
    tflm_since: str | None


@dataclass(frozen=True)
class Report:
    """The report of one run of ``optimize``; see schema/report.schema.json.

    ``interface`` is that of the model "before" and "after", inputs first. ``binding`` is looked for when the budget is
    not met. ``decision``: what ``--replay`` takes to make the same again.
    ``operators_added`` names what a firmware's op resolver must have as well, ``kernel_bytes`` the flash of each kernel
    (``kernels/code_size.py``), ``tflm_since`` the day of the oldest TFLM that has them. ``declined``: a result that
    needs less and was not worth its price. ``libraries`` is what the model needs, "before" and "after", under each
    library that the firmware may link, the plan in force. ``runner``: what the user's runner measured of the model
    "before" and "after"; None without one. ``arena``: what lies where and when in the head.
    ``ways``: where the budget is missed, what the model needs in parts and fed.
    ``least_in_stripes``: bytes of the objective that nothing goes below that the search for stripes looks at, None
    without such a search.
    ``tflm``: whether TFLM can run the result. ``mended``: what kept TFLM from loading the file as it came, where
    rewrites mend that; "before" is then the model after these. ``device``: the chip or board that was named.
    ``proofs``: of the "result" and of its "plan", for all inputs, and of its calls as "step"; empty without
    verification. ``calls``: of the result for one of the original, whose instructions are then those of one step.
    ``options``: those that decide the result, by name. ``sha256``: of the files "before" and "after". ``timing``:
    seconds by stage, the only part in which two runs of the same differ.
    """

    version: str
    model: str | None
    target: str | None
    kernels: str
    options: dict[str, Any]
    objective: str
    budget: int | None
    within_budget: bool | None
    binding: BindingStep | None
    before: MemoryUse
    after: MemoryUse
    bounds: Bounds
    interface: dict[str, tuple[InterfaceTensor, ...]]
    schedule: SearchUse
    plan: PlanUse
    decision: str
    rewrites: tuple[RewriteUse, ...]
    refused: tuple[Refusal, ...]
    sharing: tuple[ReuseInForce, ...]
    operators_added: tuple[str, ...]
    kernel_bytes: dict[str, int | None]
    tflm_since: str | None
    declined: DeclinedUse | None
    libraries: dict[str, dict[str, LibraryNeed]]
    equivalence: dict[str, Verdict]
    basis: Basis
    runner: dict[str, dict[str, int | str]] | None
    file_bytes: dict[str, int]
    sha256: dict[str, str]
    timing: dict[str, float]
    warnings: tuple[str, ...]
    summary: Summary
    arena: dict[str, ArenaMap]
    loops: tuple[LoopUse, ...] = ()
    least_in_stripes: int | None = None
    ways: tuple[Way, ...] = ()
    tflm: TflmSupport = RUNS
    mended: TflmSupport | None = None
    device: DeviceUse | None = None
    proofs: dict[str, ProofUse] = field(default_factory=dict)
    calls: int = 1


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
class FusionUse:
    """Fused blocks that solve one problem of msf-CNN: ``least RAM`` with ``limit`` times the MACs of no fusion at most,
    or ``fewest MACs`` in ``limit`` bytes; a limit of None is none.

    ``ends_counted``: the bytes are with the input of the first layer and the output of the last. ``blocks``: layers
    that are fused, such as "0-12". ``bytes`` and ``macs`` are None where nothing keeps the limit.
    """

    problem: Literal["no fusion", "least RAM", "fewest MACs"]
    limit: float | None
    ends_counted: bool
    bytes: int | None
    macs: int | None
    blocks: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """The comparison of methods on one model. The planners all plan the order of ``planned_order``, a scheduler's name.

    ``shared_objects`` are for runtimes that cannot place tensors at offsets: bytes of all objects. ``fusion`` is what
    msf-CNN finds, where it was asked for, on the ``fusion_layers`` layers that the model begins with.
    """

    model: str | None
    kernels: str
    operators: int
    schedulers: tuple[MethodUse, ...]
    planned_order: str
    planners: tuple[MethodUse, ...]
    shared_objects: tuple[MethodUse, ...]
    fusion_layers: int = 0
    fusion: tuple[FusionUse, ...] = ()


@dataclass(frozen=True)
class Verification:
    """The result of ``verify``: the verdict of each runtime by name."""

    verdicts: dict[str, Verdict]


@dataclass(frozen=True)
class FrontPoint:
    """One way to run a model: the arena to reserve (``total``) and its head, and what they are paid with.

    ``slowdown``: the run time that is added, as a fraction, with the library that gets slowest (estimated).
    ``limits``: those under which it was found, as flags of ``optimize``. ``stripes``: of each region that has some.
    ``parts``: models that run one after another in the arena; ``head`` is then that of the largest.
    """

    total: int
    head: int
    slowdown: float
    macs: int
    operators: int
    file_bytes: int
    limits: str
    stripes: tuple[str, ...]
    parts: int = 1


@dataclass(frozen=True)
class Choice:
    """The point that ``budget`` picks, by its position in the front: the cheapest that ``fits``, or the nearest.

    ``objective``: what the budget limits. Without a budget the smallest, and ``fits`` is None. ``limits`` and
    ``advice``: what limits that point and what would help, as in a report; empty where nobody asked.
    """

    objective: Objective
    budget: int | None
    point: int
    fits: bool | None
    limits: tuple[str, ...]
    advice: tuple[Advice, ...]


@dataclass(frozen=True)
class Exploration:
    """The Pareto front of RAM against MACs, operators and file bytes.

    ``before``: the model as it came. ``points``: the front, the smallest total first. ``searches``: limits on stripes
    under which was searched.
    """

    model: str | None
    target: str | None
    kernels: str
    effort: str
    before: FrontPoint
    points: tuple[FrontPoint, ...]
    searches: int
    choice: Choice
    warnings: tuple[str, ...]


Record = Report | Analysis | Comparison | Verification | Exploration
"""Records that commands write as JSON."""
SCHEMA_VERSION = "3.0"
"""The number after the dot grows with every new field, the one before it when a field goes or changes its meaning."""
_KINDS: dict[type[Any], str] = {
    Report: "report",
    Analysis: "analysis",
    Comparison: "comparison",
    Verification: "verification",
    Exploration: "exploration",
}


def schema_id(kind: str) -> str:
    """The name of a schema, the same for all versions that differ in new fields only."""
    return f"urn:tflite-memopt:schema:{kind}:{SCHEMA_VERSION.partition('.')[0]}"


def to_json(record: Record) -> str:
    """Indented JSON text: the record's fields, and ``$schema`` and ``schema_version``, by which it can be read back."""
    head = {"$schema": schema_id(_KINDS[type(record)]), "schema_version": SCHEMA_VERSION}
    return json.dumps(head | _plain(asdict(record)), indent=2) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)  # JSON has no infinity; a difference is infinite when shapes differ
    return value
