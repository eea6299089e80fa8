"""Define and validate the options of a run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Literal, get_args

from .errors import ErrorKind, OptionError, UsageError
from .kernels.boards import device_named, usual_tflm
from .kernels.profile import KernelProfile
from .kernels.profiles import PROFILES
from .kernels.since import PRESENT, TflmBuild, build_named
from .kernels.targets import profile_for, target_named
from .model.ir.change import Decision, decision_in
from .solvers.graph.limits import SearchLimit
from .solvers.plan.methods import NAMES as PLANNERS

Objective = Literal["total", "head"]
Io = Literal["keep", "int8"]
Effort = Literal["quick", "normal", "thorough"]
IO: tuple[Io, ...] = get_args(Io)
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
EFFORTS: tuple[Effort, ...] = get_args(Effort)
ALL_PORTS = "*"
"""In place of names of inputs and outputs: all of them."""
RUNTIMES = ("litert", "tflm")
PLAN_EFFORT: Mapping[Effort, float] = {"quick": 20.0, "normal": 80.0, "thorough": 160.0}
"""Work for the plan that is written, where one that only judges gets 1: it is made once, and its bytes count.
A wider limit never ends worse: so its plan is no worse than that of the draft by which stripes were chosen."""
DEFAULT_LIMIT = 0.1
"""The fraction of run time that may be added; no smaller limit narrows that of the multiply-accumulates."""


_TEXT, _MAYBE_TEXT, _NUMBER = (str,), (str, type(None)), (int, float)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("planner", "effort", "objective", "io"), _TEXT),
    **dict.fromkeys(("target", "kernels", "replay", "slide", "tflm"), _MAYBE_TEXT),
    **dict.fromkeys(("inputs", "runner"), (str, os.PathLike, type(None))),
    **dict.fromkeys(("max_slowdown",), _NUMBER),
    **dict.fromkeys(("jobs", "seed"), (int,)),
    **dict.fromkeys(("budget", "samples"), (int, type(None))),
}
"""Of options that are not iterated over; those of the command line have them already."""


@dataclass(frozen=True)
class Hop:
    """``rows`` of an ``input`` that a call takes; ``window``: all its rows, where that is said."""

    rows: int
    input: str | None = None
    window: int | None = None

    @property
    def calls(self) -> int:
        """Calls from the first one on that give all rows of a window; 1 where that is not said."""
        return 1 if self.window is None else -(-self.window // self.rows)

    def __str__(self) -> str:
        window = "" if self.window is None else f"/{self.window}"
        return f"{self.rows}{window}" + ("" if self.input is None else f",input={self.input}")

    @classmethod
    def of(cls, text: str) -> Hop:
        """Read ``HOP``, ``HOP,input=NAME``, or ``HOP/WINDOW`` as labels have it. Raises UsageError for other texts."""
        count, comma, rest = text.partition(",")
        key, _, name = rest.partition("=")
        rows, slash, window = count.partition("/")
        if not rows.isdecimal() or not int(rows) or (slash and not window.isdecimal()):
            raise UsageError(f"'{count}' is no number of rows from 1, such as 2", ErrorKind.SYNTAX)
        if comma and (key != "input" or not name or ",input=" in name):
            raise UsageError(f"'{rest}' names no input; one moves, as in 2,input=NAME", ErrorKind.SYNTAX)
        return cls(int(rows), name or None, int(window) if slash else None)


@dataclass(frozen=True)
class SearchOptions:
    """The options that a candidate depends on, which is all that rewrites, stripes and planner may know of a run.

    As in :class:`Options`, with ``decision`` and ``build`` read from their texts.
    """

    effort: Effort = "normal"
    jobs: int = 1
    seed: int = 0
    planner: str = "best"
    objective: Objective = "total"
    budget: int | None = None
    ties: tuple[str, ...] = ()
    io: Io = "keep"
    channels_last: tuple[str, ...] = ()
    rewrite: bool = True
    allow_approximate: bool = False
    cascade: bool = True
    max_slowdown: float = DEFAULT_LIMIT
    loops: bool = True
    keep_quantized: bool = False
    decision: Decision | None = None
    build: TflmBuild = PRESENT

    def meets_budget(self, need: int) -> bool:
        """Return whether there is a budget, and ``need`` bytes of the objective are within it."""
        return self.budget is not None and need <= self.budget

    @property
    def max_extra_macs(self) -> float:
        """The limit on added multiply-accumulates, as a fraction."""
        return max(DEFAULT_LIMIT, self.max_slowdown)

    def search_limit(self, effort: float = 1.0) -> SearchLimit:
        """Return the limit of a search: this part of its own limit."""
        return SearchLimit(seed=self.seed, effort=effort)

    def plan_limit(self, part: float = 1.0) -> SearchLimit:
        """Return the limit of the planner for the plan that is written, or this part of it."""
        return self.search_limit(PLAN_EFFORT[self.effort] * part)


@dataclass(frozen=True)
class Options:
    """Options of :func:`tflite_memopt.optimize`. Raises UsageError, naming the field, for a value that is none.

    ``target``: core, chip or board that the firmware is for, None to leave it open; the core stays, and ``device``
    keeps the name of the chip or board, whose RAM the report compares. ``kernels``: kernel profile that the firmware
    links, None for the target's usual one, or for ``portable`` without a target.
    ``planner``: method by name.
    ``effort``: how much the search for stripes looks at, and how much work the final plan may take; it counts work, so
    that a result is the same on every machine.
    ``jobs``: processes that share the searches' work, on Linux; the result is the same, bytes and report, and comes
    sooner where there are as many cores.
    ``seed``: of searches and random inputs. ``samples``: inputs per runtime of the verification, extremes first; None:
    10 to 30, as many as a tenth of a run's work allows, and 30 where no proof covers all inputs. ``inputs``: an .npz
    with the user's own. ``verify``: prove equality, and run both models; without it the result is unproved and TFLM's
    memory is not measured. ``runtimes``: where to run them. ``runner``: a command that runs models on the user's own
    kernels as well (docs/exactness.md).
    ``objective``: the quantity that ``budget`` (bytes, None for none) limits: the ``total`` arena that 32-bit firmware
    must reserve, or the ``head`` alone.
    ``ties``: ``OUTPUT:INPUT`` texts: an output that lies at the place of the input that it is in the next invocation.
    ``step``: write one time step of a recurrent network, which takes a frame and keeps its state in the arena.
    ``slide``: write one hop of a window that moves along a signal, as :class:`Hop` reads it; it keeps the rest.
    ``rewrite``: change the graph where that lowers the objective; ``allow_approximate``: also where integers are
    rounded once more, so that outputs differ. ``io``: ``keep`` the types of inputs and
    outputs, or remove QUANTIZE and DEQUANTIZE there, so that the model takes and gives the integers itself (``int8``).
    ``channels_last``: names of inputs and outputs with channels first that the model takes and gives with channels
    last, ``*`` for all of them where that saves a TRANSPOSE.
    ``cascade``: run regions stripe by stripe where that lowers the objective. ``max_slowdown``: how much longer the
    model may run than before, as a fraction from 0 to 1, estimated in instructions (``memory/work.py``) of each
    measured library that the firmware may link; as many multiply-accumulates may be added, and 0.1 in any case.
    ``every_byte``: also take an operator kind that the model does not have, or a newer TFLM, where it saves less than
    ``attempts.WORTH`` of the objective and the budget does not need it. ``loops``: also write stripes as one loop,
    whose operators exist once. ``keep_quantized``: leave constants quantized that the model dequantizes in each run,
    where TFLM does that rightly: less flash, more RAM. ``replay``: a decision of another run (``ir/change.py``), which
    is carried out in place of a search. ``tflm``: the build of TFLM that the firmware links, as
    ``kernels.since.build_named`` takes it: models that need what it lacks are refused, nothing that it lacks is used,
    and the arena is counted with its structures. None: the one that people flash on the board, or TFLM's makefile's.
    """

    target: str | None = None
    kernels: str | None = None
    planner: str = "best"
    effort: Effort = "normal"
    jobs: int = 1
    seed: int = 0
    samples: int | None = None
    inputs: str | os.PathLike[str] | None = None
    verify: bool = True
    runtimes: tuple[str, ...] = RUNTIMES
    runner: str | os.PathLike[str] | None = None
    objective: Objective = "total"
    budget: int | None = None
    ties: tuple[str, ...] = ()
    step: bool = False
    slide: str | None = None
    rewrite: bool = True
    allow_approximate: bool = False
    io: Io = "keep"
    channels_last: tuple[str, ...] = ()
    cascade: bool = True
    max_slowdown: float = DEFAULT_LIMIT
    every_byte: bool = False
    loops: bool = True
    keep_quantized: bool = False
    replay: str | None = None
    tflm: str | None = None
    device: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, types in _TYPES.items():
            if not isinstance(getattr(self, name), types):
                said = " or ".join("None" if each is type(None) else each.__name__ for each in types)
                raise OptionError(name, getattr(self, name), f"must be of type {said}")
        if self.target is not None:
            try:
                device, target = device_named(self.target), target_named(self.target).name
                known = None if self.device is None else device_named(self.device)
                if known is not None and self.target == target and known.target == target.partition("@")[0]:
                    device = known  # the options of a chip once more, whose target has the name of another chip
                object.__setattr__(self, "device", None if device is None else device.name)
                object.__setattr__(self, "target", target)
            except UsageError as error:
                raise OptionError("target", self.target, str(error)) from error
        if self.tflm is None:
            object.__setattr__(self, "tflm", usual_tflm(self.device) or PRESENT.name)
        wrong = next(self._faults(), None)
        if wrong is not None:
            field, advice = wrong
            raise OptionError(field, getattr(self, field), advice)

    @property
    def profile(self) -> KernelProfile:
        """The kernels and the layout of structures that plans and figures are for."""
        device = None if self.device is None else device_named(self.device)
        return profile_for(self.target, self.kernels, None if device is None else device.chip.name, self.build)

    @cached_property
    def build(self) -> TflmBuild:
        """The build of TFLM that the firmware links."""
        return build_named(self.tflm or PRESENT.name)

    @cached_property
    def decision(self) -> Decision | None:
        """Return the decision to carry out in place of a search; None for a search."""
        return None if self.replay is None else decision_in(self.replay)

    @cached_property
    def search(self) -> SearchOptions:
        """The part of the options that a candidate depends on."""
        return SearchOptions(**{each.name: getattr(self, each.name) for each in fields(SearchOptions)})

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Yield each wrong option with its valid values."""
        given = () if self.kernels is None else (("kernels", PROFILES),)
        for option, known in (
            *given,
            ("planner", PLANNERS),
            ("objective", OBJECTIVES),
            ("io", IO),
            ("effort", EFFORTS),
        ):
            if getattr(self, option) not in known:
                yield option, f"choose one of {', '.join(known)}"
        if not _is_choice(self.runtimes, RUNTIMES):
            yield "runtimes", f"choose one or more of {', '.join(RUNTIMES)}"
        for option, least in (("seed", 0), ("jobs", 1)):
            if not least <= getattr(self, option) < math.inf:
                yield option, f"must be at least {least}"
        for option, least in (("budget", 1), ("samples", 1)):
            if getattr(self, option) is not None and getattr(self, option) < least:
                yield option, f"must be at least {least}, or None"
        yield from self._other_faults()

    def _other_faults(self) -> Iterator[tuple[str, str]]:
        yield from _fault_in("tflm", lambda: self.build)
        yield from _fault_in("replay", lambda: self.decision)
        if not 0 <= self.max_slowdown <= 1:
            yield "max_slowdown", "must be a fraction from 0 to 1; 0.1 stands for 10 %"
        if self.slide is not None:
            yield from _fault_in("slide", lambda: Hop.of(self.slide or ""))
            if self.step:
                yield "slide", "a window slides or a network steps: omit --step"
        for name in ("ties", "step", "slide") if self.io != "keep" else ():
            if getattr(self, name):
                yield name, "states keep their types: omit --io int8"
        if not isinstance(self.channels_last, tuple) or not all(isinstance(each, str) for each in self.channels_last):
            yield "channels_last", "must be a tuple of names"
        for name in ("ties", "step", "slide") if self.channels_last else ():
            if getattr(self, name):
                yield name, "states keep their layout: omit --io channels-last"
        if self.runner is not None and not self.verify:
            yield "runner", "a runner is part of the verification, which is switched off"


def _fault_in(field: str, read: Callable[[], object]) -> Iterator[tuple[str, str]]:
    """Yield the option whose text is wrong."""
    try:
        read()
    except UsageError as error:
        yield field, str(error)


def _is_choice(names: Collection[str], known: Collection[str]) -> bool:
    return bool(names) and not isinstance(names, str) and set(names) <= set(known)
