"""A model in, the description of its firmware out."""

from __future__ import annotations

from dataclasses import replace

from ..errors import EquivalenceError, ErrorKind, UnsupportedModelError, UsageError
from ..kernels.as_it_came import AsItCame, as_it_came, said_of_file
from ..kernels.profile import KernelProfile
from ..kernels.profiles import PORTABLE
from ..kernels.targets import profile_for, target_named
from ..memory.file import build_of, check_label, label_in_force, read_planned
from ..memory.file import profile_of as profile_of_label
from ..memory.problems import labeled_ties, tie_positions
from ..memory.reserve import has_table, reserve
from ..model.analysis.loops import cleared_inputs
from ..model.io import offline_plan
from ..model.io.plan_label import PlanLabel
from ..model.ir.model import Model
from ..options import Hop
from . import Planner
from .cpp_text import check_namespace
from .description import OneModel
from .plan_table import MemoryRequest, table_for
from .resolver import registrations
from .sizes import arena_sizes


def describe(
    data: bytes,
    target: str | None = None,
    name: str = "model",
    source: str | None = None,
    force: bool = False,
    planner: Planner | None = None,
    request: MemoryRequest = MemoryRequest(),
) -> OneModel:
    """Return the firmware of a model, for the kernels that its plan was made for.

    ``target``: the core or chip, when the plan names none. ``name``: the C++ namespace of everything. ``source``: the
    name of the model's file, which the headers tell. ``force``: also for a model that TFLM cannot run, or
    computes wrongly. ``planner``:
    whether the program's plan is that of the file's metadata, or a table in ``planner.h``; None: a table where the
    target is known and its kernels were measured. ``request``: how a table uses the firmware's memories. Raises
    UsageError for a wrong name or request, or for a table without a known library; EquivalenceError for a target whose
    kernels compute a plan of others wrongly, and for a file that TFLM computes otherwise; InfeasibleError for memories
    that are too small; UnsupportedModelError for a model that TFLM cannot run; ModelFormatError for a label that says
    other rows or states than the model has.
    """
    check_namespace(name)
    model = read_planned(data)
    label, planned = label_in_force(model), offline_plan.decode(model) or {}
    profile = _profile(label, target)
    is_table = _has_table(planner, request, model, profile)
    if name in request.sizes:
        raise UsageError(f"--memory {name}: the namespace has this name; choose another one", ErrorKind.NAME)
    if is_table and profile.libraries:
        raise UsageError(
            "a plan table is for one kernel library: name your chip or core with --target", ErrorKind.NO_TARGET
        )
    ties = request.ties or labeled_ties(model)
    if not is_table:
        table, sizes = None, arena_sizes(model, planned, profile)
    else:
        request = request if request.is_empty else replace(request, ties=ties)
        table = table_for(model, planned, profile, request)
        sizes = arena_sizes(model, planned, profile, table.sizes[table.arena], request.planner)
    if not force:
        _check_runs(as_it_came(model, profile, build_of(label)))
    device, overlaps, warm_up = None, False, 1
    if label is not None:
        check_label(model)
        device, overlaps, warm_up = label.device, label.overlaps, Hop.of(str(label.options.get("slide", 1))).calls
    return OneModel(
        name=name,
        data=data,
        model=model,
        registrations=registrations(model),
        source=source,
        whom=target or device or profile.target or "any 32-bit target",
        profile=profile,
        build=build_of(label, target=target),
        overlaps=overlaps,
        sizes=sizes,
        table=table,
        tied=tuple(source for _, source in tie_positions(model, ties)),
        warm_up=warm_up,
        clears_inputs=bool(cleared_inputs(model, planned)),
        is_apart=request.temporaries_apart,
        channels_last=frozenset() if label is None else label.channels_last,
    )


def _check_runs(came: AsItCame) -> None:
    """Raise UnsupportedModelError for a file that TFLM cannot run, EquivalenceError for one that it computes
    wrongly."""
    fault = f"{said_of_file(came)}; --force writes the files all the same"
    if came.makes == "cannot run":
        raise UnsupportedModelError(fault, ErrorKind.NO_KERNEL)
    if came.makes == "computes otherwise":
        raise EquivalenceError(fault, ErrorKind.OTHER_KERNELS)


def profile_of(data: bytes, target: str | None) -> KernelProfile:
    """Return the kernels for which the files of a model are written. Raises EquivalenceError if its plan is
    for others."""
    return _profile(label_in_force(read_planned(data)), target)


def _profile(label: PlanLabel | None, target: str | None) -> KernelProfile:
    """Return the kernels that firmware for the target may link, of any library where the plan allows it."""
    target, made_for = None if target is None else target_named(target).name, profile_of_label(label)
    if label is not None and target in (None, label.target):
        every = tuple(replace(each, abi=made_for.abi) for each in PORTABLE.libraries)
        return replace(made_for, libraries=every) if made_for.libraries else made_for
    other = profile_for(target)
    if label is not None and label.overlaps and other.name != label.kernels:
        raise EquivalenceError(
            f"the plan in the file is for {label.kernels} kernels and computes wrongly with those of {target} "
            f"({other.name}): optimize the model again with --target {target}",
            ErrorKind.OTHER_KERNELS,
        )
    return other


def _has_table(planner: Planner | None, request: MemoryRequest, model: Model, profile: KernelProfile) -> bool:
    """Return whether the plan is a table in ``planner.h``; else it is in the file's metadata.

    Where nothing says so, it is a table if all that the kernels ask for is known: TFLM refuses one that is wrong by a
    byte. Raises UsageError for a request that metadata cannot fulfill.
    """
    is_asked = request.temporaries_apart or not request.is_empty
    if planner == "metadata" and is_asked:
        raise UsageError(
            "--planner metadata has one memory and no tensors elsewhere: omit it or the other options",
            ErrorKind.EXCLUDED,
        )
    if planner is not None or is_asked:
        return planner == "table" or is_asked
    return has_table(profile) and reserve(model, 0, profile).exact
