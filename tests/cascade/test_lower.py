"""Stripes compute the same bytes as the whole, on TFLM and on LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.networks import ENLARGING, EVERY, KEEPING_ROWS, TYPES, random_network, regions
from tests.dump import dump_model
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tests.tflm import run_tflm
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.evidence.equivalence import litert
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.search.cascade.lower import lower
from tflite_memopt.search.cascade.region import Region, region_of
from tflite_memopt.search.cascade.space import UNROLLED
from tflite_memopt.search.cascade.stripes import Edges, Halo, cuts_at, even_ends, stripes_of
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings

ARENA = 4 << 20
GOLDEN = Path(__file__).with_name("golden_residual.txt")


def in_stripes(model: Model, region: Region, count: int, halo: Halo, edges: Edges) -> Model | str:
    """A copy of the model with the region in stripes, or the reason why it cannot be."""
    copied = copy_model(model)
    at = model.main.operators.index(region.operators[0])
    twin = region_of(copied.main, copied.main.operators[at : at + len(region.operators)])
    assert isinstance(twin, Region)
    stripes = stripes_of(twin, cuts_at(even_ends(twin.exit.shape[1], count)), halo, edges)
    if isinstance(stripes, str):
        return stripes
    lower(copied, copied.main, twin, stripes)
    check_model(copied)
    return copied


def assert_equal(model: Model, *others: Model) -> None:
    """The others compute the same bytes, on both interpreters."""
    samples = seeded_inputs(model, 2, 0)
    for run in (run_tflm, litert.run_litert):
        expected = run(RunJob(write_model(model), samples, ARENA)).arrays
        for other in others:
            found = run(RunJob(write_model(other), samples, ARENA)).arrays
            assert found.keys() == expected.keys()
            for key, array in expected.items():
                assert array.tobytes() == found[key].tobytes(), (run.__name__, key)


@pytest.mark.slow
@examples(60)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    count=st.integers(2, 20),
    longest=st.booleans(),
    stacked=st.booleans(),
)
def test_any_region_in_stripes_computes_the_same(
    seed: int, dtype: DType, layers: int, count: int, longest: bool, stacked: bool
) -> None:
    model = random_network(seed, dtype, layers, kinds=EVERY, stacked=stacked)
    found = sorted(regions(model), key=lambda region: -len(region.operators))
    found = [region for region in found if region.exit.shape[1] > 1]
    if not found:
        return
    region = found[0] if longest else found[seed % len(found)]
    striped = [in_stripes(model, region, count, halo, edges) for halo, edges in UNROLLED]
    assert_equal(model, *(each for each in striped if isinstance(each, Model)))


def residual() -> Model:
    """A residual block: a SAME convolution over six rows, a depthwise one of stride 1, and their sum; then a stride."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 4, 2))
    y = b.add(x, b.conv(x, 2, kernel=3, seed=1))
    return b.finish(b.depthwise(y, stride=2, seed=2))


def whole(model: Model) -> Region:
    region = region_of(model.main, model.main.operators)
    assert isinstance(region, Region)
    return region


def residual_in_stripes(count: int, halo: Halo, edges: Edges) -> Model:
    model = residual()
    striped = in_stripes(model, whole(model), count, halo, edges)
    assert isinstance(striped, Model)
    return striped


def test_the_dumps_of_the_four_modes_are_the_golden_ones() -> None:
    found = [f"# {halo}, {edges}\n{dump_model(residual_in_stripes(3, halo, edges))}" for halo, edges in UNROLLED]
    assert "\n".join(found) == GOLDEN.read_text()


@pytest.mark.parametrize(("halo", "edges"), UNROLLED)
def test_weights_are_the_same_tensors_and_outputs_keep_their_name(halo: Halo, edges: Edges) -> None:
    model = residual()
    region = whole(model)
    weights = {operator.name: operator.inputs[1:] for operator in region.operators if "CONV" in operator.name}
    exit_ = region.exit
    stripes = stripes_of(region, cuts_at(even_ends(3, 3)), halo, edges)
    assert not isinstance(stripes, str)
    lower(model, model.main, region, stripes)
    for operator in model.main.operators:
        if operator.name in weights:
            assert all(a is b for a, b in zip(operator.inputs[1:], weights[operator.name], strict=True))
    assert model.main.outputs == (exit_,)
    (joined,) = [each for each in model.main.operators if each.outputs[0] is exit_]
    assert [tensor.name.split("/")[:2] for tensor in joined.present_inputs()] == [
        ["depthwise2", f"stripe{n}of3"] for n in (1, 2, 3)
    ]
    names = [tensor.name for tensor in model.main.tensors]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("count", "parts"), [(2, [2]), (10, [10]), (11, [5, 6, 2]), (101, None)])
