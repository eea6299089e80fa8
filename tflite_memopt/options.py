"""Declare the options of a run, each once: for Python, the command line, the label of a file, and the reference."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from .errors import ErrorKind, OptionError, UsageError
from .kernels.boards import device_named, usual_tflm
from .kernels.profile import KernelProfile
from .kernels.profiles import PROFILES
from .kernels.since import BUILDS, PRESENT, TflmBuild, build_named
from .kernels.targets import TARGETS, profile_for, target_named
from .model.io.plan_label import PlanLabel
from .model.ir.change import Decision, decision_in
from .solvers.graph.limits import SearchLimit
from .solvers.plan.methods import NAMES as PLANNERS
from .values import byte_size, declared_in, fraction, one_build, one_target, option, wrong_types, wrong_values

Objective = Literal["total", "head"]
Io = Literal["keep", "int8"]
Effort = Literal["quick", "normal", "thorough"]
IO: tuple[Io, ...] = get_args(Io)
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
EFFORTS: tuple[Effort, ...] = get_args(Effort)
ALL_PORTS = "*"
"""In place of names of inputs and outputs: all of them."""
CHANNELS_LAST = "channels-last"
"""The word of ``--io`` that sets ``channels_last``."""
RUNTIMES = ("litert", "tflm")
PLAN_EFFORT: Mapping[Effort, float] = {"quick": 10.0, "normal": 20.0, "thorough": 160.0}
"""Work for a plan that may be written; one by which sets of tilings are compared gets less (``in_order.py``).
A search that knows bytes to be below may find less with less work: its offsets then go with the model."""
DEFAULT_LIMIT = 0.1
"""The fraction of run time that may be added; no smaller limit narrows that of the multiply-accumulates."""
WORTH = 0.05
"""The share of the objective that a new operator kind or a newer TFLM must save."""
CHANGED: Mapping[str, Mapping[str, bool]] = {
    "order": {"rewrite": False, "cascade": False},
    "rewrites": {"cascade": False},
    "stripes": {},
    "all": {"every_byte": True},
}
"""Fields of :class:`Options` by the value of ``--changes``."""
_LOST = "parts are re-created in every run, and what they keep would be lost"
NOT_IN_PARTS: Mapping[str, tuple[str, str]] = {
    "ties": ("--tie", _LOST),
    "step": ("--step", _LOST),
    "slide": ("--slide", _LOST),
    "channels_last": (f"--io {CHANNELS_LAST}", "write a model with it, and then that in parts"),
    "replay": ("--replay", "every part has its own decision"),
}
"""Options that exclude parts: the flag, and why."""
_OPTIMIZE, _ALL_RUNS = ("optimize",), ("optimize", "batch")
_SEARCHES, _OF_KERNELS = ("optimize", "explore", "batch"), ("analyze", "compare", "check")


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


def io_word(text: str) -> str:
    """Read a word of ``--io``: ``keep``, ``int8``, ``channels-last``, or ``channels-last=NAME``."""
    word, equals, name = text.partition("=")
    if word not in (*IO, CHANNELS_LAST) or (equals and (word != CHANNELS_LAST or not name)):
        known = ", ".join(f"'{word}'" for word in (*IO, CHANNELS_LAST, f"{CHANNELS_LAST}=NAME"))
        raise UsageError(f"'{text}' is not one of {known}", ErrorKind.SYNTAX)
    return text


def interface_of_words(words: Sequence[str]) -> dict[str, Any]:
    """Return the options that the words of ``--io`` stand for. Raises UsageError for words that exclude each other."""
    types = [word for word in dict.fromkeys(words) if word in IO]
    if len(types) > 1 or ("keep" in types and len(set(words)) > 1):
        raise UsageError(f"--io {' --io '.join(words)}: keep excludes all others", ErrorKind.EXCLUDED)
    turned = [word.partition("=")[2] or ALL_PORTS for word in words if word not in IO]
    return {"io": types[0] if types else "keep", "channels_last": tuple(dict.fromkeys(turned))}


def _fault_of(read: Callable[[], object]) -> str | None:
    """Return what is wrong with a text that an option holds; None for a right one."""
    try:
        read()
    except UsageError as error:
        return str(error)
    return None


def _check_state(options: Options, value: object) -> str | None:
    """Return what a state excludes: ties, and calls of steps or hops."""
    if value and options.io != "keep":
        return "states keep their types: omit --io int8"
    return "states keep their layout: omit --io channels-last" if value and options.channels_last else None


def _check_slide(options: Options, value: str | None) -> str | None:
    if value is not None and options.step:
        return "a window slides or a network steps: omit --step"
    return (None if value is None else _fault_of(lambda: Hop.of(value))) or _check_state(options, value)


def _check_runner(options: Options, value: object) -> str | None:
    if value is None or options.verify:
        return None
    return "a runner is part of the verification, which is switched off"


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options that a candidate depends on, which is all that rewrites, stripes and planner may know of a run."""

    planner: str = option("best", one_of=tuple(PLANNERS))
    effort: Effort = option(
        "normal",
        "Effort of the searches for stripes and for the final plan. It counts work, not time: every machine finds "
        "the same result.",
        commands=_SEARCHES,
        group="Result",
        one_of=EFFORTS,
    )
    jobs: int = option(1, least=1, role="machine")
    seed: int = option(
        0,
        "Seed of random choices; equal seeds give equal results.",
        commands=("verify", "compare"),
        metavar="N",
        read=int,
        least=0,
    )
    objective: Objective = option(
        "total",
        "Size to minimize, and to which --budget applies. total: the whole arena that your firmware reserves. "
        "head: only the part that tensors share over time, for firmware that keeps the rest elsewhere.",
        commands=_SEARCHES,
        group="Result",
        one_of=OBJECTIVES,
    )
    budget: int | None = option(
        None,
        "Available RAM, for example 64K, 64KiB, or 0.5M. The search stops at the fastest result that fits. If "
        "none fits, the smallest file is written and the exit code is 3.",
        commands=_ALL_RUNS,
        group="Result",
        metavar="SIZE",
        read=byte_size,
        least=1,
    )
    ties: tuple[str, ...] = option(
        (),
        "Let this output share the buffer of this input, so that the next run reads it without a copy. Repeat it for "
        "more states.",
        commands=_OPTIMIZE,
        flag="--tie",
        group="Result",
        metavar="OUT:IN",
        repeats=True,
        check=_check_state,
    )
    rewrite: bool = option(True)
    allow_approximate: bool = option(
        False,
        "Allow changes that round integers differently. Outputs may then differ; the report says how much.",
        commands=_SEARCHES,
        group="Limits on changes",
    )
    io: Io = option(
        "keep",
        "keep: inputs and outputs stay as they are. int8: the model takes and returns the integers that it "
        "computes with; your code must quantize inputs and read integer outputs. channels-last: images and sequences "
        "with their channels first, as PyTorch has them, are taken and returned with channels last, as cameras deliver "
        "them, where that saves a TRANSPOSE; =NAME: this input or output alone. Repeat it to combine them. "
        "[default: keep]",
        commands=_SEARCHES,
        group="Result",
        metavar="keep|int8|channels-last[=NAME]",
        read=io_word,
        words=(*IO, CHANNELS_LAST),
        sets=interface_of_words,
        repeats=True,
    )
    channels_last: tuple[str, ...] = option(())
    cascade: bool = option(True)
    max_slowdown: float = option(
        DEFAULT_LIMIT,
        "Limit on added run time, in percent, estimated in instructions of the target's kernels; without a target, of "
        "every measured library. Where a library computes the model wrongly, it counts from the mended model.",
        commands=_ALL_RUNS,
        group="Limits on changes",
        metavar="PERCENT",
        read=fraction,
        shown=f"{100 * DEFAULT_LIMIT:g}",
        least=0,
        most=1,
    )
    loops: bool = option(True)
    keep_quantized: bool = option(
        False,
        "Leave constants quantized that the model dequantizes in each run. Without it they are stored in float32, "
        "which takes more flash and no RAM. Those that TFLM cannot dequantize rightly are stored in float32 all the "
        "same.",
        commands=_SEARCHES,
        group="Limits on changes",
    )
    replay: str | None = option(
        None,
        "Repeat the decision of another run without a search: the text of the decision in its report, or the .tflite "
        "that it wrote, whose target, kernels, and options apply unless given here.",
        commands=_OPTIMIZE,
        group="Result",
        role="apart",
        metavar="TEXT|FILE",
        check=lambda options, _: _fault_of(lambda: options.decision),
    )
    tflm: str | None = option(
        None,
        "TFLM of the firmware: a packaged copy such as zephyr-4.2, arduino-2023, edge-impulse, or esphome, or the day "
        "of its source, such as 2025-11-10. A model that it cannot run is refused, newer operators are not used, and "
        "the size to reserve is for this build. 'tflite-memopt targets' lists all. [default: Arduino's for an Arduino "
        "board, otherwise the latest TFLM, built by its makefile]",
        commands=_SEARCHES,
        group="Target",
        metavar="NAME|DAY",
        read=one_build,
        words=tuple(BUILDS),
        check=lambda options, _: _fault_of(lambda: options.build),
    )

    @cached_property
    def build(self) -> TflmBuild:
        """The build of TFLM that the firmware links."""
        return build_named(self.tflm or PRESENT.name)

    @cached_property
    def decision(self) -> Decision | None:
        """The decision to carry out in place of a search; None for a search."""
        return None if self.replay is None else decision_in(self.replay)

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


