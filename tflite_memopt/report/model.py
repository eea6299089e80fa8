"""The report: plain data whose fields are those of schema/report.schema.json. All sizes are bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..evidence.equivalence.verdict import Basis, Verdict
from ..kernels.as_it_came import RUNS_AS_IT_CAME, AsItCame
from ..kernels.since import PRESENT
from ..kernels.support import RUNS, OperatorName, TflmSupport
from ..memory.figures import ArenaMap, Bounds, InterfaceTensor, MemoryUse, ReuseInForce, StepUse
from ..memory.reserve import LibraryNeed
from ..model.io.plan_label import PlanLabel
from ..model.ir.change import Refusal, RewriteUse
from ..options import Objective
from .answer import Answer, DeviceUse, Planner

FIGURE = "figure"
"""Metadata of a field: its name in the table of figures."""


@dataclass(frozen=True)
class BindingStep(OperatorName):
    """The operator during which the plan occupies the most bytes of the head."""

    bytes: int
    """Bytes of the head in use while it runs."""


@dataclass(frozen=True)
class LineBuffer:
    """Rows of a tensor that a loop keeps between iterations."""

    of: str
    """Name of the tensor whose rows are kept."""
    rows: int
    """Number of rows that are kept."""
    bytes: int
    """Their size."""


@dataclass(frozen=True)
class LoopUse:
    """A region that runs as one loop."""

    result: str
    """Name of the tensor that the loop computes."""
    iterations: int
    """Number of iterations."""
    rows: int
    """Rows of the result per iteration."""
    operators: tuple[str, ...]
    """Operator kinds of an iteration, in order."""
    reads: tuple[str, ...]
    """Names of tensors that the loop reads a few rows at a time."""
    line_buffers: tuple[LineBuffer, ...]
    """Rows that are kept between iterations."""


@dataclass(frozen=True)
class FaultUse(OperatorName):
    """An operator that a kernel library computes wrongly (docs/kernel_faults.md)."""

    fault: str
    """Name of the fault."""
    effect: str
    """The effect: wrong values, bytes that are written beyond the scratch or left unwritten, or a lost state."""
    library: str
    """Kernel profile that has it."""
    releases: str
    """Releases in which this operator meets it."""
    source: str
    """Issue, pull request, or file that it is known from."""
    mends: bool = False
    """True if optimize writes the operator so that the kernels compute it rightly."""


EndedBy = Literal["proof", "work_limit", "clock"]
"""The reason that a search ended: a proof that nothing smaller exists, its limit on work, or the clock."""


@dataclass(frozen=True)
class SearchUse:
    """The result of a scheduler."""

    method: str
    """Name of the method, as --orders or --offsets of compare takes it."""
    optimal: bool
    """True if it is proved that nothing smaller exists."""
    lower_bound: int
    """Lower bound on the head for any order, in bytes."""
    gap_bytes: int
    """Bytes between lower_bound and the result; 0 if it is optimal."""
    ended_by: EndedBy
    """Reason that the search ended: "proof", "work_limit", the same on every machine, or "clock" (compare)."""


@dataclass(frozen=True)
class SectionUse:
    """Tensors and scratch that are alive together, or a tensor at a fixed offset: a lower bound on every plan."""

    bytes: int
    """Bytes that they need in any plan."""
    tensors: tuple[str, ...]
    """Names of tensors that are alive together."""
    scratch_requests: int
    """Number of scratch requests that are alive with them."""
    pinned: bool
    """True if it is one tensor at a fixed offset, for an NPU; the bytes end with it."""


@dataclass(frozen=True)
class PlanUse(SearchUse):
    """The result of a planner; ``lower_bound`` holds for any plan of the order in force."""

    bound_by: Literal["section", "search"]
    """Proof of lower_bound: the "section", or an exhaustive "search" below it."""
    section: SectionUse
    """Tensors that are alive together and need the most."""
    dropped: tuple[str, ...]
    """Strategies whose answer broke a rule, with the rule: please report the model."""


@dataclass(frozen=True)
class Advice:
    """An option that could lower the result further, and what it would do."""

    option: str
    """The option to try, or the change to make."""
    text: str
    """Its effect and its cost."""


@dataclass(frozen=True)
class Summary:
    """The report in sentences, with short names."""

    headline: str
    """The first line: the RAM, and how it was verified."""
    changes: tuple[str, ...]
    """The changes; the price is in before, after, file_bytes, kernel_bytes, and tflm_since."""
    limits: tuple[str, ...]
    """Limits on the size, in sentences."""
    advice: tuple[Advice, ...]
    """Options that could lower the result further."""


NO_SUMMARY = Summary("", (), (), ())


@dataclass(frozen=True)
class ProofUse:
    """A proof for all inputs, of the result or of its memory plan; see ``evidence/proof/``."""

    status: str
    """"proved", "reassociated" (proved as real polynomials), "different" or "unknown"."""
    reason: str | None
    """The reason if it is not proved; null otherwise."""
    chance: float
    """Upper bound on the probability that the proof is false, over its random keys."""
    facts: tuple[str, ...] = ()
    """Names of the facts about kernels that the proof uses (``evidence/proof/facts.py``)."""
    finite_only: bool = False
    """True if it holds for finite floats that do not overflow on the way; false: for any."""

    @property
    def is_proved(self) -> bool:
        """Return whether it holds for all inputs."""
        return self.status in ("proved", "reassociated")


@dataclass(frozen=True)
class MemoryPart:
    """The part of the plan of ``codegen --memory`` that lies in one memory."""

    name: str
    """Name of the memory, as --memory gives it."""
    capacity: int
    """Bytes that the memory has."""
    bytes: int
    """Bytes that the firmware reserves in it, TFLM's own structures included where they lie there."""
    has_structures: bool
    """True if TFLM's own structures lie in it."""
    moved: int
    """Bytes of tensors and scratch that operators read and write there in one invocation."""
    tensors: tuple[str, ...]
    """Names of the tensors in it, those of which the most bytes move first."""


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """What is said of one model, as it is or as it was made."""

    model: str | None
    """Name of the file that was read, without its folder; null where bytes were given."""
    target: str | None
    """Core or chip of the figures; null: any 32-bit one."""
    kernels: str
    """Kernel profile of the figures."""
    device: DeviceUse | None = None
    """Chip or board named by --target; null for a core or no target."""
    answer: Answer
    """The size to reserve, whether it fits, and whether the file is right for the kernels."""
    bounds: Bounds
    """Lower bounds on the head."""
    tflm: TflmSupport = RUNS
    """TensorFlow Lite Micro's kernels for the model."""
    as_it_came: AsItCame = RUNS_AS_IT_CAME
    """What TensorFlow Lite Micro makes of the file that was read. Where it cannot load or read it, the figures of the
    original are those after the rewrites that mend this, and nothing else."""
    loops: tuple[LoopUse, ...] = ()
    """Regions that run as one loop."""
    faults: tuple[FaultUse, ...] = ()
    """Operators that the kernels compute wrongly; those of a result are the original's."""
    right_with: str | None = None
    """Releases of the target's kernel library that compute all operators right; null if none, or if no fault is met."""
    warnings: tuple[str, ...]
    """Warnings to read before flashing, in sentences."""
    summary: Summary
    """The report in sentences, for people; programs read the other fields."""


