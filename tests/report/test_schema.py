"""The schemas are those of the dataclasses, and what is written can be read back."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tflite_memopt
from scripts.makers.schemas import schema_text
from tests.faults import raises
from tests.models import dense_model, mobile_chain
from tflite_memopt import Options, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.verdict import Verdict
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.options import changed_options, options_used
from tflite_memopt.report.model import KINDS, Record, Verification, to_json
from tflite_memopt.report.schema import from_json
from tflite_memopt.run.explore import explore

FOLDER = Path(__file__).parents[2] / "schema"


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    data = write_model(mobile_chain())
    options = Options(cascade=False, samples=2, runtimes=("litert",))
    return {
        "report": tflite_memopt.optimize(data, options).report,
        "analysis": tflite_memopt.analyze(data),
        "comparison": tflite_memopt.compare(data, ("rpo",), ("naive",)),
        "exploration": explore(data, replace(options, max_slowdown=1.0)).exploration,
        "verification": Verification(tflite_memopt.verify(data, data, options)),
    }


def schema(kind: str) -> Any:
    return json.loads((FOLDER / f"{kind}.schema.json").read_text())


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_files_are_those_of_the_dataclasses(kind: str) -> None:
    assert (FOLDER / f"{kind}.schema.json").read_text() == schema_text(kind), "run python -m scripts.makers.schemas"
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


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every property of a schema, wherever it stands."""
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, (dict, list)):
            yield from properties(value)
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield from schema["properties"].items()


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind: str) -> None:
    found = list(properties(schema(kind)))
    assert found
    assert [name for name, each in found if not each.get("description", "").strip().endswith(".")] == []


@pytest.mark.slow
def test_two_runs_of_the_same_differ_in_their_timing_alone() -> None:
    data = write_model(mobile_chain())
    first, second = (
        json.loads(to_json(tflite_memopt.optimize(data, Options(verify=False, jobs=jobs)).report)) for jobs in (1, 2)
    )
    assert set(first.pop("timing")) == set(second.pop("timing"))
    assert first == second


def test_a_report_names_its_options_and_its_files(tmp_path: Path) -> None:
    data, source = write_model(mobile_chain()), tmp_path / "chain.tflite"
    source.write_bytes(data)
    options = Options(cascade=False, verify=False, target="cortex-m4", budget=1 << 20)
    result = tflite_memopt.optimize(source, options)
    told = json.loads(to_json(result.report))
    assert told["model"] == "chain.tflite"
    assert told["sha256"] == {
        side: hashlib.sha256(each).hexdigest() for side, each in (("before", data), ("after", result.model))
    }
    assert told["options"]["target"] == "cortex-m4"
    assert "jobs" not in told["options"]
    assert str(tmp_path) not in json.dumps(told)
    assert changed_options(told["options"]) == {
        "cascade": False,
        "verify": False,
        "target": "cortex-m4",
        "budget": 1 << 20,
    }
    assert tflite_memopt.analyze(source).sha256 == told["sha256"]["before"]


def test_options_are_plain_and_name_no_folder() -> None:
    used = options_used(Options(tflm="2025-11-10", inputs=Path("somewhere") / "x.npz", kernels="reference"))
    assert (used["tflm"], used["inputs"]) == ("2025-11-10", "x.npz")
    assert json.loads(json.dumps(used)) == used
    known = {field.name for field in fields(Options)}
    assert known - set(used) == {"jobs", "device"}


def test_an_infinite_difference_has_a_place_in_json() -> None:
    record = Verification({"litert": Verdict(1, False, float("inf"), "shapes differ")})
    jsonschema.validate(json.loads(to_json(record)), schema("verification"))
    assert from_json(to_json(record)) == record


def test_what_is_no_report_is_refused_in_one_line(records: dict[str, Record]) -> None:
    fields = json.loads(to_json(records["report"]))
    for wrong, said in (
        ("{", "JSON"),
        ("[]", "$schema"),
        ("{}", "$schema"),
        (json.dumps(fields | {"$schema": "urn:tflite-memopt:schema:report:2"}), "$schema"),
        (json.dumps(fields | {"after": {**fields["after"], "macs": "many"}}), "after.macs"),
    ):
        with raises(UsageError, ErrorKind.FORMAT, said):
            from_json(wrong)


def test_without_the_package_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, records: dict[str, Record]
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with raises(UsageError, ErrorKind.NOT_INSTALLED, "tflite-memopt[report]"):
        from_json(to_json(records["report"]))


def test_the_public_types_are_public() -> None:
    report = tflite_memopt.optimize(write_model(dense_model()), Options(verify=False)).report
    assert isinstance(replace(report), tflite_memopt.Report)
    assert isinstance(tflite_memopt.from_json(to_json(report)), tflite_memopt.Report)
    assert tflite_memopt.Verdict is Verdict
