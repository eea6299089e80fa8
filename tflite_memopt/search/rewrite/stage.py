r"""The rewriting stage: clean up, then take apart the concatenations that cost memory.

The model takes and gives integers itself: QUANTIZE after inputs and DEQUANTIZE before outputs are removed.

    x (float32) --> QUANTIZE --> q (int8) --> op        =>   x (int8) --> op
    op --> q (int8) --> DEQUANTIZE --> y (float32)      =>   op --> y (int8)

The same for QUANTIZE between integers of one scale, such as uint8 and int8. Exactness: exact for the values that the
integers stand for, ``scale * (q - zero_point)``. It is no rule of the table, because it changes the interface: the
application quantizes, so only ``--io int8`` asks for it. Position and name of every input and output stay, and so do
signatures with their argument names. Metadata of tflite-support needs no change: it names no types, and its
normalization is that of the real values for quantized and float models alike (metadata_schema.fbs,
``NormalizationOptions``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ...errors import ErrorKind, InfeasibleError
from ...model.ir.change import (
    BOUNDARY,
    DEAD_CHANNELS,
    EXACTNESS,
    NOTHING_DECIDED,
    Changed,
    Decision,
    Refusal,
    RewriteUse,
    loosest,
)
from ...model.ir.check import NPU_HAS_ADDRESSES, is_fixed_by_npu
from ...model.ir.copying import copy_model, drop_dead_tensors, share_constants
from ...model.ir.editor import label
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import affine_of
from ...options import SearchOptions
from ...target.kernels.profile import KernelProfile
from ...target.kernels.since import operators_of, runs_on
from ..memory.arrange import Cost, cost_of, estimate_of
from ..memory.work import WorkLimit, instructions, slowest
from .channels import NESTED_CONCATENATION, SPLIT_CHANNELWISE, SPLIT_DEPTHWISE, SPLIT_GROUPED_CONVOLUTION
from .dead_channels import drop_dead_channels
from .engine import AnyRule, Driver
from .folding import (
    ADJOINT_MATMUL,
    CONSTANT_FOLDING,
    FOLDED_BIAS,
    FOLDED_SHAPES,
    NEEDED_WIDENING,
    WIDENED_CONSTANT,
)
from .partial import PARTIAL_CONVOLUTION, PARTIAL_TRANSPOSED_CONVOLUTION
from .pixels import (
    BROADCAST,
    DENSE_PIXELS,
    JOINED_PADDING,
    PLAIN_SLICE,
    REPEATED_PIXELS,
    RESTORED_DILATION,
    SAME_PADDING,
    SKIPPING_CONVOLUTION,
    SLICE_OF_PADDING,
    SUBSAMPLED_SLICE,
)
from .search import SiteLimit, SiteUse, Start, TakenApart, search, sites_in, take_apart
from .shapes import (
    CONSECUTIVE_RESHAPES,
    DEAD_OPERATORS,
    FLATTENED_INPUT,
    IDENTITY,
    LEAN_RESHAPE,
    REDUCED_RESHAPE,
    UNDONE_RESHAPES,
)
from .slices import SLICE_OF_CONCATENATION
from .steps_in_a_loop import roll_up
from .transposes import CONSECUTIVE_TRANSPOSES, LOWERED_TRANSPOSE, transposes_in

CLEAN_UP: tuple[AnyRule, ...] = (
    DEAD_OPERATORS,
    FOLDED_SHAPES,
    NEEDED_WIDENING,
    IDENTITY,
    SUBSAMPLED_SLICE,
    SLICE_OF_PADDING,
    SLICE_OF_CONCATENATION,
    CONSECUTIVE_RESHAPES,
    CONSECUTIVE_TRANSPOSES,
    CONSTANT_FOLDING,
    *RESTORED_DILATION,
    *FOLDED_BIAS,
    SAME_PADDING,
    UNDONE_RESHAPES,
    *ADJOINT_MATMUL,
    *BROADCAST,
    *REPEATED_PIXELS,
)
"""Always an improvement: applied everywhere, before the search."""

WITHOUT_TRANSPOSES: tuple[AnyRule, ...] = (LOWERED_TRANSPOSE, *CLEAN_UP)
"""Applied everywhere after the clean-up, where fewer transposes are left of it."""

SPLITS: tuple[AnyRule, ...] = (
    SPLIT_GROUPED_CONVOLUTION,
    PARTIAL_CONVOLUTION,
    PARTIAL_TRANSPOSED_CONVOLUTION,
    SPLIT_DEPTHWISE,
    *SPLIT_CHANNELWISE,
    NESTED_CONCATENATION,
)
"""Take a concatenation apart: applied where the cost falls."""

AFTER_STRIPES: tuple[tuple[AnyRule, ...], ...] = (
    (SKIPPING_CONVOLUTION,),
    (JOINED_PADDING,),
    (FLATTENED_INPUT, LEAN_RESHAPE, PLAIN_SLICE, REDUCED_RESHAPE),
    (DENSE_PIXELS,),
)
"""The rules in force, in the order in which they are tried.