@dataclass(frozen=True, kw_only=True)
class Options(SearchOptions):
    """Options of :func:`tflite_memopt.optimize`. Raises UsageError, naming the field, for a value that is none.

    Most are flags of ``optimize`` and mean the same there (docs/reference.md). For Python alone, or in another form:

    ``planner``: method by name. ``jobs``: processes that share the searches' work, on Linux; the result is the same,
    and comes sooner where there are as many cores. ``max_slowdown``: a fraction from 0 to 1; as many
    multiply-accumulates may be added, and 0.1 in any case. ``rewrite``, ``cascade``, ``every_byte``: what ``--changes``
    allows: changes of the graph, stripes, and what saves little. ``loops``: also write stripes as one loop, whose
    operators exist once.
    ``channels_last``: names of inputs and outputs, ``*`` for all. ``replay``: the text of a decision
    (``ir/change.py``). ``verify``: False for ``--no-verify``. ``runtimes``: where to run both models. ``runner``: a
    command that runs models on the user's own kernels as well (docs/exactness.md). ``samples``: inputs per runtime,
    extremes first. ``device``: set with ``target``, which then is the core of the chip or board.
    """

    target: str | None = option(
        None,
        "Your board, chip, or core, such as pico, nrf52840, or cortex-m4; 'tflite-memopt targets' lists all. "
        "esp32s3@esp-nn-1.2.3 also names the release of esp-nn. It determines the kernels, the RAM, and the size to "
        "reserve, exact where the kernels were measured. [default: any]",
        commands=(*_SEARCHES, *_OF_KERNELS, "codegen"),
        group="Target",
        role="apart",
        metavar="NAME",
        read=one_target,
        words=tuple(TARGETS),
    )
    kernels: str | None = option(
        None,
        "Kernel library that your firmware links, if it is not the usual one of your --target. portable: correct with "
        "any. A file made for one library may compute wrongly with another. [default: the usual one of --target; "
        "portable without a target]",
        commands=(*_SEARCHES, *_OF_KERNELS),
        group="Target",
        role="apart",
        one_of=tuple(PROFILES),
    )
    samples: int | None = option(
        None,
        "Number of inputs to compare on every runtime: extremes, then random ones. [default: 10 to 30, fewer for "
        "larger models; 30 if no proof covers all inputs]",
        commands=("verify",),
        role="check",
        metavar="N",
        read=int,
        least=1,
    )
    inputs: str | os.PathLike[str] | None = option(
        None,
        "Your own inputs for the verification: a NumPy file with one array per input, by name.",
        commands=("optimize", "explore", "verify"),
        group="Verification",
        role="check",
        metavar="X.npz",
        read=Path,
    )
    verify: bool = option(
        True,
        "Write the result without a proof or a run. TFLM's own measurements are then missing.",
        commands=_ALL_RUNS,
        flag="--no-verify",
        group="Verification",
        role="check",
        sets=lambda no_verify: {"verify": not no_verify},
    )
    runtimes: tuple[str, ...] = option(
        RUNTIMES,
        "Runtime to use. [default: both]",
        commands=("verify",),
        flag="--runtime",
        role="check",
        one_of=RUNTIMES,
        sets=lambda runtime: {} if runtime is None else {"runtimes": (runtime,)},
    )
    runner: str | os.PathLike[str] | None = option(
        None,
        "Command that runs models on your own kernels, a board, or an emulator, to verify B.tflite there as well; "
        "codegen --write-runner writes the source of one.",
        commands=("verify",),
        role="check",
        metavar="COMMAND",
        check=_check_runner,
    )
    step: bool = option(
        False,
        "Write one time step of a recurrent network, which takes one frame per call and keeps its state in the arena.",
        commands=_OPTIMIZE,
        group="Result",
        check=_check_state,
    )
    slide: str | None = option(
        None,
        "For a window that moves along a signal: write a model that takes the next HOP rows of the window per call, "
        "keeps what windows share, and gives the outputs of the window that ends there.",
        commands=_OPTIMIZE,
        group="Result",
        metavar="HOP[,input=NAME]",
        check=_check_slide,
    )
    every_byte: bool = option(
        False,
        "Changes that are allowed. order: only the operator order and the tensor offsets. rewrites: also the "
        "graph. stripes: also run groups of layers a few rows at a time; new operator kinds, or a newer TFLM, must "
        "save 5 % or meet the budget. all: use them for any saving.",
        commands=_ALL_RUNS,
        flag="--changes",
        group="Limits on changes",
        words=tuple(CHANGED),
        sets=lambda changes: CHANGED[changes],
        shown="stripes",
    )
    device: str | None = option(None, role="machine", compare=False)

    def __post_init__(self) -> None:
        for name, advice in wrong_types(self):
            raise OptionError(name, getattr(self, name), advice)
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
        for name, advice in wrong_values(self):
            raise OptionError(name, getattr(self, name), advice)

    @property
    def profile(self) -> KernelProfile:
        """The kernels and the layout of structures that plans and figures are for."""
        device = None if self.device is None else device_named(self.device)
        return profile_for(self.target, self.kernels, None if device is None else device.chip.name, self.build)

    @cached_property
    def search(self) -> SearchOptions:
        """The part of the options that a candidate depends on."""
        return SearchOptions(**{field.name: getattr(self, field.name) for field in fields(SearchOptions)})


