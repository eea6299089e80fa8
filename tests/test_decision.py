"""A decision prints on one line, is read from it, and is carried out again without a search."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.cascade.test_search import wide_inside
from tests.command import run
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.rewrite.test_channel_tiles import text_model
from tests.rewrite.test_sequences_along_h import network as sequence
from tests.test_random_models import random_model, random_rows
from tflite_memopt.errors import ErrorKind, InfeasibleError, OptionError, UsageError
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import MENDED, NOTHING_DECIDED, Decision, decision_in
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize

OPTIONS = Options(kernels="reference", samples=2, objective="head", verify=False)


def joined_twice() -> bytes:
    """Two wide concatenations in a row, each read by a depthwise convolution: in parts they need less."""
    b = ModelBuilder()
    y = b.input("x", (1, 16, 16, 4))
    for _ in range(2):
        y = b.conv(b.depthwise(b.concat([b.conv(y, 16, seed=seed) for seed in (1, 2)])), 4, seed=3)
    return write_model(b.finish(y))


@given(
    sites=st.lists(st.sampled_from(["12", "12 15e", MENDED, "30x4"])).map(tuple),
    along=st.booleans(),
    order=st.permutations(range(7)).map(tuple),
    rolled=st.booleans(),
    tilings=st.sampled_from(["", "1-4 masked 1", "1-4 masked 1; 4-8 unrolled 8,16 rolling trim"]),
    below=st.none() | st.integers(0, 1 << 20),
    is_rewritten=st.booleans(),
)
def test_what_prints_is_read_again(
    sites: tuple[str, ...],
    along: bool,
    order: tuple[int, ...],
    rolled: bool,
    tilings: str,
    below: int | None,
    is_rewritten: bool,
) -> None:
    decision = Decision(sites, along, order, tilings, rolled, below, is_rewritten)
    assume((is_rewritten or not (sites or rolled)) and (tilings or below is None))
    own = order == tuple(range(7))
    assert decision_in(str(decision)) == (replace(decision, order=()) if own else decision)


def test_no_decision_prints_too() -> None:
    assert str(NOTHING_DECIDED) == "as it is"
    assert decision_in("as it is") == NOTHING_DECIDED


@pytest.mark.parametrize(
    "text",
    [
        *("upside down", "order 1,x", "order 2-0", "order 0-2; order 0-2", "sites 3 4y", "sites ²", "sites 3x²"),
        *("1-4 knitted 2", "0-2 masked 0", "0-2 cut -2", "0-2 clamped 0", "0-2 unrolled 2 rolling pad; below x"),
        *("below x", "below 100", "no rewrites; sites 1", "no rewrites; mended", "no rewrites; steps in loops"),
    ],
)
def test_what_is_no_decision_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        optimize(write_model(wide_inside()), replace(OPTIONS, replay=text))
    assert isinstance(caught.value, OptionError) or caught.value.kind is ErrorKind.SYNTAX


def mended_in_tiles() -> bytes:
    """A wide depthwise convolution with a stride, which esp-nn computes wrongly unless a PAD stands before it."""
    b = ModelBuilder()
    x = b.conv(b.input("x", (1, 9, 20, 4)), 64, kernel=1)
    return write_model(b.finish(b.conv(b.depthwise(x, stride=2), 4, kernel=1)))


MODELS = {
    "stripes": (write_model(wide_inside()), OPTIONS, "unrolled"),
    "a loop": (write_model(wide_inside()), replace(OPTIONS, kernels=None, target="cortex-m7", max_slowdown=1.0), "-"),
    "a sequence": (
        write_model(sequence(DType.INT8)),
        Options(verify=False, max_slowdown=1),
        "along H",
    ),
    "channels in tiles": (write_model(text_model()), replace(OPTIONS, max_slowdown=1.0), "x8"),
    "tiles of what was mended": (
        mended_in_tiles(),
        Options(target="esp32s3", verify=False, max_slowdown=1.0, cascade=False, effort="quick"),
        "mended; sites",
    ),
    "no rewrites": (joined_twice(), replace(OPTIONS, budget=1 << 20), "no rewrites"),
    "a concatenation": (joined_twice(), replace(OPTIONS, allow_approximate=True, max_slowdown=1.0), "sites"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_what_was_decided_is_done_again_without_a_search(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, options, word = MODELS[name]
    found = optimize(data, options)
    assert word in found.report.decision
    label = plan_label.decode(read_model(found.model))
    assert label is not None
    assert label.decision == found.report.decision
    for search in ("cascade.search._Cascade.run", "rewrite.stage.search", "rewrite.tiles.search"):
        monkeypatch.setattr(f"tflite_memopt.search.{search}", None)
    again = optimize(data, replace(options, replay=label.decision))
    assert again.model == found.model
    assert again.report.decision == found.report.decision


@pytest.mark.parametrize(
    "text",
    [
        "0-99 masked 1",
        "order 0-2",
        "sites 99",
        "along H",
        "steps in loops",
        "0-2 masked 1; 1-3 masked 1",
        "0-1 unrolled 3,2 rolling pad",
    ],
)
def test_what_does_not_fit_the_model_is_refused_in_one_line(text: str) -> None:
    with raises(InfeasibleError, ErrorKind.DECISION):
        optimize(write_model(wide_inside()), replace(OPTIONS, replay=text))


@pytest.mark.slow
def test_the_command_replays_a_file(tmp_path: Path) -> None:
    source, first, second = (tmp_path / name for name in ("in.tflite", "a.tflite", "b.tflite"))
    source.write_bytes(write_model(wide_inside()))
    assert _optimize(source, first, "--kernels", "reference", "--effort", "quick") == ""
    assert _optimize(source, second, "--kernels", "reference", "--replay", first) == ""
    assert first.read_bytes() == second.read_bytes()
    assert "no decision" in _optimize(source, tmp_path / "c.tflite", "--replay", source)


@pytest.mark.slow
def test_the_search_logs_its_bound(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tflite_memopt")
    optimize(write_model(wide_inside()), replace(OPTIONS, effort="quick"))
    assert "ways to cut a region looked at" in caplog.text
    assert "bound" in caplog.text


@pytest.mark.slow
def test_a_file_is_made_again_byte_for_byte_from_what_it_says(tmp_path: Path) -> None:
    """Whatever options made it, with none of them on the command line."""
    source, first = tmp_path / "in.tflite", tmp_path / "a b.tflite"
    source.write_bytes(write_model(wide_inside()))
    asked = ["--target", "cortex-m4", "--kernels", "cmsis-nn", "--effort", "quick", "--objective", "head"]
    asked += ["--max-slowdown", "100", "--tflm", "2024-01-31", "--changes", "all"]
    _optimize(source, first, *asked)
    assert _optimize(source, tmp_path / "b.tflite", "--replay", first) == ""
    assert first.read_bytes() == (tmp_path / "b.tflite").read_bytes()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": "0.0.9"}, "made by version 0.0.9, and this is "),
        ({"options": {"invented": 1}}, "with unknown options: invented"),
        ({"options": {"tflm": 3}}, "no valid tflm"),
        ({"options": {"effort": "none"}}, "choose one of"),
    ],
)
def test_what_another_version_made_is_told(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    source, made = tmp_path / "in.tflite", tmp_path / "made.tflite"
    source.write_bytes(write_model(wide_inside()))
    _optimize(source, made, "--effort", "quick")
    model = read_model(made.read_bytes())
    label = plan_label.decode(model)
    assert label is not None
    plan_label.attach(model, replace(label, **changed))
    made.write_bytes(write_model(model))
    line = _optimize(source, tmp_path / "again.tflite", "--replay", made)
    assert said in line
    assert line.count("\n") == 1
    assert (tmp_path / "again.tflite").exists() == ("version" in changed)


def _optimize(source: Path, output: Path, *more: str | Path) -> str:
    """Return the text on stderr."""
    return run("optimize", source, "-o", output, "--no-verify", *more).stderr


def test_what_makes_a_library_need_more_is_dropped_with_a_warning() -> None:
    data, options = write_model(random_model(0)), Options(verify=False, max_slowdown=1.0)
    decision = optimize(data, replace(options, kernels="reference", every_byte=True)).report.decision
    (warning,) = optimize(data, replace(options, replay=decision)).report.warnings
    assert warning.startswith("stripes of the decision dropped: with it a kernel library needs more")


def test_a_number_that_no_plan_is_below_is_told() -> None:
    data = write_model(wide_inside())
    decision = optimize(data, OPTIONS).report.decision
    found = optimize(data, replace(OPTIONS, replay=f"{decision}; below 100")).report
    assert [each.reason for each in found.refused if each.operator == "the decision"] == [
        "no plan below 100 bytes was found"
    ]


def test_options_that_are_given_stay_where_they_are_the_default_ones(tmp_path: Path) -> None:
    """Of the command line: a file that is replayed has the others."""
    source, wide, again = (tmp_path / name for name in ("in.tflite", "wide.tflite", "again.tflite"))
    source.write_bytes(write_model(wide_inside()))
    plain = ("--no-verify", "--effort", "quick")
    run("optimize", source, "-o", wide, "--target", "cortex-m7", "--max-slowdown", "100", *plain)
    refused = run("optimize", source, "-o", again, "--replay", wide, "--max-slowdown", "10", *plain)
    assert refused.returncode == 2
    assert "exceeds the limit on run time" in refused.stderr
    run("optimize", source, "-o", again, "--replay", wide, *plain)
    assert again.read_bytes() == wide.read_bytes()


@pytest.mark.slow
def test_stripes_that_only_later_rules_bring_within_the_limit_are_replayed_and_meet_a_budget() -> None:
    data = write_model(random_rows(169337))
    options = Options(target="esp32s3", max_slowdown=0.05, verify=False)
    made = optimize(data, options)
    assert optimize(data, replace(options, replay=made.report.decision)).model == made.model
    need = made.report.answer.reserve
    assert optimize(data, replace(options, budget=need)).report.within_budget


def columns(width: int, channels: int, *layers: tuple[int, int, int]) -> Model:
    """Convolutions along W: outputs, taps, and stride of each."""
    b = ModelBuilder()
    y = b.input("x", (1, 1, width, channels))
    for number, (outputs, taps, stride) in enumerate(layers):
        values = np.random.default_rng(number).integers(-9, 9, (outputs, 1, taps, y.shape[3])).astype(np.int8)
        weights = b.constant(f"w{number}", values, per_tensor(0.01, 0))
        made = b.tensor(f"y{number}", (1, 1, y.shape[2] // stride, outputs))
        options = {"padding": 0, "strideH": 1, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
        b.operator("CONV_2D", (y, weights), (made,), "Conv2DOptions", **options, fusedActivationFunction=1)
        y = made
    return b.finish(y)


@pytest.mark.parametrize(
    ("model", "limit", "said"),
    [
        (columns(64, 8, (16, 5, 2), (16, 1, 1), (16, 3, 1), (16, 5, 1), (4, 5, 2)), 0.0, "along H"),
        (columns(64, 4, (4, 5, 2), (8, 3, 2), (24, 1, 2)), 0.1, "no rewrites"),
    ],
    ids=["rows that are beyond the limit without stripes", "mended without rewrites"],
)
def test_the_decision_of_a_run_is_replayed_under_its_own_limit(model: Model, limit: float, said: str) -> None:
    data = write_model(model)
    options = Options(target="esp32s3", effort="quick", max_slowdown=limit, verify=False)
    made = optimize(data, options)
    assert said in made.report.decision
    assert optimize(data, replace(options, replay=made.report.decision)).model == made.model


def test_a_plan_for_any_kernels_is_replayed_in_the_order_that_it_was_made_in() -> None:
    """It is placed again for the kernels of the target, from the order in which its model came."""
    data = write_model(random_rows(5068))
    options = Options(target="esp32", effort="thorough", cascade=False, rewrite=False, verify=False)
    made = optimize(data, options)
    assert optimize(data, replace(options, replay=made.report.decision)).model == made.model