For the model in stripes: rules that take operators out at the price of products; that make copies views; that leave
less in the tail. Each group is tried on what the one before has made, and kept where that needs less.
"""


_INTEGERS = (DType.INT8, DType.UINT8, DType.INT16)


@dataclass(frozen=True)
class Boundary:
    """Names of the inputs and outputs that are integers now, and of those that could not be, with reasons."""

    changed: tuple[str, ...]
    refused: tuple[Refusal, ...]


def take_integers(model: Model) -> Boundary:
    """Remove what converts at the inputs and outputs of the entry graph; the model is changed.

    The tensors of the old types stay behind without reader and writer.
    """
    graph = model.main
    changed, refused = [], []
    inputs = [tensor for tensor in dict.fromkeys(graph.inputs) if _is_converted_input(tensor)]
    outputs = [tensor for tensor in dict.fromkeys(graph.outputs) if _is_converted_output(tensor)]
    for outer in dict.fromkeys((*inputs, *outputs)):
        found = _at_input(graph, outer) if outer in inputs else _at_output(graph, outer)
        if isinstance(found, str):
            refused.append(Refusal(BOUNDARY, outer.name, found))
            continue
        changed.append(outer.name)
        for converter in found.converters:
            graph.remove_operator(converter)
            if converter.outputs[0] not in (outer, found.inner):
                graph.replace_uses(converter.outputs[0], found.inner)
        _take_place(model, outer, found.inner)
    return Boundary(tuple(changed), tuple(refused))


@dataclass(frozen=True)
class _Conversion:
    """The integers of an input or output, and the operators that make them of it, or it of them."""

    inner: Tensor
    converters: tuple[Operator, ...]


def _is_converted_input(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32 or any(use.operator.name == "QUANTIZE" for use in tensor.uses)


def _is_converted_output(tensor: Tensor) -> bool:
    if tensor.dtype is DType.FLOAT32:
        return True
    writer = tensor.producer
    source = None if writer is None or writer.name != "QUANTIZE" else writer.inputs[0]
    return source is not None and source.dtype is not DType.FLOAT32


def _at_input(graph: Graph, outer: Tensor) -> _Conversion | str:
    converters = tuple(use.operator for use in outer.uses)
    others = [operator for operator in converters if operator.name != "QUANTIZE"]
    if others:
        return f"{_named(others[0])} reads it as {outer.dtype.label}"
    if not converters:
        return "no QUANTIZE reads it"
    if outer in graph.outputs:
        return "the model returns it too"
    inner, *rest = [operator.outputs[0] for operator in converters]
    if any((each.dtype, affine_of(each)) != (inner.dtype, affine_of(inner)) for each in rest):
        return "its QUANTIZE operators have different parameters"
    if any(each in graph.outputs for each in (inner, *rest)):
        return "the model returns its integers as they are"
    return _reason_against(outer, inner) or _Conversion(inner, converters)


def _at_output(graph: Graph, outer: Tensor) -> _Conversion | str:
    writer = outer.producer
    if writer is None or writer.name not in ("DEQUANTIZE", "QUANTIZE"):
        source = "no operator" if writer is None else _named(writer)
        return f"it comes from {source}, not from DEQUANTIZE"
    if outer.uses:
        return f"{_named(outer.uses[0].operator)} reads it as {outer.dtype.label}"
    inner = writer.inputs[0]
    if inner is None or inner.producer is None:
        name = "nothing" if inner is None else f"'{inner.name}'"
        return f"its integers come from no operator: {name} is an input, a constant or a variable"
    if inner in graph.outputs:
        return f"the model returns its integers already, as '{inner.name}'"
    return _reason_against(outer, inner) or _Conversion(inner, (writer,))


def _reason_against(outer: Tensor, inner: Tensor) -> str | None:
    """Return the reason why integers cannot stand for the tensor's values, bytes or shape."""
    if inner.dtype not in _INTEGERS or affine_of(inner) is None:
        return f"'{inner.name}' is {inner.dtype.label}, or not quantized with one scale"
    if inner.nbytes > outer.nbytes:
        return f"it would grow from {outer.dtype.label} to {inner.dtype.label}"
    if inner.shape != outer.shape:
        return f"'{inner.name}' has another shape"
    scales = [found.scale for found in map(affine_of, (outer, inner)) if found is not None]
    if outer.dtype is not DType.FLOAT32 and (len(scales) < 2 or scales[0] != scales[1]):
        # LiteRT rounds once and TFLM twice when it multiplies by a ratio of scales.
        return "the scales on both sides differ, which runtimes round differently"
    return None


