"""Slices of joined tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.recurrent import WIDTH, unrolled
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    LITERT,
    Branch,
    Pattern,
    assert_exact,
    assert_refused,
    quantization_of,
    refusals,
)
from tflite_memopt import Options
from tflite_memopt.evidence.proof import prove
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.editor import Editor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.loadable import mended
from tflite_memopt.search.rewrite.slices import SLICE_OF_CONCATENATION
from tflite_memopt.search.rewrite.stage import rewrite


def joined(branch: Branch, shape: Sequence[int], axis: int, sizes: Sequence[int]) -> Tensor:
    """A concatenation of inputs, of which one may be joined twice."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    quantization = branch.quantization(dtype)
    parts = [branch.input((*shape[:axis], size, *shape[axis + 1 :]), dtype, **quantization) for size in sizes]
    y = branch.tensor((*shape[:axis], sum(sizes), *shape[axis + 1 :]), dtype, **quantization)
    at = pick.choice((axis, axis - len(shape)))
    branch.builder.operator("CONCATENATION", parts, (y,), "ConcatenationOptions", axis=at)
    return y


def range_within(branch: Branch, sizes: Sequence[int]) -> tuple[int, int]:
    """A range that is in fewer than all parts: in one, or in several, with or without a rest of the outer ones."""
    pick, ends = branch.random, [0, *np.cumsum(sizes).tolist()]
    low = pick.randrange(len(sizes))
    high = pick.randrange(low, len(sizes)) if low else pick.randrange(len(sizes) - 1)
    first, last = ends[low], ends[high + 1]
    if pick.random() < 0.6:
        first += pick.randrange(sizes[low]) if low < high else 0
        last -= pick.randrange(last - max(first, ends[high]))
    return first, last


def box(branch: Branch) -> None:
    """A box of a concatenation along any axis, by SLICE or STRIDED_SLICE, which may take dimensions out."""
    pick = branch.random
    shape = [pick.randint(1, 4) for _ in range(pick.randint(1, 4))]
    axis = pick.randrange(len(shape))
    sizes = [pick.randint(1, 4) for _ in range(pick.randint(2, 5))]
    x = joined(branch, shape, axis, sizes)
    first, count = [0] * len(shape), [*x.shape]
    for at, size in enumerate(x.shape):
        if at != axis and pick.random() < 0.3:
            first[at] = pick.randrange(size)
            count[at] = pick.randint(1, size - first[at])
    start, end = range_within(branch, sizes)
    first[axis], count[axis] = start, end - start
    if pick.random() < 0.5:
        y = branch.tensor(count, x.dtype, **quantization_of(x))
        ends = zip(first, count, x.shape, strict=True)
        said = [-1 if at + many == of and pick.random() < 0.3 else many for at, many, of in ends]
        branch.run("SLICE", (x, branch.ints(*first), branch.ints(*said)), y, "SliceOptions")
        return
    shrink = sum(1 << at for at, many in enumerate(count) if many == 1 and pick.random() < 0.5)
    if shrink == (1 << len(count)) - 1:
        shrink = 0
    kept = [many for at, many in enumerate(count) if not shrink >> at & 1]
    y = branch.tensor(kept, x.dtype, **quantization_of(x))
    last = [at + many for at, many in zip(first, count, strict=True)]
    operands = (x, branch.ints(*first), branch.ints(*last), branch.ints(*[1] * len(count)))
    branch.run("STRIDED_SLICE", operands, y, "StridedSliceOptions", shrinkAxisMask=shrink)


def run_of_elements(branch: Branch) -> None:
    """Whole tensors of an outer join that is reshaped before it is cut: the last outputs of a network with steps."""
    pick = branch.random
    steps, width = pick.randint(2, 6), pick.randint(1, 5)
    outer = [1] * pick.randint(0, 2)
    x = joined(branch, (*outer, 1, width), len(outer), [1] * steps)
    for shape in ((steps, 1, width), (1, steps, width))[pick.randrange(2) :]:
        again = branch.tensor(shape, x.dtype, **quantization_of(x))
        branch.builder.operator("RESHAPE", (x, branch.ints(*shape)), (again,), "ReshapeOptions")
        x = again
    first, last = range_within(branch, [1] * steps)
    cut_rows(branch, x, 1, first, last)


def stacked(branch: Branch) -> None:
    """Whole tensors of a PACK along its outer axis."""
    pick = branch.random
    dtype = pick.choice((F32, I8))
    shape, count = [pick.randint(1, 4) for _ in range(2)], pick.randint(2, 5)
    quantization = branch.quantization(dtype)
    parts = [branch.input(shape, dtype, **quantization) for _ in range(count)]
    x = branch.tensor((count, *shape), dtype, **quantization)
    branch.builder.operator("PACK", parts, (x,), "PackOptions", axis=0, valuesCount=count)
    first, last = range_within(branch, [1] * count)
    cut_rows(branch, x, 0, first, last)


def cut_rows(branch: Branch, x: Tensor, axis: int, first: int, last: int) -> None:
    """Rows of a tensor of three dimensions; one row may lose its dimension."""
    begin, end = [0, 0, 0], [*x.shape]
    begin[axis], end[axis] = first, last
    shape = [*x.shape[:axis], last - first, *x.shape[axis + 1 :]]
    is_row = last - first == 1 and branch.random.random() < 0.5
    y = branch.tensor(shape[:axis] + shape[axis + 1 :] if is_row else shape, x.dtype, **quantization_of(x))
    operands = (x, branch.ints(*begin), branch.ints(*end), branch.ints(1, 1, 1))
    branch.run("STRIDED_SLICE", operands, y, "StridedSliceOptions", shrinkAxisMask=is_row << axis)


