"""The RAM of a model as one number: for training loops and searches for architectures."""

from __future__ import annotations

from .io import offline_plan
from .io.files import Source, load
from .io.writer import write_model
from .ir.model import Model
from .kernels.targets import profile_for
from .memory.figures import memory_use
from .memory.file import read_planned
from .memory.layout import memory_layout
from .options import Options
from .pipeline import optimize


def ram_of(
    model: Source | Model, target: str | None = None, kernels: str | None = None, optimized: bool = False
) -> int:
    """Return the bytes of the arena that firmware must reserve for a model on the target, or on 32 bits without one.

    ``model``: a .tflite as bytes or as a path, or a model in memory, which stays as it is. As it stands by default: in
    the order and with the plan of its file, as stock TFLM runs it. ``optimized``: after :func:`optimize` with its
    default options, without verification. Raises as :func:`optimize`.
    """
    source = write_model(model) if isinstance(model, Model) else model
    if optimized:
        options = Options(target=target, kernels=kernels, verify=False)
        return optimize(source, options).report.after.required_for_target
    profile, read = profile_for(target, kernels), read_planned(*load(source))
    planned = offline_plan.decode(read) or {}
    return memory_use(read, memory_layout(read, profile), planned, profile).required_for_target