def _take_place(model: Model, outer: Tensor, inner: Tensor) -> None:
    """Make ``inner`` what the interface calls by the name of ``outer``, in the graph and in its signatures."""
    graph = model.main
    inner.name, outer.name = outer.name, inner.name

    def exchanged(tensor: Tensor) -> Tensor:
        return inner if tensor is outer else tensor

    graph.inputs = tuple(map(exchanged, graph.inputs))
    graph.outputs = tuple(map(exchanged, graph.outputs))
    for signature in model.signatures or ():
        signature.inputs = tuple((name, exchanged(tensor)) for name, tensor in signature.inputs)
        signature.outputs = tuple((name, exchanged(tensor)) for name, tensor in signature.outputs)


def _named(operator: Operator) -> str:
    return f"{operator.opcode.label} '{label(operator)}'"


_EFFORT = 40_000
"""Operators of the models whose costs the search for concatenations may ask for: some six seconds."""


def rewrite(model: Model, profile: KernelProfile, options: SearchOptions, progress: Callable[[str], None]) -> Changed:
    """Rewrite a model. The clean-up and the boundary change ``model`` itself; the search works on copies.

    No library gets slower than the limit on run time allows, but by what is always an improvement.
    """
    if is_fixed_by_npu(model):
        return Changed(model, (), (Refusal("rewrites", "the graph", NPU_HAS_ADDRESSES),) if options.rewrite else ())
    before = instructions(model, profile)
    cleaned = clean_up(model, profile, options.keep_quantized) if options.rewrite else _widened(model)
    dead = drop_dead_tensors(model)
    dropped = (RewriteUse("dead_tensors", tuple(tensor.name for tensor in dead), "exact", 0),) if dead else ()
    boundary = _boundary(model, options)
    uses = (*cleaned.uses, *dropped, *boundary.uses)
    refused = (*cleaned.refused, *boundary.refused)
    if not options.rewrite:
        return Changed(model, uses, refused)
    now = instructions(model, profile)
    work = WorkLimit({name: max(before[name], now[name]) for name in now}, options.max_slowdown, profile)
    rolled = _rolled(model, profile, options, work)
    model = rolled.model
    changed = replace(rolled, uses=(*uses, *rolled.uses), refused=(*refused, *rolled.refused))
    if options.decision is not None:
        return _replayed(changed, options.decision, options)
    start = start_of(model, SPLITS, options)
    if not start.names:
        return changed
    progress("looking for concatenations to take apart")
    found = _confirmed(model, _search(start, profile, options, work), profile, options)
    return with_sites(replace(changed, model=found.model, refused=(*changed.refused, *found.refused)), found.sites)


def _rolled(model: Model, profile: KernelProfile, options: SearchOptions, work: WorkLimit) -> Changed:
    """The model with unrolled steps in loops, where that needs less within the limit on run time."""
    if not options.loops or (options.decision is not None and not options.decision.is_rolled):
        return Changed(model, (), ())
    looped = copy_model(model)
    uses, refused = roll_up(looped, is_exact=not options.allow_approximate)
    if options.decision is not None and not uses:
        raise InfeasibleError("steps in loops: the model has no unrolled steps that are equal", ErrorKind.DECISION)
    if not uses or not runs_on(operators_of(looped), options.build):
        return Changed(model, (), refused)
    decision = replace(NOTHING_DECIDED, is_rolled=True)
    if options.decision is not None:
        return Changed(looped, uses, refused, decision=decision)
    saved = estimate_of(model, profile, options).need - estimate_of(looped, profile, options).need
    reason = None if saved > 0 else "it does not lower the memory to reserve"
    if not work.is_kept_by(looped):
        added = slowest(work.before, instructions(looped, profile))
        reason = f"a loop would take {added:.0%} more instructions (--max-slowdown {100 * work.extra:.0f})"
    if reason is not None:
        return Changed(model, (), (*refused, *(Refusal(use.rule, use.operators[-1], reason) for use in uses)))
    return Changed(looped, tuple(replace(use, saved_bytes=saved) for use in uses), refused, decision=decision)


def with_sites(changed: Changed, sites: Sequence[SiteUse]) -> Changed:
    """The same, with what is said of the sites that its model has in parts."""
    rounds = (" ".join(str(each.site) for each in sites),) if sites else ()
    decision = replace(changed.decision, sites=(*changed.decision.sites, *rounds))
    return replace(changed, uses=(*changed.uses, *map(site_use, sites)), decision=decision)


