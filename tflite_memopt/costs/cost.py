"""The RAM of a model on a target, as it stands and after optimization, for a search over networks.

.tflite, Keras, PyTorch  ->  a file  ->  known?  ->  estimate.py, or a run without verification  ->  a cost, kept
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from ..kernels.mend import kept_forms, mend
from ..memory.figures import StepUse, least_need, memory_use
from ..memory.file import label_of_others, read_planned
from ..memory.layout import memory_layout
from ..memory.reserve import reserve
from ..memory.work import WorkLimit, instructions_to_compare, slowest
from ..model.io import offline_plan
from ..model.io.files import Source, load
from ..model.ir.copying import copy_model
from ..options import DEFAULT_LIMIT, Io, Options
from ..report.warnings import of_former_plan
from ..run.pipeline import optimize
from .estimate import estimated_head
from .frameworks import file_of, is_module
from .store import Store, default_store

Depth = Literal["estimate", "full"]


@dataclass(frozen=True)
class NetworkCost:
    """What a model costs on a target, in bytes, instructions, and multiply-accumulates of one invocation."""

    ram: int
    """The arena that stock TFLM needs for the model as it stands."""
    optimized: int
    """The arena after optimization."""
    bound: int
    """A proved lower bound of any optimized form in one file."""
    macs: int
    """Multiply-accumulates of the model as it stands."""
    slowdown: float
    """Instructions after optimization, per instruction before; at most 1 + limit. Of an estimate: that limit."""
    flash: int
    """The file after optimization; of an estimate, the file as it stands."""
    binds: str
    """The operator with the largest working set after optimization, by kind and output; of an estimate, before."""
    is_exact: bool
    """True: as ``optimize`` prints it for this file. False: an estimate, whose error docs/cost.md gives."""
    fits: bool | None = None
    """Whether ``optimized`` is within the budget; None without one."""
    warning: str | None = None
    """Of a file that was planned for a target, where none is named here: ``optimized`` may be smaller with it."""


def cost(
    model: Source | Any,
    target: str | None = None,
    *,
    depth: Depth = "full",
    budget: int | None = None,
    io: Io = "keep",
    limit: float = DEFAULT_LIMIT,
    shape: Sequence[int] | None = None,
    cache: str | Path | None = "default",
) -> NetworkCost:
    """Return what a model costs; nothing is written or verified.

    ``model``: a .tflite as a path or bytes, as it is; a Keras model or a PyTorch module, of which the structure alone
    counts, in int8 with a scale for each channel (:mod:`tflite_memopt.costs.structure`). ``shape``: of a PyTorch
    module's input. ``target``, ``io``, ``limit``: as ``target``, ``io``, ``max_slowdown`` of :class:`Options`.
    ``depth``: "full" is what ``optimize`` prints, without verification; "estimate" takes a fraction of a second.
    ``budget``: bytes that the arena may take; the full answer looks for a form within it.
    ``cache``: a file of earlier costs, which processes may share; None for none, the default one in the user's cache.
    The key is the file's content, or a network's structure whatever its weights. Raises as :func:`optimize`.
    """
    store = Store(default_store() if cache == "default" else None if cache is None else Path(cache))
    options = Options(target=target, io=io, max_slowdown=limit, budget=budget, verify=False)
    data = file_of(model, shape, store) if is_module(model) else load(model)[0]
    key = f"{depth} {target} {io} {limit} {budget if depth == 'full' else None} {sha256(data).hexdigest()}"
    known = store[key]
    if known is None:
        found = _found(data, options, depth)
        store[key] = json.dumps(asdict(found)).encode()
    else:
        found = NetworkCost(**json.loads(known))
    return _judged(found, budget)


def cost_under(data: bytes, options: Options, depth: Depth) -> NetworkCost:
    """Return what the .tflite costs under any options of a run; nothing is kept. Raises as :func:`optimize`."""
    return _judged(_found(data, options, depth), options.budget)


def _found(data: bytes, options: Options, depth: Depth) -> NetworkCost:
    return _full(data, options) if depth == "full" else _estimate(data, options)


def _judged(found: NetworkCost, budget: int | None) -> NetworkCost:
    return found if budget is None else replace(found, fits=found.optimized <= budget)


def _full(data: bytes, options: Options) -> NetworkCost:
    result = optimize(data, options)
    before, after = result.report.before, result.report.after
    return NetworkCost(
        ram=before.required_for_target,
        optimized=after.required_for_target,
        bound=result.report.least_as_one,
        macs=before.macs,
        slowdown=slowest(before.instructions, after.instructions),
        flash=len(result.model),
        binds=_said(after.peak),
        is_exact=True,
        warning=next(of_former_plan(result.report.planned_for), None),
    )


def _estimate(data: bytes, options: Options) -> NetworkCost:
    model, profile = read_planned(data), options.profile
    before = memory_use(model, memory_layout(model, profile), offline_plan.decode(model) or {}, profile)
    mended = mend(copy_model(model), profile, kept_forms(model, profile))
    left = WorkLimit(instructions_to_compare(model, profile), options.max_slowdown, profile).left_for(mended.model)
    estimate = reserve(mended.model, estimated_head(mended.model, profile, left), profile).required
    return NetworkCost(
        ram=before.required_for_target,
        optimized=estimate if mended.uses else min(estimate, before.required_for_target),
        bound=least_need(model, profile, options.objective),
        macs=before.macs,
        slowdown=options.max_slowdown,
        flash=len(data),
        binds=_said(before.peak),
        is_exact=False,
        warning=next(of_former_plan(label_of_others(model, profile)), None),
    )


def _said(step: StepUse | None) -> str:
    return "" if step is None else f"{step.operator} '{step.output}'"
