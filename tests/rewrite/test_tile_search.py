"""Tiles that a kernel library can only bear with what comes after them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tflite_memopt
from tests.models import mobile_chain
from tflite_memopt.memory.arrange import Arrangement
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.search.rewrite.stage import SPLITS, start_of
from tflite_memopt.search.rewrite.tiles import TileSearch, _above, _is_whole_fan_out, _tensors_gone

UNPROVED = Options(verify=False, effort="quick")
TILES, AFTER = "2 channel_tiles", "lean_reshape"


def rules_of(model: Model) -> list[str]:
    return [use.rule for use in tflite_memopt.optimize(write_model(model), UNPROVED).report.rewrites]


def is_lean(model: Model) -> bool:
    """Whether no reshape has its shape as an input."""
    return all(len(each.inputs) == 1 for each in model.main.operators if each.name == "RESHAPE")


@pytest.mark.slow
@pytest.mark.parametrize("bears_the_end", [False, True])
def test_tiles_are_judged_with_what_comes_after_them(bears_the_end: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No library bears the tiles alone; with the rules for the end there is one that decides."""

    def fitting(_: TileSearch, model: Model, found: Arrangement) -> Arrangement | None:
        has_tiles = sum(each.name == "DEPTHWISE_CONV_2D" for each in model.main.operators) > plain
        return found if not has_tiles or (bears_the_end and is_lean(model)) else None

    model = mobile_chain(32)
    plain = sum(each.name == "DEPTHWISE_CONV_2D" for each in model.main.operators)
    rules = rules_of(model)
    assert any(TILES in rule for rule in rules)
    assert any(AFTER in rule for rule in rules)
    monkeypatch.setattr(TileSearch, "_fitting", fitting)
    assert any(TILES in rule for rule in rules_of(model)) == bears_the_end


def test_tiles_do_away_with_tensors_below_them_alone() -> None:
    """That is why the search looks only at operators above the tensors of a peak."""
    model = mobile_chain(32)
    start = replace(start_of(model, SPLITS, UNPROVED.search), tiles=(2,))
    gone = {at: _tensors_gone(start, at) for at, each in enumerate(model.main.operators) if _is_whole_fan_out(each)}
    assert any(gone.values())
    for at, names in gone.items():
        assert all(model.main.operators[at] in _above(model, {name}) for name in names)