def test_joins_have_at_most_ten_inputs(count: int, parts: list[int] | None) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, count, 2, 1))
    model = b.finish(b.conv(x, 1, seed=1))
    striped = in_stripes(model, whole(model), count, "recompute", "trim")
    assert isinstance(striped, Model)
    joins = [len(each.inputs) for each in striped.main.operators if each.name == "CONCATENATION"]
    assert max(joins) <= 10
    assert parts is None or joins == parts
    assert_equal(model, striped)


def test_more_stripes_than_rows_are_as_many_as_there_are_rows() -> None:
    assert dump_model(residual_in_stripes(40, "recompute", "pad")) == dump_model(
        residual_in_stripes(3, "recompute", "pad")
    )


def test_neighboring_regions_and_an_input_that_lives_on() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 9, 5, 2))
    first = b.conv(b.conv(x, 4, kernel=3, seed=1), 2, kernel=3, stride=2, seed=2)
    second = b.depthwise(b.depthwise(first, seed=3), kernel=5, seed=4)
    model = b.finish(b.average_pool(b.add(second, first), 2), first, x)
    for halo, edges in UNROLLED:
        striped = copy_model(model)
        chosen = [Tiling(0, 2, Unrolled((1, 2, 3, 5), halo, edges)), Tiling(2, 5, Unrolled((1, 3, 5), halo, edges))]
        apply_tilings(striped, chosen)
        check_model(striped)
        assert_equal(model, striped)


def test_a_tiling_that_is_no_region_says_why() -> None:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 6, 4, 2)), 2, seed=1)
    model = b.finish(y, b.conv(y, 2, seed=2))
    with raises(InfeasibleError, ErrorKind.DECISION, "0 to 2", "'conv0'"):
        apply_tilings(model, [Tiling(0, 2, Unrolled((3, 6), "recompute", "pad"))])


@pytest.mark.parametrize("ends", [(1, 2, 3, 4), (1, 2), (2, 1, 3), (1, 1, 3), ()])
def test_stripes_that_do_not_make_up_the_rows_are_refused(ends: tuple[int, ...]) -> None:
    with raises(InfeasibleError, ErrorKind.DECISION, "'0-3 unrolled "):
        apply_tilings(residual(), [Tiling(0, 3, Unrolled(ends, "recompute", "pad"))])


def test_a_tiling_with_a_stripe_of_padding_says_why() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 2, 4, 2)), b.tensor("y", (1, 8, 4, 2))
    paddings = np.asarray([[0, 0], [3, 3], [0, 0], [0, 0]], np.int32)
    b.operator("PAD", (x, b.constant("paddings", paddings)), (y,), "PadOptions")
    with raises(InfeasibleError, ErrorKind.DECISION, "'0-1 unrolled 2,4,6,8 recompute pad'", "'y'"):
        apply_tilings(b.finish(y), [Tiling(0, 1, Unrolled((2, 4, 6, 8), "recompute", "pad"))])


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [*ENLARGING, "space_to_depth", "dense", "tanh", "matmul", "mirror", *KEEPING_ROWS, "found"]
)
@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_each_operator_alone_is_cut_into_stripes_of_any_height(kind: str, dtype: DType) -> None:
    """Even heights and odd ones: rows that come of one row are in different stripes."""
    tried = 0
    for seed in range(5):
        layers = (kind,) if kind != "reshape" else ("average", "reshape", "tanh")
        model = random_network(seed, dtype, len(layers), height=6 + 2 * seed, kinds=layers)
        found = [region for region in regions(model) if region.operators[-1].name not in ("RELU", "QUANTIZE")]
        others = []
        for region in found:
            for count in (2, 3, 5):
                for mode in UNROLLED:
                    striped = in_stripes(model, region, count, *mode)
                    assert isinstance(striped, Model), striped
                    others.append(striped)
        assert_equal(model, *others)
        tried += len(others)
    assert tried
