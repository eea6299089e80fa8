"""The schemas are those of the dataclasses, and what is written can be read back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tflite_memopt
from tests.models import dense_model, mobile_chain
from tflite_memopt import Options, UsageError
from tflite_memopt.equivalence.verdict import Verdict
from tflite_memopt.explore import explore
from tflite_memopt.io.writer import write_model
from tflite_memopt.report.model import Record, Verification, to_json
from tflite_memopt.report.schema import KINDS, from_json, schema_text

FOLDER = Path(__file__).parents[2] / "schema"


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    data = write_model(mobile_chain())
    options = Options(cascade=False, samples=2, runtimes=("litert",))
    return {
        "report": tflite_memopt.optimize(data, options).report,
        "analysis": tflite_memopt.analyze(data),
        "comparison": tflite_memopt.compare(data, ("rpo",), ("naive",)),
        "exploration": explore(data, replace(options, max_extra_macs=1.0)).exploration,
        "verification": Verification(tflite_memopt.verify(data, data, options)),
    }


def schema(kind: str) -> Any:
    return json.loads((FOLDER / f"{kind}.schema.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_are_those_of_the_dataclasses(kind: str) -> None:
    assert (FOLDER / f"{kind}.schema.json").read_text() == schema_text(kind), "run python scripts/make_schemas.py"
    jsonschema.Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_valid_and_is_read_back(kind: str, records: dict[str, Record]) -> None:
    text = to_json(records[kind])
    jsonschema.validate(json.loads(text), schema(kind))
    assert from_json(text) == records[kind]
    assert json.loads(text)["$schema"] == schema(kind)["$id"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_field_is_no_breaking_change(kind: str, records: dict[str, Record]) -> None:
    fields = json.loads(to_json(records[kind])) | {"invented": 1, "schema_version": "1.99"}
    jsonschema.validate(fields, schema(kind))
    assert from_json(json.dumps(fields)) == records[kind]


def test_an_infinite_difference_has_a_place_in_json() -> None:
    record = Verification({"litert": Verdict(1, False, float("inf"), "shapes differ")})
    jsonschema.validate(json.loads(to_json(record)), schema("verification"))
    assert from_json(to_json(record)) == record


def test_what_is_no_report_is_refused_in_one_line(records: dict[str, Record]) -> None:
    fields = json.loads(to_json(records["report"]))
    for wrong, said in (
        ("{", "not JSON"),
        ("[]", "not one of"),
        ("{}", "not one of"),
        (json.dumps(fields | {"$schema": "urn:tflite-memopt:schema:report:2"}), "not one of"),
        (json.dumps(fields | {"after": {**fields["after"], "macs": "many"}}), "damaged at after.macs"),
    ):
        with pytest.raises(UsageError, match=said):
            from_json(wrong)


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(UsageError, match=r"pip install 'tflite-memopt\[report\]'"):
        schema_text("report")


def test_the_public_types_are_public() -> None:
    report = tflite_memopt.optimize(write_model(dense_model()), Options(verify=False)).report
    assert isinstance(replace(report), tflite_memopt.Report)
    assert isinstance(tflite_memopt.from_json(to_json(report)), tflite_memopt.Report)
    assert tflite_memopt.Verdict is Verdict