@dataclass(frozen=True, kw_only=True)
class Analysis(ModelRecord):
    """The analysis of one model. If ``mends``, the figures are those of the model after the rewrites that mend it."""

    file_bytes: int
    """Size of the file, in bytes."""
    sha256: str
    """SHA-256 of the file, in hexadecimal."""
    planned_for: PlanLabel | None
    """Target and kernels of the offline plan in the file; null without a plan of this tool."""
    memory: MemoryUse
    """Memory of the model as it is."""
    libraries: dict[str, LibraryNeed]
    """Needs of the model under each kernel library, by profile name."""
    steps: tuple[StepUse, ...]
    """Every operator with its working set, in execution order."""
    arena: ArenaMap
    """Location and lifetime of every tensor in the head."""
    tflm_build: str = PRESENT.name
    """Build of TensorFlow Lite Micro of the figures, as --tflm takes it."""
    mends: bool = False
    """True if optimize rewrites it into a model that TensorFlow Lite Micro can load and read."""
    memories: tuple[MemoryPart, ...] = ()
    """The plan over several memories, the fastest first; empty if there is only one, or if it is not asked for."""


@dataclass(frozen=True)
class Way:
    """A way to write the model other than as one file; it is not verified before it is written."""

    flags: str
    """Flags of optimize that write this result."""
    need: int | None
    """Bytes of RAM to reserve; null without such a result."""
    slowdown: float | None
    """Added run time with the slowest library, as a fraction; null without such a result."""
    fits: bool
    """True if it meets the budget."""
    reason: str | None
    """The reason if there is no such result; null otherwise."""