DECLARED = declared_in(Options)
"""What is declared of each option, by name."""


def options_used(options: Options) -> dict[str, Any]:
    """Return the options that determine a result, by name, as JSON has them; files without their folder."""
    return {
        name: _plain(getattr(options, name), declared.read is Path)
        for name, declared in DECLARED.items()
        if declared.role != "machine"
    }


def changed_options(used: Mapping[str, Any]) -> dict[str, Any]:
    """Return those that are not the default ones."""
    default = options_used(Options())
    return {name: value for name, value in used.items() if name in default and value != default[name]}


def labeled_options(options: Options) -> dict[str, Any]:
    """Return those that the label of a file has: they differ from the defaults and decide its contents."""
    changed = changed_options(options_used(options))
    if usual_tflm(options.device) not in (None, options.tflm):
        changed["tflm"] = options.tflm  # even the default one: the board would choose another one
    return {name: value for name, value in changed.items() if DECLARED[name].role == "file"}


def as_labeled(options: Options, label: PlanLabel, given: Collection[str] = ()) -> Options:
    """Return the options with which a file was made, but for those that differ from the default or are ``given``.

    Those of its verification stay. Raises UsageError for an option that this version does not know.
    """
    strange = [name for name in label.options if name not in DECLARED or DECLARED[name].role != "file"]
    if strange:
        raise UsageError(f"the file was made by version {label.version} with unknown options: {', '.join(strange)}")
    default = Options()
    own: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in label.options.items()
        if name not in given and getattr(options, name) == getattr(default, name)
    }
    if options.target is None and options.kernels is None:
        own |= {"target": label.target, "kernels": label.kernels, "device": label.device}
    try:
        return replace(options, **own)
    except OptionError as error:
        raise UsageError(
            f"the file's label has no valid {error.field} ({error.advice}): optimize the model again"
        ) from error


def options_text(changed: Mapping[str, Any]) -> str:
    """Return options in words, such as ``effort="quick", cascade=false``; "the default options" without any."""
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in changed.items()) or "the default options"


def _plain(value: Any, is_file: bool) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if value is not None and is_file:
        return Path(value).name
    return os.fspath(value) if isinstance(value, os.PathLike) else value
