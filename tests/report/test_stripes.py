"""What the picture shows of parts: rows, positions of a sequence, channels, and the turns of a loop."""

from __future__ import annotations

from dataclasses import replace

from tflite_memopt.memory.figures import ArenaMap, OperatorUse, PlacedTensor
from tflite_memopt.report.pictures.stripes import layer_rows, stripe_rows

_STEP = OperatorUse(0, 0, "CONV_2D", "y", 0, 0, 0, 0, 1, 3)
_WHOLE = PlacedTensor("y", (1, 96, 6, 24), "int8", 13_824, 0, 1, 3, "inner", 0, "none", None, ())


def pictured(shape: tuple[int, ...], start: tuple[int, ...], whole: tuple[int, ...], *turns: int) -> list[str]:
    """What is said of a part of that shape, which begins there in a tensor of the shape ``whole``."""
    part = replace(_WHOLE, name="part", shape=shape, bytes=48, origin="y", origin_start=start, origin_turns=turns)
    rows = stripe_rows(_arena(replace(_WHOLE, shape=whole)), _arena(part))
    assert all(layer["low"] <= row["low"] < row["high"] <= layer["high"] for layer in layer_rows(rows) for row in rows)
    assert all(0 <= row["start"] < row["end"] <= 2 for row in rows)
    return [row["said"].split(", ")[0] for row in rows]


def _arena(tensor: PlacedTensor) -> ArenaMap:
    return ArenaMap(0, (), 0, 4, ("main",), (tensor,), (_STEP,))


def test_rows_of_an_image() -> None:
    assert pictured((1, 8, 6, 24), (0, 16, 0, 0), (1, 96, 6, 24)) == ["rows 16 to 24 of the 96 of y"]


def test_channels_of_any_tensor() -> None:
    assert pictured((1, 24, 6, 8), (0, 0, 0, 16), (1, 24, 6, 64)) == ["channels 16 to 24 of the 64 of y"]
    assert pictured((1, 8), (0, 8), (1, 64)) == ["channels 8 to 16 of the 64 of y"]


def test_a_sequence_that_stands_upright() -> None:
    for whole in ((1, 1, 400, 16), (1, 400, 16)):
        assert pictured((1, 10, 1, 16), (0, 20, 0, 0), whole) == ["positions 20 to 30 of the 400 of y"]


def test_a_loop_shows_every_turn_and_no_rows_that_there_are_not() -> None:
    said = pictured((1, 8, 6, 24), (0, 0, 0, 0), (1, 20, 6, 24), -4, 4, 12, 20)
    assert said == ["rows 0 to 4 of the 20 of y", "rows 4 to 12 of the 20 of y", "rows 12 to 20 of the 20 of y"]


def test_what_is_whole_or_unknown_is_no_part() -> None:
    assert pictured((1, 96, 6, 24), (0, 0, 0, 0), (1, 96, 6, 24)) == []
    assert pictured((1, 96, 12, 24), (0, 0, 0, 0), (1, 96, 6, 24)) == []
    assert stripe_rows(_arena(_WHOLE), _arena(replace(_WHOLE, origin="gone"))) == []
