"""Models that are called again and again: one step of a recurrent network, one hop of a window, some rows of an image.

They are made of the whole, keep tied states in the arena, and are proved and verified equal to it over calls. The first
part of a program takes rows (``parts/fed.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from ..errors import ErrorKind, UnsupportedModelError, UsageError
from ..evidence.equivalence.runner import Interpreters
from ..evidence.equivalence.subject import FailedVerificationError, Subject
from ..evidence.equivalence.verification import Verified, infer_shapes, verify_streamed
from ..evidence.proof import Kind, Proof, Status, prove_streamed
from ..memory.arrange import estimate_of
from ..memory.problems import tie_positions, with_ties
from ..memory.work import instructions, slowest
from ..model.analysis.side_effects import has_side_effects
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from ..model.ir.change import ONE_HOP, ONE_STEP, Exactness, RewriteUse
from ..model.ir.copying import copy_model
from ..model.ir.editor import label
from ..model.ir.model import Model
from ..operators.rows import is_image
from ..options import Hop, Options
from ..report.model import SlideUse
from ..report.words import short_name
from ..search.cascade.slide import Slid, Sliding, keepable, slid, sliding
from ..search.rewrite.in_one_row import lay_in_one_row
from ..search.rewrite.one_step import one_step
from ..search.rewrite.sequences_along_h import image_given, sequences_along_h
from ..search.rewrite.stage import clean_up
from .candidate import Progress

NOT_EQUAL = "calls of one step do not compute what the model does"


@dataclass(frozen=True)
class InCalls:
    """The model of one call as it comes, ``data``, of the ``whole``, which computes ``calls`` steps at once.

    ``slide``: of a sliding window, whose ``whole`` computes one window, and the value of its ``option``, with the rows
    of the window; None for one step.
    """

    whole: bytes
    data: bytes
    ties: tuple[str, ...]
    calls: int
    exactness: Exactness
    slide: SlideUse | None = None
    option: str | None = None

    @property
    def kind(self) -> Kind:
        """What a call is of the whole."""
        return "step" if self.slide is None else "hop"

    @property
    def uses(self) -> tuple[RewriteUse, ...]:
        """The rewrite by which it was made, with the states."""
        return (RewriteUse(ONE_STEP if self.slide is None else ONE_HOP, self.ties, self.exactness, 0),)

    def proof_of(self, result: Model) -> Mapping[str, Proof]:
        """Compare a result, with its ties, with the whole; nothing for steps that approximate it."""
        if self.exactness == "approximates":
            return {}
        ties = tie_positions(result, self.ties)
        return {"step": prove_streamed(self.kind, read_model(self.whole), result, ties)}

    def verified(
        self,
        verification: Verified,
        written: bytes,
        proofs: Mapping[str, Proof],
        options: Options,
        progress: Progress,
        running: Interpreters | None,
    ) -> Verified:
        """The verification of a result with the verdicts of sequences, and TFLM's figures of the whole.

        Raises FailedVerificationError where a sequence of calls computes something else.
        """
        # A first step that the converter computed from zeros may have other signs of zero.
        is_off = "step" in proofs and proofs["step"].status is Status.REASSOCIATED
        exactness = "reassociates" if is_off else self.exactness
        ties = tie_positions(read_model(written), self.ties)
        subject = Subject(self.whole, written, exactness, ties=ties)
        results = verify_streamed(self.kind, subject, options, progress, running)
        for runtime, each in results.items():
            if each.verdict.equal is False:
                raise FailedVerificationError(f"not equal on {runtime}, call by call: {each.verdict.reason}", runtime)
        verdicts = {runtime: each.verdict for runtime, each in results.items()}
        measured = results["tflm"].facts if "tflm" in results else {}
        before = {**(measured or verification.tflm["before"])}
        return replace(verification, verdicts=verdicts, tflm={**verification.tflm, "before": before})


def in_steps(data: bytes, model: Model, options: Options) -> InCalls:
    """Make the model of one step; ``data``: the file of ``model``.

    Raises UnsupportedModelError for a model that has no such step, FailedVerificationError for one that is not equal.
    """
    made = one_step(model, not options.allow_approximate)
    _check_ties(options, made.ties, "--step ties the states of the network")
    step = InCalls(data, write_model(made.model), made.ties, made.calls, made.exactness)
    for proof in step.proof_of(read_model(step.data)).values():
        if proof.status is Status.DIFFERENT:
            raise FailedVerificationError(f"--step: {NOT_EQUAL}: {proof}", proof="step")
    return step


def in_rows(model: Model, options: Options) -> Model:
    """Return a model whose input comes in rows: cleaned up, unless the options forbid it, its sequences along rows."""
    model = copy_model(model)
    if options.rewrite:
        clean_up(model, options.profile, options.keep_quantized)
    laid = sequences_along_h(copy_model(model))
    return laid.model if laid.uses else model


def fed_input(model: Model, name: str | None = None, flag: str = "--feed") -> int:
    """Return the position of the input that comes in rows: the one of this name; None: the largest.

    Raises UsageError for a name that no input has; ``flag``: the option that gave it.
    """
    inputs = model.main.inputs
    if name is None:
        return max(range(len(inputs)), key=lambda at: inputs[at].nbytes, default=0)
    names = [tensor.name for tensor in inputs]
    if name not in names:
        raise UsageError(f"{flag}: no input is named '{name}'; inputs are {', '.join(names)}", ErrorKind.UNKNOWN)
    return names.index(name)


def in_hops(data: bytes, model: Model, options: Options, progress: Progress) -> InCalls:
    """Make the model of one hop of a window; ``data``: the file of ``model``.

    What it keeps is chosen for the least run time within the budget; without one RAM and run time count alike.
    Raises UnsupportedModelError for a model that cannot slide so, UsageError for a hop that fits no window.
    """
    assert options.slide is not None
    hop, shapes = Hop.of(options.slide), infer_shapes(data, options, progress)
    if shapes.wrong:
        data, model = shapes.data, read_model(shapes.data)
    at = _sliding_input(model, hop)
    laid = in_rows(model, options)
    window = image_given(laid.main, at)
    name, height = model.main.inputs[at].name, window.shape[1] if is_image(window) else 0
    if not is_image(window):
        raise _refused(f"the input '{name}' of shape {list(window.shape)} has no rows, along which a window could move")
    if hop.rows >= height or hop.window not in (None, height):
        raise UsageError(
            f"--slide {options.slide}: the window, input '{name}', has {height} rows, a hop has fewer", ErrorKind.FORM
        )
    slide = sliding(laid.main, window, hop.rows)
    if not keepable(laid.main, slide):
        raise _refused(f"no row of a layer is kept for the next window: {why_it_ends(slide)}")
    made = _chosen(model, laid, at, hop.rows, slide, options, progress)
    _check_ties(options, made.ties, "--slide ties what windows share")
    use = SlideUse(hop.rows, height, made.calls, made.kept, why_it_ends(slide))
    return InCalls(data, write_model(made.model), made.ties, made.calls, "exact", use, str(replace(hop, window=height)))


def _check_ties(options: Options, ties: tuple[str, ...], reason: str) -> None:
    if options.ties not in ((), ties):
        raise UsageError(f"{reason} by itself: omit --tie", ErrorKind.EXCLUDED)


def _refused(reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"--slide: {reason}", ErrorKind.FORM)


def _sliding_input(model: Model, hop: Hop) -> int:
    for operator in model.main.operators:
        if has_side_effects(operator) or any(each.is_variable for each in operator.present_inputs()):
            reason = "keeps a state between calls: the model streams already, and has nothing to gain"
            raise _refused(f"{operator.opcode.label} {reason}")
    inputs = model.main.inputs
    if len(inputs) > 1 and hop.input is None:
        names = ", ".join(tensor.name for tensor in inputs)
        raise UsageError(
            f"--slide: name the one input that moves, as in --slide {hop.rows},input=NAME: {names}", ErrorKind.UNKNOWN
        )
    if not inputs:
        raise _refused("the model has no input")
    return fed_input(model, hop.input, "--slide")


def why_it_ends(slide: Sliding) -> str:
    """Say which operator ends sliding first, and why; empty where none does."""
    reasons = (f"{operator.name} '{short_name(label(operator))}': {reason}" for operator, reason in slide.ends.items())
    return next(reasons, "")


_MOST_MEASURED: Mapping[str, int] = {"quick": 60, "normal": 240, "thorough": 960}


def _chosen(whole: Model, laid: Model, at: int, hop: int, slide: Sliding, options: Options, progress: Progress) -> Slid:
    """Choose what is kept: from all and from nothing, one tensor more or less while that is better.

    The least is the best: whether it exceeds the limit on run time, then the budget, then run time; without a budget
    RAM times run time, for half of one is worth twice the other.
    """
    places, profile = {operator: place for place, operator in enumerate(laid.main.operators)}, options.profile
    every = frozenset(places[operator] for operator in keepable(laid.main, slide))
    progress(f"choosing what to keep of {len(every)} layers")

    @cache
    def measured(keep: frozenset[int]) -> tuple[tuple[bool, bool, float], Slid]:
        made = slid(laid, at, hop, keep)
        graph, own = made.model.main, laid.main
        others = (each for place, each in enumerate(graph.inputs[: len(own.inputs)]) if place != at)
        lay_in_one_row(made.model, {*others, *graph.outputs[: len(own.outputs)]})
        model = with_ties(copy_model(made.model), made.ties, profile)
        need = estimate_of(model, profile, options.search).need
        share = 1 + slowest(instructions(whole, profile), instructions(model, profile))
        if share > 1 + options.max_slowdown:
            return (True, True, share), made
        if options.budget is None:
            return (False, False, need * share), made
        return (False, need > options.budget, need if need > options.budget else share), made

    def climbed(best: frozenset[int]) -> frozenset[int]:
        most = _MOST_MEASURED[options.effort]
        while True:
            around = (best ^ {place} for place in sorted(every) if measured.cache_info().currsize < most)
            better = min(around, key=lambda keep: measured(keep)[0], default=best)
            if measured(better)[0] >= measured(best)[0]:
                return best
            best = better

    ends = [measured(climbed(start)) for start in (every, frozenset[int]())]
    return min(ends, key=lambda each: each[0])[1]
