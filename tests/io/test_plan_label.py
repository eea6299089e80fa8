"""The label beside a plan: written with it, read back, and shown."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from tests.faults import raises
from tests.firmware.generated import generate
from tests.memory.loops import placement_of
from tests.model_builder import ModelBuilder
from tests.models import concat_model
from tflite_memopt import Options, analyze, optimize
from tflite_memopt.errors import ErrorKind, ModelFormatError
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.arrange import reuse_in_force
from tflite_memopt.memory.file import attach_plan
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.plan_label import LABEL_NAME, PlanLabel
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import NOTHING_DECIDED
from tflite_memopt.model.ir.model import Buffer
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import analysis_document
from tflite_memopt.version import __version__


def overlapping() -> bytes:
    b = ModelBuilder()
    x = b.input("x", (1, 16, 16, 8))
    return write_model(b.finish(b.depthwise(b.depthwise(x, seed=1), seed=2)))


def _made(kernels: str, target: str | None, overlaps: bool) -> PlanLabel:
    """By this version, without stripes, where nothing was decided."""
    return PlanLabel(kernels, target, overlaps, str(NOTHING_DECIDED), __version__, {"cascade": False})


def test_a_label_survives_the_file() -> None:
    model, label = concat_model(), replace(_made("cmsis-nn-dsp", "cortex-m7", True), version="9.9")
    plan_label.attach(model, PlanLabel("portable", None, False))
    plan_label.attach(model, label)
    found = read_model(write_model(model))
    assert plan_label.decode(found) == label
    assert [name for name, _ in found.metadata].count(LABEL_NAME) == 1
    plan_label.attach(found, None)
    assert plan_label.decode(found) is None
    assert len(found.buffers) == len(concat_model().buffers)


@pytest.mark.parametrize(
    ("target", "kernels", "expected"),
    [
        (None, None, _made("portable", None, False)),
        (None, "portable", _made("portable", None, False)),
        ("cortex-m7", None, _made("cmsis-nn-dsp", "cortex-m7", True)),
        ("cortex-m7", "portable", _made("portable", "cortex-m7", False)),
    ],
)
def test_a_plan_says_what_it_is_for(target: str | None, kernels: str | None, expected: PlanLabel) -> None:
    result = optimize(overlapping(), Options(verify=False, cascade=False, target=target, kernels=kernels))
    assert analyze(result.model).planned_for == expected
    assert any("links these kernels" in warning for warning in result.report.warnings) == expected.overlaps


def test_what_shared_code_writes_over_its_input_is_right_with_any_kernels() -> None:
    b = ModelBuilder()
    image, rows = b.input("image", (1, 8, 4, 4)), b.input("rows", (1, 1, 4, 8))
    output = b.tensor("output", (1, 8, 4, 8))
    begin = b.constant("begin", np.zeros(4, np.int32))
    b.operator("DYNAMIC_UPDATE_SLICE", (b.concat([image, image]), rows, begin), (output,))
    model = b.finish(output)
    placement = placement_of(model)
    assert any(use.kind != "view" for use in reuse_in_force(placement))
    attach_plan(model, profile_named("portable"), placement, model, NOTHING_DECIDED, {})
    data = write_model(model)
    assert analyze(data).planned_for == PlanLabel("portable", None, False, str(NOTHING_DECIDED), __version__)
    assert b"Correct with any kernels." in generate(data, "cortex-m7")["arena.h"]


def test_a_model_without_a_plan_has_no_label() -> None:
    assert analyze(overlapping()).planned_for is None


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"\xff", b'{"kernels": "x"}', b"[]", b"[" * 100_000),
        b'{"kernels": "x", "target": null, "overlaps": 0, "options": 1}',
    ],
)
def test_a_damaged_label_is_refused(data: bytes) -> None:
    model = concat_model()
    model.metadata.append((LABEL_NAME, Buffer(np.frombuffer(data, np.uint8))))
    with raises(ModelFormatError, ErrorKind.DAMAGED, LABEL_NAME):
        plan_label.decode(model)


def test_what_the_original_says_of_itself_stays_where_nothing_is_decided() -> None:
    """Else a file that is optimized once more could not be made again of what it came from."""
    first = optimize(overlapping(), Options(verify=False, cascade=False, planner="greedy_by_breadth"))
    again = optimize(first.model, Options(verify=False, loops=False))
    assert analyze(again.model).planned_for == PlanLabel(
        "portable",
        None,
        False,
        str(NOTHING_DECIDED),
        __version__,
        {"cascade": False, "planner": "greedy_by_breadth", "loops": False},
    )


def test_analyze_says_what_made_the_file() -> None:
    made = optimize(overlapping(), Options(verify=False, cascade=False)).model
    console = Console(width=400, record=True, file=StringIO())
    console.print(text_of(analysis_document(analyze(made))))
    assert f"made by tflite-memopt {__version__} with cascade=false" in console.export_text()


@pytest.mark.parametrize(
    ("overlaps", "kernels", "is_wrong"),
    [(True, "cmsis-nn", False), (True, "esp-nn", True), (False, "cmsis-nn", False), (False, "esp-nn", False)],
)
def test_a_plan_without_overlaps_is_right_with_any_kernels(overlaps: bool, kernels: str, is_wrong: bool) -> None:
    assert PlanLabel("cmsis-nn", None, overlaps).is_wrong_with(kernels) is is_wrong


def test_a_target_that_is_no_text_is_read_as_one() -> None:
    """So that it is named as an unknown one."""
    model = concat_model()
    text = b'{"kernels": "portable", "target": 7, "overlaps": false}'
    model.metadata.append((LABEL_NAME, Buffer(np.frombuffer(text, np.uint8))))
    assert plan_label.decode(model) == PlanLabel("portable", "7", False)