@dataclass(frozen=True)
class SlideUse:
    """A window that moves along a signal, one hop per call."""

    hop: int
    """Rows of the input per call."""
    window: int
    """Rows of the whole window."""
    calls: int
    """Calls from Reset() on until the outputs are those of a window: of the last one, and of every later call."""
    kept: tuple[str, ...]
    """Tensors whose rows are kept from call to call, the input among them."""
    ends: str
    """The operator at which sliding ends, and why; the rest runs whole."""


@dataclass(frozen=True)
class DeclinedUse:
    """A smaller result that costs too much to be the default: new operators, or a newer TFLM, for few bytes."""

    need: int
    """Bytes of the objective."""
    slowdown: float
    """Added run time with the slowest library, as a fraction."""
    kernel_bytes: dict[str, int | None]
    """Flash of its new kernels on Cortex-M4, in bytes; null if not measured."""
    tflm_since: str | None
    """Date of the oldest TFLM that has them; null if every version has."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a run tells its report besides the figures of its models. A field with a ``figure`` is in their table.

    A new field has a default, for the JSON of older versions, and below it the text for the schema.
    """

    decision: str
    """The decision of the searches, on one line; optimize --replay repeats it without a search."""
    rewrites: tuple[RewriteUse, ...]
    """Changes of the graph, in the order of application."""
    refused: tuple[Refusal, ...]
    """Matches of a rule that were not changed, with the reason."""
    declined: DeclinedUse | None
    """A smaller result that was declined for its price; null without one."""
    least_as_one: int = field(default=0, metadata={FIGURE: "lower bound in one file, bytes"})
    """Lower bound of the objective for the model in one file, in any form, in bytes: inputs or outputs, and TFLM's
    structures."""
    least_in_stripes: int | None = field(default=None, metadata={FIGURE: "lower bound of the search, bytes"})
    """Lower bound of the search for stripes, in bytes of the objective; null without such a search."""
    slowdown_of_mends: float = 0.0
    """Run time that is added by computing right what a kernel library computes wrongly, as a fraction; --max-slowdown
    counts from there."""
    calls: int = 1
    """Calls of the result for one of the original: the time steps with --step, otherwise 1. The run time "before" is
    that of one step."""
    slide: SlideUse | None = None
    """The hop that a call takes, with --slide; the run time "before" is that of a whole window."""
    proofs: dict[str, ProofUse] = field(default_factory=dict)
    """Proofs for all inputs, of the "result", of its "plan" and, with --step or --slide, of its calls ("step"); empty
    without verification."""
    equivalence: dict[str, Verdict]
    """Verdict on equality, by runtime; empty without verification."""
    basis: Basis
    """The basis of the verdicts."""
    runner: dict[str, dict[str, int | str]] | None
    """Measurements of the model "before" and "after" by the runner in Options; null without one."""


