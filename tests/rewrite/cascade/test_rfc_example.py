r"""The two convolutions of TVM's cascading RFC, its table, and what stripes make of them on TFLM.

    image 26x26x3 --A: 3x3, 32 channels--> 24x24x32 --B: 1x1, 8 channels--> 24x24x8        int8, VALID
       2,028 bytes                          18,432                             4,608

The RFC gives 18.4 kB for A's output, which is this figure, and 3.9 kB for B's, which is not: 24 * 24 * 8 is 4,608. It
cuts A's output into 16 tiles of 6x6x32 (1,152 bytes, its "1.2 kB"). Stripes are whole rows: contiguous, so views.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import tflite_memopt
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import VALID, ModelBuilder
from tflite_memopt.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result
from tflite_memopt.striping import Cascade, apply_cascades

IMAGE, BETWEEN, RESULT = 26 * 26 * 3, 24 * 24 * 32, 24 * 24 * 8
TILES = 16
TILE = 6 * 6 * 32
RFC_BYTES = IMAGE + TILE + RESULT
"""What its tiles need at best, with input and output whole."""
QUICK = Options(scheduler="as_is", planner="strip_packing_best_fit", time_limit=10, samples=20, runtimes=("tflm",))
"""No search for order and plan, so that the load of the machine does not matter; the defaults find smaller heads."""


def example() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("image", (1, 26, 26, 3)), 32, kernel=3, seed=1, padding=VALID)
    return b.finish(b.conv(y, 8, seed=2, padding=VALID))


def in_stripes(count: int, kernels: str = "portable") -> Result:
    """Ordered and planned, and both graphs run on TFLM: equal to the bit, or there is no result."""
    model = example()
    apply_cascades(model, [Cascade(0, 2, count, "recompute", "trim")])
    options = replace(QUICK, kernels=kernels, samples=2, cascade=False)
    result = tflite_memopt.optimize(write_model(model), options)
    verdicts = tflite_memopt.verify(write_model(example()), result.model, QUICK)
    assert verdicts["tflm"].equal
    assert result.report.after.tflm["head"] == result.report.after.arena_bytes
    return result


def alive_at_once(model: Model, prefix: str) -> int:
    """Most bytes of tensors with such a name that lie between two operators or are touched by one."""
    operators = model.main.operators
    tensors = [each for each in model.main.tensors if each.name.startswith(prefix) and not each.is_constant]
    steps = {
        each: [at for at, op in enumerate(operators) if each in op.outputs or each in op.present_inputs()]
        for each in tensors
    }
    return max(sum(t.nbytes for t in tensors if steps[t][0] <= at <= steps[t][-1]) for at in range(len(operators)))


def test_the_table_of_the_rfc() -> None:
    a, b = example().main.operators
    assert [(op.inputs[0].shape, op.inputs[0].nbytes) for op in (a, b) if op.inputs[0]] == [
        ((1, 26, 26, 3), IMAGE),
        ((1, 24, 24, 32), BETWEEN),
    ]
    assert (b.outputs[0].shape, b.outputs[0].nbytes) == ((1, 24, 24, 8), RESULT)
    assert f"{a.outputs[0].nbytes / 1000:.1f} kB" == "18.4 kB"
    assert BETWEEN == TILES * TILE
    assert f"{TILE / 1000:.1f} kB" == "1.2 kB"


def test_layer_by_layer_all_of_the_intermediate_is_needed() -> None:
    report = tflite_memopt.optimize(write_model(example()), replace(QUICK, cascade=False)).report
    assert report.after.tflm["head"] == BETWEEN + RESULT == 23_040


def test_stripes_keep_less_of_the_intermediate_than_the_tiles() -> None:
    result = in_stripes(24)
    assert alive_at_once(read_model(result.model), "conv0") == 24 * 32 == 768 < TILE
    assert result.report.after.macs == tflite_memopt.analyze(write_model(example())).memory.macs


@pytest.mark.parametrize(
    ("kernels", "count", "head"),
    [("portable", 4, 9_216), ("portable", 12, 6_400), ("reference", 12, 6_144)],
)
def test_the_head_that_tflm_measures(kernels: str, count: int, head: int) -> None:
    after = in_stripes(count, kernels).report.after
    assert after.tflm["head"] == head
    assert after.macs == tflite_memopt.analyze(write_model(example())).memory.macs


@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_what_the_search_finds_is_below_the_tiles_with_input_and_output(kernels: str) -> None:
    result = tflite_memopt.optimize(
        write_model(example()), replace(QUICK, kernels=kernels, objective="head", max_extra_macs=0)
    )
    before, after = result.report.before, result.report.after
    assert result.report.equivalence["tflm"].equal
    assert after.tflm["head"] == after.arena_bytes < RFC_BYTES == 7_788
    assert after.macs == before.macs
    assert alive_at_once(read_model(result.model), "conv0") <= 3 * TILE