@pytest.mark.few(1)
@pytest.mark.parametrize("pattern", [box, run_of_elements, stacked])
def test_the_same_bits(pattern: Pattern) -> None:
    assert_exact(SLICE_OF_CONCATENATION, pattern, 2, 120)


def model(
    *cuts: tuple[int, int], sizes: Sequence[int] = (2, 3, 4), activation: int = 0, returned: bool = False
) -> Model:
    """Rows of joined rows; each of ``cuts`` begins and ends somewhere."""
    b = ModelBuilder()
    parts = [b.add(x, x) for x in (b.input(f"x{at}", (size, 2)) for at, size in enumerate(sizes))]
    x = b.tensor("joined", (sum(sizes), 2))
    b.operator("CONCATENATION", parts, (x,), "ConcatenationOptions", axis=0, fusedActivationFunction=activation)
    outputs = []
    for number, (first, last) in enumerate(cuts):
        y = b.tensor(f"y{number}", (last - first, 2))
        named = {"begin": (first, 0), "size": y.shape}
        limits = [b.constant(f"{y.name}/{name}", np.asarray(at, np.int32)) for name, at in named.items()]
        b.operator("SLICE", (x, *limits), (y,), "SliceOptions")
        outputs.append(b.add(y, y))
    return b.finish(*outputs, *((x,) if returned else ()))


def names(model: Model) -> list[str]:
    return [operator.name for operator in model.main.operators]


def rewritten(model: Model) -> list[str]:
    Driver(model).apply_everywhere((SLICE_OF_CONCATENATION,))
    return names(model)


def test_a_slice_that_is_an_operand_goes_and_so_does_what_nobody_reads() -> None:
    assert rewritten(model((2, 5))) == ["ADD", "ADD"]


def test_a_slice_inside_of_an_operand_is_a_slice_of_that() -> None:
    found = model((3, 4))
    assert rewritten(found) == ["ADD", "SLICE", "ADD"]
    assert found.main.operators[1].required(0).shape == (3, 2)


def test_a_slice_of_several_is_a_smaller_join_or_a_slice_of_one() -> None:
    assert rewritten(model((0, 5))) == ["ADD", "ADD", "CONCATENATION", "ADD"]
    assert rewritten(model((1, 4))) == ["ADD", "ADD", "CONCATENATION", "SLICE", "ADD"]


def test_several_slices_take_the_join_away_together() -> None:
    assert "CONCATENATION" not in rewritten(model((0, 2), (3, 4), (5, 9)))
    assert rewritten(model((0, 2), (0, 9)))[:3] == ["ADD", "ADD", "ADD"]


def test_refusals() -> None:
    assert not refusals(model((0, 9)), SLICE_OF_CONCATENATION)
    assert_refused(model((0, 2), returned=True), SLICE_OF_CONCATENATION, "'joined'")
    assert_refused(model((0, 2), (0, 9)), SLICE_OF_CONCATENATION, "'joined'")
    assert_refused(model((0, 2), (1, 4)), SLICE_OF_CONCATENATION, "'joined'")
    assert_refused(model((0, 2), activation=1), SLICE_OF_CONCATENATION, "activation")


def test_a_part_that_is_quantized_otherwise_stays_in_the_join() -> None:
    found = model((2, 5))
    found.main.operators[1].outputs[0].quantization = per_tensor(0.1, 0)
    assert_refused(found, SLICE_OF_CONCATENATION, "quantized")


def test_a_long_join_is_not_nested_where_one_of_its_parts_is_all_that_is_read() -> None:
    """TFLM does not load the original."""
    found = mended(model((7, 8), sizes=[1] * 12))
    assert names(found.model) == ["ADD", "ADD"]
    assert found.after.runs


def test_steps_of_which_the_last_one_is_read_run_as_a_loop_without_a_list() -> None:
    """As PyTorch's ``y[:, -1]`` is converted."""
    found = unrolled(9, more=8, is_folded=True, in_slices=True)
    (packed, _), edit = found.main.outputs, Editor(found, found.main, len(found.main.operators))
    shaped = edit.activation("shaped", (1, 9, WIDTH), packed)
    edit.reshape(packed, shaped)
    last, y = (edit.activation(name, (1, 1, WIDTH), packed) for name in ("last", "y"))
    edit.slice(shaped, (0, 8, 0), (1, 1, WIDTH), last)
    edit.operator("RELU", (last,), (y,))
    found.main.outputs = (y,)
    original = copy_model(found)
    options = Options(max_slowdown=1.0, cascade=False)
    changed = rewrite(found, options.profile, options.search, lambda _: None)
    assert changed.decision.is_rolled
    kinds = {operator.name for graph in changed.model.graphs for operator in graph.operators}
    assert not {"CONCATENATION", "DYNAMIC_UPDATE_SLICE"} & kinds
    assert prove(original, changed.model).proved


def test_the_bits_of_a_long_join() -> None:
    def long(branch: Branch) -> None:
        count = branch.random.randint(11, 25)
        x = joined(branch, (1, 3), 0, [1] * count)
        at = branch.random.randrange(count)
        y = branch.tensor((1, 3), x.dtype, **quantization_of(x))
        branch.run("SLICE", (x, branch.ints(at, 0), branch.ints(1, 3)), y, "SliceOptions")

    assert_exact(SLICE_OF_CONCATENATION, long, 3, 20, (LITERT,))
