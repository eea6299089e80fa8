"""What no exact rewrite of this tool goes below: lower bounds beside the goals of docs/benchmarks/people.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.analysis.working_set import io_lower_bound
from tflite_memopt.equivalence.verification import infer_shapes
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.dead_tensors import drop_dead_tensors
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.arena import ArenaBesideHead, arena_beside_head
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.cost import cost_of
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.options import Options
from tflite_memopt.rewrite.driver import Driver
from tflite_memopt.rewrite.rules.dense_pixels import DENSE_PIXELS
from tflite_memopt.rewrite.sequences_along_h import sequences_along_h
from tflite_memopt.rewrite.stage import rewrite
from tflite_memopt.rewrite.table import AFTER_STRIPES
from tflite_memopt.schedule.bounds import head_lower_bound

from .markdown_table import row, table

_MOVES = frozenset(
    {
        *("BATCH_TO_SPACE_ND", "CONCATENATION", "EXPAND_DIMS", "GATHER", "PACK", "PAD", "PADV2", "RESHAPE", "SHAPE"),
        *("SLICE", "SPACE_TO_BATCH_ND", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
    }
)
"""Operators that compute nothing: a rewrite may do without them."""
_HEADER = "file | kernels | stock | tail at least | with inputs or outputs | % | head of whole tensors | with these | %"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernels", multiple=True, default=("portable", "reference"), show_default=True)
def floor(files: tuple[Path, ...], kernels: tuple[str, ...]) -> None:
    """Lower bounds on what must be reserved on 32 bits, in bytes and as shares of stock.

    The tail: of a model that has nothing but the inputs, the outputs and the operators that compute, once each, as they
    are after the clean-up; what they keep for each channel is the same in tiles. Floats: pointwise convolutions as
    dense layers. To that the larger one of all inputs and all outputs is added; and, for a model without stripes and
    tiles, the lower bound on the head of any order and plan.
    """
    for line in table(_HEADER):
        click.echo(line)
    for file in files:
        for name in kernels:
            click.echo(_bounds(file, Options(kernels=name)))


def _bounds(file: Path, options: Options) -> str:
    profile = options.profile
    given = read_planned(infer_shapes(file.read_bytes(), options, lambda _: None).data)
    stock = _stock(given, profile, options)
    model = rewrite(given, profile, options, lambda _: None).model
    least, inputs = _least_beside_head(model, profile), io_lower_bound(model)
    whole = min(_head_of_any_order(each, profile, options) for each in _whole_forms(model))
    needs = [least.with_head(head).required for head in (inputs, whole)]
    shares = [f"{100 * need / stock:.1f}" for need in needs]
    return row(file.stem, profile.name, stock, least.tail, needs[0], shares[0], whole, needs[1], shares[1])


def _stock(model: Model, profile: KernelProfile, options: Options) -> int:
    """What TFLM's own planner needs for the model as it came."""
    planner = Options(kernels=options.kernels, scheduler="as_is", planner="tflm_greedy")
    return cost_of(model, profile, planner).need


def _least_beside_head(model: Model, profile: KernelProfile) -> ArenaBesideHead:
    """What TFLM takes beside the head if the model were nothing but the operators that compute."""
    left = copy_model(model)
    if any(operator.outputs[0].dtype is DType.FLOAT32 for operator in left.main.operators if operator.outputs):
        Driver(left).apply_everywhere((DENSE_PIXELS,))
    for operator in [each for each in left.main.operators if each.name in _MOVES]:
        left.main.remove_operator(operator)
    drop_dead_tensors(left)
    interface = {*left.main.inputs, *left.main.outputs}
    unused = [each for each in left.main.tensors if not each.uses and each.producer is None and each not in interface]
    left.main.remove_tensors(unused)
    return arena_beside_head(left, profile.requests, profile.abi)


def _whole_forms(model: Model) -> Iterator[Model]:
    """The model without stripes, as it is and with sequences along H, without and with the rules after stripes."""
    along_h = sequences_along_h(model)
    for form in (model, *(() if along_h is None else (along_h.model,))):
        yield form
        ruled = copy_model(form)
        Driver(ruled).apply_everywhere([rule for group in AFTER_STRIPES for rule in group])
        drop_dead_tensors(ruled)
        yield ruled


def _head_of_any_order(model: Model, profile: KernelProfile, options: Options) -> int:
    found = arrange(model, profile, options)
    return head_lower_bound(found.problem, found.schedule.lower_bound)
