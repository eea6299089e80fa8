"""The example of TVM's RFC on cascading: two convolutions, the first one widens, the second one narrows.

    image 26x26x3 --A: 3x3, 32 channels--> 24x24x32 --B: 1x1, 8 channels--> 24x24x8        int8, no padding

The RFC computes A in 16 tiles of 6x6x32 and lets B use up each tile before the next. TFLM can cut rows without a copy,
and no columns: here the tiles are stripes, rows as wide as the image. docs/how_it_works.md draws both.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scripts.makers.mechanisms import halo_alone
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, analyze, optimize, verify
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import Model
from tflite_memopt.run.pipeline import Result
from tflite_memopt.search.cascade.stripes import even_ends
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings

WHOLE = 24 * 24 * 32
"""A's output."""
TILES, TILE = 16, 6 * 6 * 32
"""The RFC's tiles, and the bytes of A's output that are alive at once with them."""
IMAGE, RESULT = 26 * 26 * 3, 24 * 24 * 8
PLAN_ONLY = Options(rewrite=False, cascade=False, planner="greedy_by_breadth", samples=3, runtimes=("tflm",))
"""Without a search: what is found does not depend on the load of the machine."""


def two_convolutions() -> Model:
    """A and B, with random weights."""
    b = ModelBuilder()
    image = b.input("image", (1, 26, 26, 3))
    return b.finish(b.conv(b.conv(image, 32, kernel=3, padding=VALID, seed=1), 8, seed=2))


def in_stripes(count: int, options: Options) -> Result:
    """The example in so many stripes, ordered and planned; TFLM computes the same bits as from the whole one."""
    model = two_convolutions()
    apply_tilings(model, [Tiling(0, 2, Unrolled(even_ends(24, count), "recompute", "pad"))])
    result = optimize(write_model(model), options)
    assert verify(write_model(two_convolutions()), result.model, PLAN_ONLY)["tflm"].equal is True
    return result


def inside(result: Result, kernels: str) -> int:
    """Bytes of A's output that are alive at once, at most."""
    steps = analyze(result.model, kernels).steps
    return max(sum(each.bytes for each in step.live if each.name.startswith("conv0")) for step in steps)


def test_the_table_of_the_rfc() -> None:
    a, b = two_convolutions().main.operators
    shapes = [[t.shape for t in (op.inputs[0], op.inputs[1], op.outputs[0]) if t is not None] for op in (a, b)]
    # TFLite keeps weights as OHWI, the RFC writes HWIO.
    assert shapes == [
        [(1, 26, 26, 3), (32, 3, 3, 3), (1, 24, 24, 32)],
        [(1, 24, 24, 32), (8, 1, 1, 32), (1, 24, 24, 8)],
    ]
    assert a.outputs[0].nbytes == WHOLE == 18_432  # "18.4 kB"
    # The RFC says 3.9 kB, which is no multiple of 24 x 24 either: 24 * 24 * 8 bytes are 4.6 kB.
    assert b.outputs[0].nbytes == RESULT == 4_608
    assert TILES * TILE == WHOLE
    assert TILE == 1_152  # "~ 1.2 kB"


def test_layer_by_layer_all_of_the_middle_is_alive() -> None:
    report = optimize(write_model(two_convolutions()), PLAN_ONLY).report
    assert report.after.tflm["head"] == WHOLE + RESULT == 23_040


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_a_stripe_of_one_row_is_smaller_than_a_tile(kernels: str) -> None:
    result = in_stripes(24, replace(PLAN_ONLY, kernels=kernels))
    assert inside(result, kernels) == 24 * 32 == 768 < TILE
    assert result.report.after.tflm["head"] == result.report.after.arena_bytes < IMAGE + TILE + RESULT


@pytest.mark.slow
@pytest.mark.parametrize(("kernels", "planner"), [("portable", "best"), ("reference", "strip_packing_best_fit")])
def test_twelve_stripes_need_the_smallest_head_and_no_more_macs(kernels: str, planner: str) -> None:
    quick = replace(PLAN_ONLY, rewrite=True, planner=planner, kernels=kernels)
    result = in_stripes(12, quick)
    report = result.report
    assert inside(result, kernels) == 2 * 24 * 32
    # The output grows while the image shrinks: at the end there are the output and one stripe of the middle.
    assert report.after.tflm["head"] == RESULT + 2 * 24 * 32 == 6_144
    # Tiles cut out of the image at both axes do not let go of it before the last one.
    assert 6_144 < IMAGE + TILE + RESULT == 7_788
    assert report.after.macs == sum(24 * 24 * each for each in (32 * 27, 8 * 32))


@pytest.mark.slow
def test_the_search_finds_a_head_below_the_tiles() -> None:
    options = replace(PLAN_ONLY, objective="head", cascade=True)
    with halo_alone("rolling"):
        report = optimize(write_model(two_convolutions()), options).report
    assert report.equivalence["tflm"].equal is True
    assert report.after.tflm["head"] == report.after.arena_bytes < IMAGE + TILE + RESULT
    assert report.after.macs == report.before.macs