@dataclass(frozen=True, kw_only=True)
class Report(ModelRecord, RunFacts):
    """The report of one run of ``optimize``; see schema/report.schema.json."""

    version: str
    """Version of tflite-memopt."""
    options: dict[str, Any]
    """Options that determine the result, by their Python names; files without their folder."""
    objective: Objective
    """The quantity that was minimized. "total": the whole arena; "head": the part that tensors share over time."""
    budget: int | None
    """The budget in bytes; null without one."""
    binding: BindingStep | None
    """The operator that needs the most if a budget is missed; null otherwise."""
    before: MemoryUse
    """Memory of the original model."""
    after: MemoryUse
    """Memory of the result."""
    interface: dict[str, tuple[InterfaceTensor, ...]]
    """Inputs, then outputs, of the model "before" and "after"."""
    schedule: SearchUse
    """The search for the order of operators."""
    plan: PlanUse
    """The search for tensor offsets, in the final order."""
    sharing: tuple[ReuseInForce, ...]
    """Outputs that share bytes with an input of their operator, most bytes first."""
    operators_added: tuple[str, ...]
    """Operator kinds that the firmware's resolver needs in addition."""
    kernel_bytes: dict[str, int | None]
    """Flash of the kernels of operators_added on Cortex-M4, in bytes; null if not measured."""
    tflm_since: str | None
    """Date of the oldest TFLM that has them; null if every version has."""
    libraries: dict[str, dict[str, LibraryNeed]]
    """Needs of the model "before" and "after" under each kernel library, by profile name."""
    file_bytes: dict[str, int]
    """Size of the file "before" and "after", in bytes."""
    sha256: dict[str, str]
    """SHA-256 of the file "before" and "after", in hexadecimal."""
    timing: dict[str, float]
    """Seconds of wall time by stage and in total; the only field that varies between equal runs."""
    arena: dict[str, ArenaMap]
    """Location and lifetime of every tensor in the head, "before" and "after"."""
    ways: tuple[Way, ...] = ()
    """Size in parts and fed row by row, if the budget is missed."""
    planned_for: PlanLabel | None = None
    """Target and kernels of the plan in the file as it came, if the run is for any; null otherwise."""

    @property
    def saves_nothing(self) -> bool:
        """Return whether the result is the original but for a plan with which no library needs less."""
        before, after = (self.libraries[side] for side in ("before", "after"))
        is_smaller = any(
            need.required < before[name].required or need.head < before[name].head for name, need in after.items()
        )
        is_other = bool(self.rewrites) or self.interface["before"] != self.interface["after"]
        return not (is_smaller or is_other)

    @property
    def within_budget(self) -> bool | None:
        """Return whether the result meets the budget; None without one."""
        return None if self.budget is None or self.answer.fit is None else self.answer.fit.fits


@dataclass(frozen=True)
class MethodUse:
    """The result of one method in a comparison."""

    method: str
    """Name of the method, as --orders or --offsets of compare takes it."""
    bytes: int
    """Bytes: the largest working set of a scheduler, the head of a planner, the sum of shared objects."""
    lower_bound: int
    """Lower bound of all methods, in bytes."""
    optimal: bool
    """True if it is proved that nothing smaller exists."""
    seconds: float
    """Wall time of the method; varies between equal runs."""
    states: int | None
    """Number of states that a scheduler visited; null if not counted."""


@dataclass(frozen=True)
class FusionUse:
    """Fused blocks that solve one problem of msf-CNN."""

    problem: Literal["no fusion", "least RAM", "fewest MACs"]
    """The quantity to minimize."""
    limit: float | None
    """Least RAM: the most MACs, in times those of no fusion. Fewest MACs: the most bytes. Null: none."""
    ends_counted: bool
    """True if the bytes include the input of the first layer and the output of the last."""
    bytes: int | None
    """Peak of the blocks, in bytes; null if nothing meets the limit."""
    macs: int | None
    """MACs of all blocks; null if nothing meets the limit."""
    blocks: tuple[str, ...]
    """Layers that are fused, counted from 0, such as "0-12"."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of methods on one model."""

    model: str | None
    """Name of the file that was read, without its folder; null where bytes were given."""
    kernels: str
    """Kernel profile of the figures."""
    operators: int
    """Number of operators in all subgraphs."""
    schedulers: tuple[MethodUse, ...]
    """Results of the schedulers."""
    planned_order: str
    """Name of the scheduler whose order all planners plan."""
    planners: tuple[MethodUse, ...]
    """Results of the planners in that order."""
    shared_objects: tuple[MethodUse, ...]
    """Results of the strategies for runtimes that cannot place tensors at offsets."""
    fusion_layers: int = 0
    """Convolutions and pools that the model begins with, which msf-CNN fuses; 0 if not requested."""
    fusion: tuple[FusionUse, ...] = ()
    """Results of msf-CNN under each limit of its paper; empty if not requested."""


