"""Compute the RAM of a model as one number, for training loops and architecture searches."""

from __future__ import annotations

from .errors import UsageError
from .io import offline_plan
from .io.files import Source, load
from .io.writer import write_model
from .ir.model import Model
from .kernels.since import PRESENT
from .memory.file import read_planned
from .memory.reserve import needs_by_library
from .options import Options
from .pipeline import optimize
from .report.answer import Planner


def ram_of(
    model: Source | Model,
    target: str | None = None,
    kernels: str | None = None,
    optimized: bool = False,
    tflm: str = PRESENT.name,
    planner: Planner = "tflm",
) -> int:
    """Return the bytes of the arena that firmware must reserve for a model on the target.

    ``model``: a .tflite as bytes or as a path, or a model in memory, which stays as it is. As it stands by default: in
    the order and with the plan of its file, as stock TFLM runs it. Without a target: with TFLM's own kernels on 32
    bits; other libraries may need more (:func:`analyze` has them all). ``optimized``: after :func:`optimize` with its
    default options, without verification. ``tflm``: the build of TFLM. ``planner``: TFLM as it comes, or the "table"
    that ``codegen`` writes. Raises as :func:`optimize`, and UsageError for a table where ``codegen`` writes none by
    default.
    """
    source = write_model(model) if isinstance(model, Model) else model
    options = Options(target=target, kernels=kernels, verify=False, tflm=tflm)
    if optimized:
        needs = optimize(source, options).report.libraries["after"]
    else:
        read = read_planned(*load(source))
        needs = needs_by_library(read, offline_plan.decode(read) or {}, options.profile)
    need = next(iter(needs.values()))
    if planner == "tflm":
        return need.required
    if need.table is None:
        raise UsageError("codegen writes a plan table only for a target whose kernels were measured: name the target")
    return need.table
