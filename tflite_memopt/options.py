"""What a run is asked to do. Every field is a command-line option of the same name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

Objective = Literal["total", "head"]
Io = Literal["keep", "int8"]
IO: tuple[Io, ...] = ("keep", "int8")
HALOS = ("recompute", "rolling")
RUNTIMES = ("litert", "tensorflow", "tflm")


@dataclass(frozen=True)
class Options:
    """Options of :func:`tflite_memopt.optimize`.

    ``kernels``: kernel profile that the firmware links. ``scheduler``, ``planner``: methods by name.
    ``time_limit``: seconds for each search. ``seed``: of searches and of random inputs. ``samples``: inputs per
    runtime in the equality proof; ``inputs``: an .npz with the user's own. ``verify``: prove equality; without
    it the result is unproved and TFLM's memory is not measured. ``runtimes``: where to prove it.
    ``objective``: what ``budget`` (bytes, None for none) limits: the ``total`` arena that 32-bit firmware must
    reserve, or the ``head`` alone. ``pins``: (tensor name, offset in bytes) pairs that the plan must keep.
    ``rewrite``: change the graph where that lowers the objective; ``allow_approximate``: also where integers are
    requantised once more, so that outputs may differ in the last bits. ``io``: ``keep`` the types of inputs and
    outputs, or remove QUANTIZE and DEQUANTIZE there, so that the model takes and gives the integers itself (``int8``).
    ``cascade``: run regions stripe by stripe where that lowers the objective, with at most ``max_extra_macs`` more
    multiply-accumulates, as a fraction of the model's, and ``max_extra_operators`` more operators (None: any number).
    ``halos``: what may be done with the rows that two stripes need: ``recompute`` them, or keep them (``rolling``).
    """

    kernels: str = "portable"
    scheduler: str = "best_first"
    planner: str = "best"
    time_limit: float = 60.0
    seed: int = 0
    samples: int = 10
    inputs: str | os.PathLike[str] | None = None
    verify: bool = True
    runtimes: tuple[str, ...] = RUNTIMES
    objective: Objective = "total"
    budget: int | None = None
    pins: tuple[tuple[str, int], ...] = ()
    rewrite: bool = True
    allow_approximate: bool = False
    io: Io = "keep"
    cascade: bool = True
    max_extra_macs: float = 0.1
    max_extra_operators: int | None = None
    halos: tuple[str, ...] = HALOS