@dataclass(frozen=True)
class Verification:
    """The result of ``verify``."""

    verdicts: dict[str, Verdict]
    """Verdict by runtime; "file" is that of constants and interface, which need no run."""


@dataclass(frozen=True)
class FrontPoint:
    """One way to run a model: its RAM and its cost."""

    total: int
    """Arena to reserve, in bytes, with TFLM as it comes; of parts, with the planner that codegen writes."""
    head: int
    """The part of it that tensors share over time, in bytes."""
    slowdown: float
    """Added run time with the slowest library, as a fraction; an estimate."""
    macs: int
    """Multiply-accumulates."""
    operators: int
    """Number of operators in all subgraphs."""
    file_bytes: int
    """Size of the file, in bytes."""
    limits: str
    """Options of optimize for this point, as flags; empty for the defaults."""
    stripes: tuple[str, ...]
    """Regions that run in stripes, in words."""
    parts: int = 1
    """Models that run one after another in the arena; the head is then that of the largest."""
    table: int | None = None
    """The total with the planner that codegen writes; null where it writes none by default."""
    most: int | None = None
    """The total with the kernel library that needs the most; null where that is the one that is counted."""
    hop: int | None = None
    """Rows that a call takes of a sliding window, with --slide; null for a call on the whole input."""


@dataclass(frozen=True)
class ChosenPoint:
    """The point that the budget picks; without a budget the smallest. Sentences are empty if no point was requested."""

    objective: Objective
    """The quantity that the budget limits. "total": the whole arena; "head": the part that tensors share over time."""
    budget: int | None
    """Bytes that may be used; null without a budget."""
    point: int
    """Index of the chosen point in the front, from 0: the fastest that fits, or the nearest."""
    fits: bool | None
    """True if it fits the budget, with every library that may be linked; null without one."""
    limits: tuple[str, ...]
    """Limits on the size, in sentences."""
    advice: tuple[Advice, ...]
    """Options that could lower the result further."""
    planner: Planner = "tflm"
    """The planner with which it fits: "tflm", TFLM as it comes, or "table", the one that codegen writes."""


@dataclass(frozen=True)
class Exploration:
    """The Pareto front of RAM against run time, operators, and file size."""

    model: str | None
    """Name of the file that was read, without its folder; null where bytes were given."""
    target: str | None
    """Core or chip of the figures; null: any 32-bit one."""
    kernels: str
    """Kernel profile of the figures."""
    effort: str
    """Effort of the searches, as --effort takes it."""
    before: FrontPoint
    """The original model."""
    points: tuple[FrontPoint, ...]
    """The Pareto front, the smallest total first."""
    searches: int
    """Number of limits on stripes that were searched."""
    choice: ChosenPoint
    """The point that the budget picks."""
    warnings: tuple[str, ...]
    """Warnings about the search, in sentences."""
    as_it_came: AsItCame = RUNS_AS_IT_CAME
    """What TFLM makes of the original; where it cannot load or read it, "before" is said of it after the rewrites that
    mend this alone."""


Record = Report | Analysis | Comparison | Verification | Exploration
"""Records that commands write as JSON."""
SCHEMA_VERSION = "1.0"
"""Of the released format: the number after the dot grows with new fields, the one before it when a field goes or
changes its meaning."""
KINDS: Mapping[str, type[Any]] = {
    each.__name__.lower(): each for each in (Report, Analysis, Comparison, Verification, Exploration)
}
"""Records by the last word of their schema's name."""


def schema_id(kind: str) -> str:
    """The name of a schema, the same for all versions that differ in new fields only."""
    return f"urn:tflite-memopt:schema:{kind}:{SCHEMA_VERSION.partition('.')[0]}"


def to_json(record: Record) -> str:
    """Indented JSON text: the record's fields, and ``$schema`` and ``schema_version``, by which it can be read back."""
    head = {"$schema": schema_id(type(record).__name__.lower()), "schema_version": SCHEMA_VERSION}
    return json.dumps(head | _plain(asdict(record)), indent=2) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)  # JSON has no infinity; a difference is infinite when shapes differ
    return value
