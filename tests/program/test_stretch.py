"""What is known of stretches, and what the search for cuts must not miss."""

from __future__ import annotations

import pytest

from tests.model_builder import ModelBuilder
from tests.program.test_program_firmware import MODELS
from tflite_memopt import Options
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.parts.stretch import StretchCosts

QUICK = Options(target="cortex-m4", verify=False, effort="quick")


def test_a_longer_stretch_frees_what_crosses_an_end_of_a_shorter_one() -> None:
    costs = StretchCosts(MODELS["separable"](), QUICK, lambda _: None)
    first, second = (operator.outputs[0].nbytes for operator in costs.model.main.operators[:2])
    assert costs.freed((0, 2), (0, 4)) == second
    assert costs.freed((1, 2), (0, 4)) == first + second
    assert costs.freed((1, 2), (1, 2)) == 0


def wide(*widths: int) -> bytes:
    """A wide layer before a pool of all rows: channels in tiles need far less than stripes."""
    b = ModelBuilder()
    y = b.input("x", (1, 20, 20, 4))
    for at, width in enumerate(widths):
        y = b.depthwise(b.conv(y, width, seed=10 * at + 4), seed=10 * at + 5)
        y = b.conv(y, 4, seed=6) if at + 1 < len(widths) else y
    return write_model(b.finish(b.conv(b.average_pool(y, 20), 10, seed=9)))


@pytest.mark.slow
def test_a_cut_between_tiles_of_channels_is_found() -> None:
    """Bounds of stripes alone hid it: 12,240 bytes as one, 10,336 in two parts."""
    program = optimize_in_parts(wide(32, 64), Options(target="cortex-m4", max_slowdown=0.3, verify=False), 2).program
    assert len(program.parts) == 2
    assert program.arena <= 10_336
