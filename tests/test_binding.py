"""The step that binds: bytes that tensors share count once."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import tflite_memopt
from tests.model_builder import ModelBuilder
from tests.models import ALL, concat_model
from tflite_memopt import Options
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.model import to_json

SCHEMA = json.loads((Path(__file__).parent.parent / "schema" / "report.schema.json").read_text())


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ALL)
def test_it_fits_into_the_head_and_reaches_the_bound(name: str) -> None:
    report = tflite_memopt.optimize(write_model(ALL[name]()), Options(verify=False, cascade=False, budget=1)).report
    step = report.binding
    assert step is not None
    assert step.bytes <= report.after.arena_bytes
    assert step.bytes == report.after.arena_bytes or report.after.arena_bytes > report.bounds.plan
    jsonschema.validate(json.loads(to_json(report)), SCHEMA)


def test_it_is_named_and_left_out_where_the_budget_is_met() -> None:
    options = Options(verify=False, cascade=False)
    assert tflite_memopt.optimize(write_model(concat_model()), options).report.binding is None
    b = ModelBuilder()
    y = b.conv(b.conv(b.conv(b.input("x", (1, 4, 4, 4)), 8), 16), 4)
    report = tflite_memopt.optimize(write_model(b.finish(y)), Options(verify=False, cascade=False, budget=16)).report
    step = report.binding
    assert step is not None
    assert (step.subgraph, step.index, step.operator, step.output) == (0, 1, "CONV_2D", "conv1")
    assert step.bytes == 16 * (8 + 16) == report.after.arena_bytes
