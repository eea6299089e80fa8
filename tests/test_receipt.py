"""Receipts: what ``optimize`` writes is checked again, and each claim that does not hold is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from tests.equivalence.test_baseline import dilated_with_a_batch_of_one
from tests.models import mobile_chain, quantized_at_the_boundary
from tflite_memopt import Options, UsageError, optimize
from tflite_memopt.cli import cli
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.receipt import mismatches, receipt_of

ORIGINAL = write_model(mobile_chain())
OPTIONS = Options(cascade=False, runtimes=("litert",), samples=1, target="cortex-m4")
STATEMENT = {
    "type": "object",
    "required": ["_type", "subject", "predicateType", "predicate"],
    "properties": {
        "_type": {"const": "https://in-toto.io/Statement/v1"},
        "subject": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["digest"],
                "properties": {
                    "name": {"type": "string"},
                    "digest": {
                        "type": "object",
                        "properties": {"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
                    },
                },
            },
        },
        "predicateType": {"type": "string", "format": "uri"},
        "predicate": {"type": "object"},
    },
}
"""Of in-toto's spec/v1/statement.md."""


def made(data: bytes, options: Options = OPTIONS) -> tuple[bytes, str]:
    found = optimize(data, options)
    return found.model, receipt_of(found.report, found.model, "out.tflite")


@pytest.fixture(scope="module")
def both() -> tuple[bytes, str]:
    return made(ORIGINAL)


def wrong(receipt: str, original: bytes, result: bytes) -> list[str]:
    return list(mismatches(receipt, original, result, lambda _: None))


def test_a_receipt_is_an_in_toto_statement_that_holds(both: tuple[bytes, str]) -> None:
    result, receipt = both
    statement = json.loads(receipt)
    jsonschema.validate(statement, STATEMENT)
    predicate = statement["predicate"]
    assert predicate["firmware"]["kernels"] == "cmsis-nn-dsp"
    assert predicate["firmware"]["operators"] == sorted({each.name for each in read_model(result).main.operators})
    assert {name: proof["status"] for name, proof in predicate["proofs"].items()} == {
        "result": "proved",
        "plan": "proved",
    }
    assert set(predicate["assumptions"]) == {fact for each in predicate["proofs"].values() for fact in each["facts"]}
    assert wrong(receipt, ORIGINAL, result) == []


def claims(statement: Any) -> Iterator[tuple[str, Any]]:
    predicate = statement["predicate"]
    yield "the result has the digest", statement["subject"][0]["digest"]
    yield "the original has the digest", predicate["original"]["digest"]
    yield "operators: the receipt says", predicate["firmware"]
    yield "arena: the receipt says", predicate["firmware"]["arena"]["cmsis-nn-dsp"]


def test_each_claim_that_was_changed_is_named(both: tuple[bytes, str]) -> None:
    result, receipt = both
    changes = ({"sha256": "0" * 64}, {"sha256": "0" * 64}, {"operators": ["ADD"]}, {"required": 64})
    for number, change in enumerate(changes):
        statement = json.loads(receipt)
        start, claim = list(claims(statement))[number]
        claim.update(change)
        [found] = wrong(json.dumps(statement), ORIGINAL, result)
        assert found.startswith(start)


def test_other_files_are_named_with_what_differs(both: tuple[bytes, str]) -> None:
    result, receipt = both
    changed = read_model(result)
    weights = next(tensor for tensor in changed.main.tensors if len(tensor.shape) == 4 and tensor.is_constant)
    assert weights.buffer.data is not None
    weights.buffer.data = np.roll(weights.buffer.data, 1)
    digest, proof = wrong(receipt, ORIGINAL, write_model(changed))
    assert digest.startswith("the result has the digest")
    assert "result: the receipt says proved, a proof now ends with: different: output 0" in proof
    moved = read_model(result)
    offline_plan.attach(moved, dict.fromkeys(offline_plan.decode(moved) or {}, 0))
    _, arena, plan = wrong(receipt, ORIGINAL, write_model(moved))
    assert arena.startswith("arena: ")
    assert plan.startswith("plan: the receipt says proved, a proof now ends with: different")


def test_integers_at_the_boundary_and_inferred_shapes_are_proved_again() -> None:
    for data, options in (
        (write_model(quantized_at_the_boundary()), replace(OPTIONS, io="int8")),
        (write_model(dilated_with_a_batch_of_one()), OPTIONS),
    ):
        result, receipt = made(data, options)
        assert json.loads(receipt)["predicate"]["proofs"]["result"]["status"] == "proved"
        assert wrong(receipt, data, result) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"_type": 1}', '{"_type": 1, "predicateType": 2, "predicate": 3}'])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        wrong(text, ORIGINAL, ORIGINAL)


def test_damaged_receipts_are_refused_in_one_line(both: tuple[bytes, str]) -> None:
    result, receipt = both
    for key in ("subject", "predicate"):
        with pytest.raises(UsageError):
            wrong(json.dumps({**json.loads(receipt), key: [None]}), ORIGINAL, result)
    for key in ("original", "firmware", "proofs", "runs"):
        statement = json.loads(receipt)
        statement["predicate"][key] = 1
        with pytest.raises(UsageError):
            wrong(json.dumps(statement), ORIGINAL, result)


def test_the_commands_write_and_check_it(tmp_path: Path) -> None:
    source, output, receipt = (tmp_path / name for name in ("in.tflite", "out.tflite", "receipt.json"))
    source.write_bytes(ORIGINAL)
    common = ["--changes", "rewrites", "-q"]
    arguments = ["optimize", str(source), "-o", str(output), "--receipt", str(receipt), *common]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(receipt.read_text())["subject"][0]["name"] == "out.tflite"
    check = ["verify", str(source), str(output), "--check-receipt", str(receipt)]
    done = CliRunner().invoke(cli, check)
    assert (done.exit_code, "the receipt holds" in done.output) == (0, True)
    output.write_bytes(output.read_bytes() + bytes(16))
    done = CliRunner().invoke(cli, check)
    assert (done.exit_code, "receipt: the result has the digest" in done.output) == (1, True)
    done = CliRunner().invoke(cli, [*arguments, "--force", "--no-verify"])
    assert done.exit_code == 2
