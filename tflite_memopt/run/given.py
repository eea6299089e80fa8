"""The start of a run: the model as TFLM can load it, whole or one step or hop of it, and the original's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import EquivalenceError, ErrorKind, UnsupportedModelError
from ..evidence.equivalence.verification import infer_shapes
from ..evidence.proof import prove
from ..model.io.files import Source, load
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from ..model.ir.check import is_fixed_by_npu
from ..model.ir.copying import copy_model
from ..model.ir.model import Model
from ..options import Options
from ..report.build import ModelFacts, facts_of
from ..search.memory.figures import operator_kinds
from ..search.memory.file import read_planned
from ..search.memory.problems import with_ties
from ..search.memory.reserve import LibraryNeed, needs_by_library
from ..search.rewrite.loadable import Mended, mended
from ..target.kernels.since import has_operators, needed_since
from ..target.kernels.support import TflmSupport, said_of, support_of
from .candidate import Progress
from .steps import InSteps, in_hops, in_steps


class Given(NamedTuple):
    """The start of a run: ``model``, in the file ``data``, is the original as TFLM can load it, or a step of it.

    ``facts`` are those of the original, ``libraries`` what each needs for ``model``.
    """

    name: str | None
    original: bytes
    data: bytes
    model: Model
    found: Mended | None
    steps: InSteps | None
    facts: ModelFacts
    libraries: Mapping[str, LibraryNeed]


def read_given(source: Source, options: Options, progress: Progress) -> Given:
    """Load a model. Raises as :func:`optimize`."""
    original, name = load(source)
    data, model = original, read_planned(original, name)
    is_called = options.step or options.slide is not None
    if options.ties and not is_called:
        with_ties(copy_model(model), options.ties, options.profile)  # a wrong tie is refused before any search
    found = loadable(data, model, options, progress)
    if found is not None:
        data = write_model(found.model)
        model = read_planned(data)
    facts = facts_of(model, name, original, options)
    if not is_called:
        return Given(name, original, data, model, found, None, facts, facts.libraries)
    steps = in_steps(data, model, options) if options.step else in_hops(data, model, options, progress)
    if steps.whole is not data:  # its shapes were wrong in the file
        facts = facts_of(read_planned(steps.whole), name, original, options)
    model = read_planned(steps.data)
    libraries = needs_by_library(model, {}, options.profile)
    return Given(name, original, steps.data, model, found, steps, facts, libraries)


def loadable(data: bytes, model: Model, options: Options, progress: Progress) -> Mended | None:
    """The model of a file as TFLM can load it, proved equal; None where it can as it is.

    Raises UnsupportedModelError for what no rewrite makes TFLM run, EquivalenceError for a rewrite that is not proved.
    """
    if is_fixed_by_npu(model):
        return None
    found = mended(model, options.build)
    if found is None:
        check_runs(support_of(model, options.build), options)
        return None
    new = operator_kinds(found.model) - operator_kinds(model)
    if not has_operators(new, options.build):
        raise UnsupportedModelError(
            f"{said_of(found.before)}; the rewrite that fixes it needs TFLM of {needed_since(new)} or later, and "
            f"--tflm is {options.tflm}",
            ErrorKind.NO_KERNEL,
        )
    check_runs(found.after, options)
    progress("rewriting what TFLM cannot load")
    shapes = infer_shapes(data, options, progress)
    if shapes.wrong:
        found = mended(read_model(shapes.data), options.build) or found
    proof = prove(read_model(shapes.data), read_model(write_model(found.model)))
    if not proof.proved:
        raise EquivalenceError(
            f"{said_of(found.before)}; the rewrite that fixes it is not proved: {proof}", ErrorKind.NO_KERNEL
        )
    return found


def check_runs(support: TflmSupport, options: Options) -> None:
    """Raise UnsupportedModelError for a model that TFLM cannot run; the user's own TFLM may have more kernels.

    Old versions of TFLM have kernels for uint8: LiteRT verifies such a model, and the answer says so first. Sizes that
    are computed in a loop make any TFLM hang, or compute other values than LiteRT.
    Source: tensorflow/tflite-micro issue 3674, open in November 2026.
    """
    kinds = {obstacle.kind for obstacle in support.reasons}
    is_elsewhere = kinds == {"uint8"} or (options.runner is not None and "computed_size" not in kinds)
    if not support.runs and not is_elsewhere:
        raise UnsupportedModelError(said_of(support), ErrorKind.NO_KERNEL)
