"""The start of a run: the model as TFLM can load it, whole or one step or hop of it, and the original's figures."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..errors import EquivalenceError, ErrorKind, UnsupportedModelError
from ..evidence.equivalence.baseline import LITERT
from ..evidence.equivalence.subject import Subject
from ..evidence.equivalence.verification import infer_shapes, verify_result
from ..evidence.proof import prove
from ..kernels.as_it_came import AsItCame, as_it_came, said_of_wrong, with_plan
from ..kernels.since import has_operators, needed_since
from ..kernels.support import TflmSupport, said_of
from ..memory.figures import operator_kinds
from ..memory.file import read_planned, without_foreign_plan
from ..memory.problems import with_ties
from ..memory.reserve import Needs, needs_by_library
from ..model.io.files import Source, load
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from ..model.ir.change import FOREIGN_PLAN, Changed, RewriteUse
from ..model.ir.check import is_fixed_by_npu
from ..model.ir.copying import copy_model
from ..model.ir.model import Model
from ..options import Options
from ..report.build import Original, original_of
from ..search.rewrite.loadable import Mended, mended, with_dense_products
from .candidate import Progress
from .streamed import InCalls, in_hops, in_steps


class Given(NamedTuple):
    """The start of a run: ``model``, in the file ``data``, is the original as TFLM can load it, or a step of it.

    ``came``: what TFLM makes of the original, and ``uses`` how ``model`` came to be of it. ``record``: facts of the
    original, where TFLM loads and reads it, and otherwise of what was made of it; ``libraries`` what each needs for
    ``model``. ``reference``: a file that runtimes compute as the original says, where they compute that otherwise and
    nothing can be held against it; else None.
    """

    name: str | None
    original: bytes
    data: bytes
    model: Model
    came: AsItCame
    uses: tuple[RewriteUse, ...]
    reference: bytes | None
    steps: InCalls | None
    record: Original
    libraries: Needs


def read_given(source: Source, options: Options, progress: Progress, is_cut: bool = False) -> Given:
    """Load a model; ``is_cut``: to cut it in parts. Raises as :func:`optimize`."""
    original, name = load(source)
    data, foreign = without_foreign_plan(original, name)
    model = read_planned(data, name)
    is_called = options.step or options.slide is not None
    if options.ties and not is_called:
        with_ties(copy_model(model), options.ties, options.profile)  # a wrong tie is refused before any search
    fixed = loadable(data, model, options, progress)
    came = with_plan(as_it_came(model, options.profile, options.build) if fixed is None else fixed.before, foreign)
    uses = () if foreign is None else (RewriteUse(FOREIGN_PLAN, (), "exact", 0),)
    if fixed is not None:
        uses = (*uses, *fixed.uses)
        data = write_model(fixed.model)
        model = read_planned(data)
    if is_called or is_cut:
        _check_as_one(model, options)
    reference, dense = None, with_dense_products(copy_model(model)) if options.allow_approximate else Changed(model)
    if dense.uses:
        uses = (*uses, *dense.uses)
        reference = write_model(with_dense_products(copy_model(model), are_real=True).model)
        data = write_model(dense.model)
        model = read_planned(data)
    record = original_of(model, name, original, options.profile, options.verify)
    if not is_called:
        return Given(name, original, data, model, came, uses, reference, None, record, record.facts.libraries)
    steps = in_steps(data, model, options) if options.step else in_hops(data, model, options, progress)
    if steps.whole is not data:  # its shapes were wrong in the file
        record = original_of(read_planned(steps.whole), name, original, options.profile, options.verify)
    model = read_planned(steps.data)
    libraries = needs_by_library(model, {}, options.profile)
    return Given(name, original, steps.data, model, came, (*uses, *steps.uses), reference, steps, record, libraries)


def _check_as_one(model: Model, options: Options) -> None:
    """Raise UnsupportedModelError for steps, hops, or parts of a model that no runtime computes as its file says.

    They are compared with the original, and this one cannot be a measure.
    """
    if options.allow_approximate and with_dense_products(copy_model(model)).uses:
        raise UnsupportedModelError(
            f"LiteRT and TFLM compute this model otherwise: {said_of_wrong(as_it_came(model).wrong)}; first make one "
            "model of it with --allow-approximate alone, and then steps or parts of that",
            ErrorKind.FORM,
        )


def loadable(data: bytes, model: Model, options: Options, progress: Progress) -> Mended | None:
    """The model of a file as TFLM can load it, proved equal; None where it can as it is.

    Raises UnsupportedModelError for what no rewrite makes TFLM run, EquivalenceError for a rewrite that is not proved.
    """
    if is_fixed_by_npu(model):
        return None
    fixed = mended(copy_model(model), options.build)
    if not fixed.uses or fixed.before.support.runs:  # with its weights inline it is the same graph
        check_runs(fixed.after, options)
        return fixed if fixed.uses else None
    new = operator_kinds(fixed.model) - operator_kinds(model)
    if not has_operators(new, options.build):
        raise UnsupportedModelError(
            f"{said_of(fixed.before.support)}; the rewrite that fixes it needs TFLM of {needed_since(new)} or "
            f"later, and --tflm is {options.tflm}",
            ErrorKind.NO_KERNEL,
        )
    check_runs(fixed.after, options)
    progress("rewriting what TFLM cannot load")
    shapes = infer_shapes(data, options, progress)
    if shapes.wrong:
        again = mended(replace(read_model(shapes.data), constants_behind=model.constants_behind), options.build)
        fixed = again if again.uses else fixed
    written = write_model(fixed.model)
    proof = prove(read_model(shapes.data), read_model(written))
    if not proof.proved:
        raise EquivalenceError(
            f"{said_of(fixed.before.support)}; the rewrite that fixes it is not proved: {proof}", ErrorKind.NO_KERNEL
        )
    if options.verify and LITERT in options.runtimes:
        _check_on_litert(shapes.data, written, options, progress)
    return fixed


def _check_on_litert(original: bytes, written: bytes, options: Options, progress: Progress) -> None:
    """Run what was mended beside the original on LiteRT, which TFLM cannot run. Raises FailedVerificationError."""
    alone = replace(options, runtimes=(LITERT,), runner=None, inputs=None, io="keep", channels_last=())
    try:
        verify_result(Subject(original, written), alone, progress)
    except EquivalenceError as error:
        if error.kind is not ErrorKind.NOT_RUN:  # LiteRT does not run it either: the proof is what there is
            raise


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
