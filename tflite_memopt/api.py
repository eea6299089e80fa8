"""The calls that change no model: analyze, verify, compare, and the RAM of a model as one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from .errors import ErrorKind, InfeasibleError, UsageError
from .evidence.equivalence.interface import named_otherwise
from .evidence.equivalence.subject import Subject
from .evidence.equivalence.verdict import FILE, ON_TFLM, PLAN, PROOF, Verdict
from .evidence.equivalence.verification import exactness_of, verdict_in_file, verdict_of, verify_streamed
from .evidence.equivalence.verification import verify as verify_models
from .evidence.proof import Kind, Proof, Status, prove_plan, prove_streamed, stream_of
from .kernels.as_it_came import AsItCame, as_it_came, said_of_file, with_plan
from .kernels.chips import memories_of_chip
from .kernels.faults import faults_in
from .kernels.profile import KernelProfile
from .kernels.targets import profile_for
from .memory.facts import limits_in_file
from .memory.file import (
    build_of,
    check_label,
    label_in_force,
    places_in_force,
    profile_of,
    read_planned,
    without_foreign_plan,
)
from .memory.problems import labeled_ties, tie_positions
from .memory.reserve import needs_by_library
from .model.io import offline_plan, plan_label
from .model.io.files import Source, load
from .model.io.reader import read_model
from .model.io.writer import write_model
from .model.ir.copying import copy_model
from .model.ir.model import Model
from .options import Options
from .report.answer import Judgement, Planner
from .report.build import build_analysis, device_use, original_of
from .report.model import Analysis, Comparison, MemoryPart
from .search.rewrite.loadable import mended

Progress = Callable[[str], None]


def analyze(
    source: Source,
    kernels: str | None = None,
    target: str | None = None,
    tflm: str | None = None,
    budget: int | None = None,
    memories: Mapping[str, int] | None = None,
    prices: Mapping[str, int] | None = None,
) -> Analysis:
    """Return the memory of a model under the plan in its file, if any; or after the rewrites that let TFLM load it.

    ``kernels``, ``target``: None for both counts for those that the file's plan was made for, as its label says; so
    does ``tflm``, the build of TFLM; without a label it is the board's. ``budget``: bytes that the arena may take.
    ``memories``: bytes by name, the fastest first, for the plan of ``codegen --memory``; None for those of the target,
    where the model does not fit into the first one. ``prices``: of a byte that moves, by the name of a memory. Raises
    as :func:`tflite_memopt.optimize`; UsageError and InfeasibleError for memories that cannot be.
    """
    data, name = load(source)
    model = read_planned(data, name)
    label, device = label_in_force(model), target
    if label is not None and kernels is None and target is None:
        target, kernels = label.target, label.kernels
        device = label.device
    build = build_of(label, tflm, target)
    profile, used = profile_for(target, kernels, build=build), device_use(device)
    rewritten = mended(copy_model(model), build)
    mends = bool(rewritten.uses) and rewritten.after.runs
    came, shown = (rewritten.before, rewritten.model) if mends else (as_it_came(model, profile, build), model)
    original, judgement = original_of(shown, name, data, profile), _judged(shown, came, profile)
    limits = limits_in_file(shown, profile)
    analysis = build_analysis(original, shown, came, judgement, profile, used, build, budget, mends, limits)
    data = write_model(shown) if mends else data
    if memories:
        return replace(analysis, memories=_in_memories(data, target, memories, prices or {}))
    own = {} if device is None else memories_of_chip(device) or {}
    fastest = next(iter(own.values()), analysis.answer.reserve)
    if len(own) > 1 and analysis.answer.reserve > fastest:
        with suppress(UsageError, InfeasibleError):  # nobody has asked
            return replace(analysis, memories=_in_memories(data, target, own, {}))
    return analysis


def _judged(model: Model, came: AsItCame, profile: KernelProfile) -> Judgement:
    """Judge a file with the kernels of a profile; ``came``: what TFLM makes of it with any.

    A plan that some library of the profile runs right is no stale one, and so with faults of the libraries.
    """
    label = label_in_force(model)
    if came.makes == "cannot run":
        return "cannot run"
    if came.constants_behind:
        return "no weights"
    if label is not None and label.is_wrong_with(profile.name):
        return "wrong kernels"
    libraries = profile.libraries or (profile,)
    if offline_plan.decode(model):
        places = (places_in_force(model, library) for library in libraries)
        if all(prove_plan(model, each).status is Status.DIFFERENT for each in places):
            return "wrong plan"
    if came.wrong or all(any(met.fault.is_wrong for met in faults_in(model, library)) for library in libraries):
        return "faulty kernels"
    return "right"


def _in_memories(
    data: bytes, target: str | None, sizes: Mapping[str, int], prices: Mapping[str, int]
) -> tuple[MemoryPart, ...]:
    """Return the plan of ``codegen --memory``."""
    from .firmware.describe import describe
    from .firmware.plan_table import SCRATCH, MemoryRequest

    firmware = describe(data, target, "model", force=True, request=MemoryRequest(sizes, prices=prices))
    table = firmware.table
    assert table is not None
    (arena,) = (need.required for need in firmware.sizes.by_library.values())
    parts = []
    for number, (name, used) in enumerate(zip(table.names, table.sizes, strict=True)):
        rows = sorted((row for row in table.rows if row.memory == number), key=lambda row: -row.moved)
        is_arena = number == table.arena
        moved, tensors = sum(row.moved for row in rows), tuple(row.name for row in rows if row.name != SCRATCH)
        parts.append(MemoryPart(name, sizes[name], arena if is_arena else used, is_arena, moved, tensors))
    return tuple(parts)


def verify(
    first: Source, second: Source, options: Options = Options(), progress: Progress = lambda _: None
) -> dict[str, Verdict]:
    """Compare two models; see :func:`tflite_memopt.evidence.equivalence.verification.verify`.

    The second model runs with the ties of its plan; one of ``optimize --step`` over sequences, one of ``--slide`` along
    a signal. Where ``optimize`` has written it, a verdict ``plan`` is the proof of its memory plan, for the kernels
    that it was made for. Where TFLM, as users run it, cannot run the second model or computes it otherwise, a verdict
    says so first.
    """
    both = [load(source) for source in (first, second)]
    _, model = (
        read_planned(without_foreign_plan(data, name)[0], name) for data, name in both
    )  # what is wrong with a file is said with its name
    label = plan_label.decode(model)
    ties = tie_positions(model, labeled_ties(model))
    kind = None if label is None else label.calls
    if kind is not None:
        verdicts = _verify_calls(kind, both[0][0], both[1][0], options, progress, ties)
    else:
        turned = frozenset[str]() if label is None else label.channels_last
        verdicts = verify_models(both[0][0], both[1][0], options, progress, ties, turned)
    if label is not None:
        proof = prove_plan(model, places_in_force(model, profile_of(label)))
        verdicts = {PROOF: verdicts.pop(PROOF), PLAN: verdict_of(proof), **verdicts}
    came = with_plan(as_it_came(read_model(both[1][0])), without_foreign_plan(*both[1])[1])
    if came.makes == "runs" or "tflm" not in options.runtimes or options.runner is not None:
        return verdicts
    is_equal = False if came.makes == "computes otherwise" else None
    return {ON_TFLM: Verdict(0, is_equal, 0.0, said_of_file(came)), **verdicts}


def _verify_calls(
    kind: Kind, whole: bytes, step: bytes, options: Options, progress: Progress, ties: tuple[tuple[int, int], ...]
) -> dict[str, Verdict]:
    """Compare calls of one step or hop with the model of all: by a proof, and over sequences on each runtime."""
    rewritten = mended(read_model(whole))
    proof, differences = judged_calls(kind, read_model(whole), read_model(step), ties)
    loaded = write_model(rewritten.model) if rewritten.uses else whole  # what TFLM does not load may hang there
    runs = verify_streamed(kind, Subject(loaded, step, exactness_of(proof), ties=ties), options, progress)
    in_file = verdict_in_file(differences)
    return {PROOF: verdict_of(proof), FILE: in_file, **{runtime: each.verdict for runtime, each in runs.items()}}


def judged_calls(
    kind: Kind, model: Model, result: Model, ties: tuple[tuple[int, int], ...]
) -> tuple[Proof, tuple[str, ...]]:
    """Compare a model of one step or hop, as its label says, with the model of all, without a run.

    Returns the proof, and how the names and quantization of what both have differ. Raises UsageError for a model of
    another one, ModelFormatError for a label that says something else than the models.
    """
    if stream_of(kind, result, model, ties) is None:
        raise UsageError(
            "the models cannot be compared: the second one is a step of a different model", ErrorKind.INTERFACE
        )
    check_label(result, model)
    return prove_streamed(kind, model, result, ties), tuple(named_otherwise(model, result))


def compare(
    source: Source,
    schedulers: Sequence[str] = ("all",),
    planners: Sequence[str] = ("all",),
    options: Options = Options(),
    progress: Progress = lambda _: None,
    beside: Sequence[str] = (),
    seconds: float = 60.0,
) -> Comparison:
    """Run the named methods side by side, or all of them, each for at most ``seconds``.

    ``beside``: ``("msf-cnn",)`` for fused blocks as well.
    See :func:`tflite_memopt.published.comparison.compare_methods`.
    """
    from .published.comparison import compare_methods

    data, name = load(source)
    return compare_methods(read_planned(data, name), name, schedulers, planners, options, progress, beside, seconds)


def ram_of(
    model: Source | Model,
    target: str | None = None,
    kernels: str | None = None,
    tflm: str | None = None,
    planner: Planner = "tflm",
) -> int:
    """Return the bytes of the arena that firmware must reserve for a model on the target.

    ``model``: a .tflite as bytes or as a path, or a model in memory, which stays as it is. It counts in the order and
    with the plan of its file, as stock TFLM runs it; :func:`cost` has the bytes after :func:`optimize`. Without a
    target: with TFLM's own kernels on 32 bits; other libraries may need more (:func:`analyze` has them all). ``tflm``:
    the build of TFLM, None for the usual one. ``planner``: TFLM as it comes, or the "table" that ``codegen`` writes.
    Raises as :func:`analyze`, and UsageError for a table where ``codegen`` writes none by default.
    """
    source = write_model(model) if isinstance(model, Model) else model
    options = Options(target=target, kernels=kernels, verify=False, tflm=tflm)
    read = read_planned(*load(source))
    needs = needs_by_library(read, offline_plan.decode(read) or {}, options.profile)
    need = next(iter(needs.values()))
    if planner == "tflm":
        return need.required
    if need.table is None:
        raise UsageError(
            "codegen writes a plan table only for a target whose kernels were measured: name the target",
            ErrorKind.NO_TARGET,
        )
    return need.table
