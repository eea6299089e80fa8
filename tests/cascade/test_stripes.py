"""The work of each stripe, as integers: nothing is missing, nothing is there that was not made or kept."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.cascade.networks import random_network, regions
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Operator, Tensor
from tflite_memopt.operators.rows import RowMap, Rows
from tflite_memopt.operators.table import operator_macs
from tflite_memopt.search.cascade.region import Region, region_of
from tflite_memopt.search.cascade.space import UNROLLED
from tflite_memopt.search.cascade.stripes import Job, Stripe, Window, cuts_at, even_ends, stripes_of

NOTHING = Window(Rows(0, 0), Rows(0, 0), Rows(0, 0))


@given(st.integers(1, 60), st.integers(1, 70), st.integers(1, 5))
def test_even_cuts_cover_all_rows_once(height: int, count: int, multiple: int) -> None:
    cuts = cuts_at(even_ends(height, count, multiple))
    assert [row for cut in cuts for row in range(cut.start, cut.end)] == list(range(height))
    assert len(cuts) == min(count, -(-height // multiple))
    assert all(cut.count > 0 for cut in cuts)
    assert all(cut.start % multiple == 0 for cut in cuts)
    counts = [-(-cut.count // multiple) for cut in cuts]
    assert max(counts) - min(counts) <= 1


@st.composite
def cut_regions(draw: st.DrawFn) -> tuple[Region, tuple[Rows, ...]]:
    """A region and any cuts of its exit, even or not."""
    model = random_network(draw(st.integers(0, 10**6)), DType.FLOAT32, draw(st.integers(1, 8)))
    found = [region for region in regions(model) if region.exit.shape[1] > 1]
    assume(found)
    found.sort(key=lambda region: -len(region.operators))
    region = found[draw(st.integers(0, min(4, len(found) - 1)))]
    height = region.exit.shape[1]
    if draw(st.booleans()):
        return region, cuts_at(even_ends(height, draw(st.integers(2, 20))))
    ends = sorted({*draw(st.lists(st.integers(1, height), max_size=12)), height})
    return region, tuple(Rows(start, end) for start, end in zip([0, *ends], ends, strict=False))


@examples(150)
@given(cut_regions(), st.sampled_from(UNROLLED))
def test_every_row_that_is_read_is_there(cut: tuple[Region, tuple[Rows, ...]], mode: tuple[str, str]) -> None:
    region, cuts = cut
    halo, edges = mode
    stripes = stripes_of(region, cuts, halo, edges)  # type: ignore[arg-type]
    if isinstance(stripes, str):
        assert stripes.endswith("padding only")
        return
    before = Stripe({}, {})
    for rows, stripe in zip(cuts, stripes, strict=True):
        check_windows(stripe, before if halo == "rolling" else None)
        check_jobs(region, stripe, rows)
        before = stripe


def check_windows(stripe: Stripe, before: Stripe | None) -> None:
    """A window is what is kept and then what is made; what is kept was there in the stripe before."""
    for tensor, window in stripe.windows.items():
        assert [*numbers(window.kept), *numbers(window.made)] == numbers(window.needed)
        assert 0 <= window.needed.start <= window.needed.end <= tensor.shape[1]
        there = NOTHING if before is None else before.windows.get(tensor, NOTHING)
        assert set(numbers(window.kept)) <= set(numbers(there.needed))


def check_jobs(region: Region, stripe: Stripe, rows: Rows) -> None:
    for operator, way in zip(region.operators, region.row_maps, strict=True):
        output, job = operator.outputs[0], stripe.jobs.get(operator)
        made = rows if output is region.exit else stripe.windows[output].made
        if job is None:
            assert not made.count
            continue
        assert job.wanted == made
        assert set(numbers(job.wanted)) <= set(numbers(job.computed))
        for tensor in (operator.inputs[slot] for slot in way.sliced):
            assert tensor is not None
            there = Rows(0, tensor.shape[1]) if tensor in region.inputs else stripe.windows[tensor].needed
            assert set(numbers(job.read)) <= set(numbers(there))
        if way.is_window:
            check_window_job(operator, way, job)


def check_window_job(operator: Operator, way: RowMap, job: Job) -> None:
    """Every wanted row sees, tap by tap, the rows of the whole image that it sees in the whole operator."""
    taps = operator.inputs[1].shape[1] if operator.name.endswith("CONV_2D") else operator.option("filterHeight")  # type: ignore[union-attr]
    window = taps, int(operator.option("strideH")), int(operator.option("dilationHFactor", 1))
    whole = seen(way.rows.size, *window, operator.option("padding"))
    assert len(whole) == way.rows.outputs
    if job.padding is None:
        part = seen(job.read.count, *window, operator.option("padding"))
    else:
        above, below, _, _ = job.padding
        inner = seen(above + job.read.count + below, *window, VALID)
        part = [
            [tap - above if 0 <= tap - above < job.read.count else None for tap in row if tap is not None]
            for row in inner
        ]
    assert len(part) == job.computed.count
    for row in numbers(job.wanted):
        shifted = [None if tap is None else tap + job.read.start for tap in part[row - job.computed.start]]
        assert shifted == whole[row]


def seen(size: int, taps: int, stride: int, dilation: int, padding: int) -> list[list[int | None]]:
    """Rows under each tap of each window, None in the padding: tensorflow/lite/kernels/padding.h by hand."""
    reach = (taps - 1) * dilation + 1
    outputs = (size + stride - 1) // stride if padding == SAME else (size + stride - reach) // stride
    total = max(0, (outputs - 1) * stride + reach - size) if padding == SAME else 0
    starts = [row * stride - total // 2 for row in range(outputs)]
    rows = [[start + tap * dilation for tap in range(taps)] for start in starts]
    return [[row if 0 <= row < size else None for row in window] for window in rows]


def numbers(rows: Rows) -> list[int]:
    return list(range(rows.start, rows.end))


@examples(60)
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_rolling_makes_each_row_of_a_chain_once(seed: int, count: int) -> None:
    kinds = ("conv", "depthwise", "average", "relu", "scale")
    rng = random.Random(seed)
    model = random_network(seed, DType.FLOAT32, rng.randint(1, 5), rng.randint(8, 24), kinds)
    operators = chain_above(model.main.operators)
    region = region_of(model.main, operators)
    assume(isinstance(region, Region) and region.exit.shape[1] > 1)
    assert isinstance(region, Region)
    stripes = stripes_of(region, cuts_at(even_ends(region.exit.shape[1], count)), "rolling", "trim")
    assert not isinstance(stripes, str)
    for operator in region.operators:
        made = [row for stripe in stripes if operator in stripe.jobs for row in numbers(stripe.jobs[operator].wanted)]
        assert made == sorted(set(made)), operator.outputs[0].name


def chain_above(operators: Sequence[Operator]) -> list[Operator]:
    """The longest run of operators, each the only reader of the one before."""
    found = [operators[-1]]
    while True:
        writer = found[0].inputs[0].producer if found[0].inputs[0] is not None else None
        if writer is None or len(writer.outputs[0].uses) != 1:
            return found
        found.insert(0, writer)


def two_convs(padding: int = VALID) -> tuple[ModelBuilder, list[Operator], Tensor]:
    """The example of the cascading RFC: 26x26x3 -> 24x24x32 -> 24x24x8 (the second one is SAME here)."""
    b = ModelBuilder()
    x = b.input("x", (1, 26, 26, 3))
    y = b.conv(b.conv(x, 32, kernel=3, padding=padding), 8, kernel=3)
    b.finish(y)
    return b, list(b.graph.operators), y


@pytest.mark.parametrize(("halo", "rows"), [("recompute", [7, 8, 8, 7]), ("rolling", [7, 6, 6, 5])])
def test_the_halo_of_two_convolutions(halo: str, rows: list[int]) -> None:
    b, operators, _ = two_convs()
    region = region_of(b.graph, operators)
    assert isinstance(region, Region)
    stripes = stripes_of(region, cuts_at(even_ends(24, 4)), halo, "pad")  # type: ignore[arg-type]
    assert not isinstance(stripes, str)
    assert [stripe.jobs[operators[0]].wanted.count for stripe in stripes] == rows
    assert [stripe.jobs[operators[1]].padding for stripe in stripes] == [
        (1, 0, 1, 1),
        *[(0, 0, 1, 1)] * 2,
        (0, 1, 1, 1),
    ]
    assert operator_macs(operators[0]) > 0


def test_a_stripe_of_padding_only_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 2, 4, 2))
    y = b.tensor("y", (1, 8, 4, 2))
    paddings = np.asarray([[0, 0], [3, 3], [0, 0], [0, 0]], np.int32)
    pad = b.operator("PAD", (x, b.constant("paddings", paddings)), (y,), "PadOptions")
    b.finish(y)
    region = region_of(b.graph, [pad])
    assert isinstance(region, Region)
    assert "'y'" in str(stripes_of(region, cuts_at(even_ends(8, 4)), "recompute", "pad"))
    assert not isinstance(stripes_of(region, cuts_at(even_ends(8, 2)), "recompute", "pad"), str)
