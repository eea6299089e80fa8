"""What is known of stretches, and what the search for cuts must not miss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model_builder import ModelBuilder
from tests.models import ALL
from tests.program.test_program_firmware import MODELS
from tflite_memopt import Options
from tflite_memopt.memory.work import instructions
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.parts.stretch import SHARE, StretchCosts

QUICK = Options(target="cortex-m4", verify=False, effort="quick")


def test_a_longer_stretch_frees_what_crosses_an_end_of_a_shorter_one() -> None:
    costs = StretchCosts(MODELS["separable"](), replace(QUICK, objective="head"), lambda _: None)
    first, second = (operator.outputs[0].nbytes for operator in costs.model.main.operators[:2])
    assert costs.more((0, 2), (0, 4)) == -second
    assert costs.more((1, 2), (0, 4)) == -first - second
    assert costs.more((1, 2), (1, 2)) == 0
    whole = StretchCosts(costs.model, QUICK, lambda _: None)
    assert whole.more((0, 2), (0, 4)) == whole.least_tail((0, 4)) - whole.least_tail((0, 2)) - second


@pytest.mark.slow
@pytest.mark.parametrize("max_slowdown", [0.1, 1.0])
def test_a_part_needs_about_what_is_drafted(max_slowdown: float) -> None:
    """For each need that is drafted, within the work of the draft or within all that there is for it."""
    costs = StretchCosts(MODELS["separable"](), replace(QUICK, max_slowdown=max_slowdown), lambda _: None)
    for stretch in [(0, 2), (0, 7), (0, costs.positions[-1]), (3, 6), (5, costs.positions[-1])]:
        drafts = costs.draft(stretch)
        made = dict[int, list[int]]()
        for limit, draft in enumerate(drafts):
            price = costs.measure(stretch, limit)
            assert price is not None
            assert price.work <= max(draft.work, costs.least_work(stretch)) + 0.1 * SHARE
            made.setdefault(draft.need, []).append(price.need)
        assert all(0.8 * min(needs) <= need <= 1.2 * min(needs) for need, needs in made.items())
        assert [each.need for each in drafts] == sorted(each.need for each in drafts)


def mended() -> Model:
    """Images of 48 rows, whose padding esp-nn computes wrongly: what mends them takes more work than they do."""
    b = ModelBuilder()
    y = b.conv(b.input("image", (1, 48, 48, 3)), 4, kernel=3, stride=2, seed=1)
    for seed in range(6):
        y = b.conv(y, 4, kernel=3, seed=seed) if seed % 2 else b.depthwise(y, seed=seed)
    y = b.conv(y, 2, kernel=1, stride=2, seed=4)
    for seed in range(3):
        y = b.conv(y, 16, kernel=3, seed=seed)
    return b.finish(b.dense(b.reshape(b.average_pool(y, y.shape[1]), (1, 16)), 4))


@pytest.mark.slow
def test_no_part_may_add_more_than_its_share() -> None:
    """Rules and mends may make a part slower than it is; a draft counts from what they make."""
    costs = StretchCosts(mended(), replace(QUICK, target="esp32s3", max_slowdown=1.0), lambda _: None)
    for stretch in ((0, 1), (0, 6)):
        limits = [costs.options_for(stretch, limit).max_slowdown for limit in range(len(costs.draft(stretch)))]
        assert all(0 <= limit <= 1 for limit in limits)


class BehindAFront(StretchCosts):
    """As where a front saves three times what may be added."""

    def least_work_before(self, at: int) -> int:
        return -3 * SHARE if at else 0


def test_parts_behind_a_front_that_saves_work_are_drafted_whatever_rows_cost() -> None:
    """In rows a model may take more than it may add to the original."""
    model = MODELS["separable"]()
    original = {name: int(each / 1.2) for name, each in instructions(model, QUICK.profile).items()}
    costs = BehindAFront(model, QUICK, lambda _: None, original=original)
    assert costs.most_work < 0
    assert costs.draft((0, 2)) == []
    assert min(each.need for each in costs.draft((2, 6))) > 0


def test_a_draft_is_of_the_best_order() -> None:
    """In the model's own order no stripes lower the need: 5,458 bytes; in another one 4,624 and 4,582 are drafted."""
    costs = StretchCosts(ALL["irregular_model"](), replace(QUICK, max_slowdown=1.0), lambda _: None)
    whole = (0, costs.positions[-1])
    drafts = costs.draft(whole)
    price = costs.measure(whole, 0)
    assert price is not None
    assert max(price.need, drafts[0].need) < 5_000


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