def _replayed(cleaned: Changed, decision: Decision, options: SearchOptions) -> Changed:
    """The cleaned-up model with the sites of a decision in parts, round by round."""
    for words in decision.sites:
        model, uses = take_apart(start_of(cleaned.model, SPLITS, options), sites_in(words))
        cleaned = with_sites(replace(cleaned, model=model), uses)
    return cleaned


def _search(start: Start, profile: KernelProfile, options: SearchOptions, work: WorkLimit) -> TakenApart:
    """The sites that lower the estimated cost, within the limit on run time."""
    as_it_is = estimate_of(start.model, profile, options)

    def cost(each: Model) -> Cost:
        return within(work, each, estimate_of(each, profile, options), as_it_is.need)

    limit = SiteLimit(_EFFORT, jobs=options.jobs)
    return search(start, cost, limit)


def start_of(model: Model, rules: Sequence[AnyRule], options: SearchOptions) -> Start:
    """Concatenations may be taken apart by these rules, as far as the options let values change."""
    names = {at: label(op) for at, op in enumerate(model.main.operators) if op.name == "CONCATENATION"}
    return Start(model, rules, EXACTNESS if options.allow_approximate else EXACTNESS[:2], names)


def within(work: WorkLimit, model: Model, cost: Cost, known: int) -> Cost:
    """The cost of a model; of what is beyond the limit on run time, one of more than is ``known``: nobody wants it."""
    if cost.need > known or work.is_kept_by(model):
        return cost
    return replace(cost, need=known + 1)


def _confirmed(model: Model, found: TakenApart, profile: KernelProfile, options: SearchOptions) -> TakenApart:
    """Return the result of the search if it lowers the planner's cost, too."""
    if not found.sites:
        return found
    costs = [cost_of(each, profile, options) for each in (model, found.model)]
    if costs[1] < costs[0]:
        return found
    reason = f"the planner needs {costs[1].need} bytes for it, and {costs[0].need} without"
    refused = (Refusal("search", site.operator, reason) for site in found.sites)
    return TakenApart(model, costs[0], (), (*found.refused, *refused))


def _boundary(model: Model, options: SearchOptions) -> Changed:
    if options.io == "keep":
        return Changed(model, (), ())
    done = take_integers(model)
    drop_dead_tensors(model)
    uses = (RewriteUse(BOUNDARY, done.changed, "exact", 0),) if done.changed else ()
    return Changed(model, uses, done.refused)


def _widened(model: Model) -> Changed:
    """The model itself with what TFLM computes wrongly in float32, whatever else may be changed of it."""
    driver = Driver(model)
    driver.apply_everywhere((NEEDED_WIDENING,))
    return Changed(model, _uses_of(driver), ())


def _uses_of(driver: Driver) -> tuple[RewriteUse, ...]:
    by_rule = groupby(sorted(driver.applied, key=lambda each: each.rule), key=lambda each: each.rule)
    return tuple(RewriteUse(rule, tuple(each.operator for each in group), "exact", 0) for rule, group in by_rule)


def clean_up(model: Model, profile: KernelProfile, keep_quantized: bool = False) -> Changed:
    """The model itself after the rules that are always an improvement of RAM.

    ``keep_quantized``: constants that TFLM dequantizes rightly stay as they are, which takes less flash.
    """
    driver = Driver(model)
    driver.apply_everywhere(CLEAN_UP if keep_quantized else (WIDENED_CONSTANT, *CLEAN_UP))
    if _has_fewer_transposes(model):
        driver.apply_everywhere(WITHOUT_TRANSPOSES)
    uses = _uses_of(driver)
    dead = drop_dead_channels(model, profile.block)
    if dead is not None:
        said = f"{DEAD_CHANNELS}: {dead.removed:,} of {dead.channels:,} channels"
        uses = (*uses, RewriteUse(said, dead.names, "exact", 0))
    shared = share_constants(model)
    if shared:
        uses = (*uses, RewriteUse("share_constants", tuple(tensor.name for tensor in shared), "exact", 0))
    return Changed(model, uses, tuple(driver.refused.values()))


def _has_fewer_transposes(model: Model) -> bool:
    """Tell whether fewer are left when operators read what is behind them."""
    count = transposes_in(model)
    if not count:
        return False
    trial = Driver(copy_model(model), is_trial=True)
    trial.apply_everywhere(WITHOUT_TRANSPOSES)
    return transposes_in(trial.model) < count


def site_use(site: SiteUse) -> RewriteUse:
    """Describe a site for reports."""
    rules = " + ".join(dict.fromkeys(each.rule for each in site.applied))
    operators = (site.operator, *(each.operator for each in site.applied))
    return RewriteUse(rules, operators, loosest(each.exactness for each in site.applied), site.saved_bytes)
