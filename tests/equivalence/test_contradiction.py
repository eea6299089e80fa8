"""A proof never hides what runtimes see, and does not excuse from running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.model_builder import ModelBuilder
from tests.models import dense_model, float_sum, mobile_chain
from tests.tflm import needs_wheel
from tflite_memopt import Options, optimize, verify
from tflite_memopt.cli import cli
from tflite_memopt.cli.exit_codes import CONTRADICTED, NOT_EQUAL
from tflite_memopt.evidence.equivalence import verification
from tflite_memopt.evidence.equivalence.inputs import LEAST_SAMPLES, MOST_SAMPLES, samples_for, seeded_inputs
from tflite_memopt.evidence.equivalence.verdict import FILE, PLAN, PROOF, Verdict, contradiction
from tflite_memopt.evidence.proof import Proof, Status
from tflite_memopt.kernels.mend import PADDING as PADDING_APART
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.report.documents import verdict_line

EQUAL, UNKNOWN = Verdict(0, True, 0.0, None), Verdict(0, None, 0.0, "not followed")
FINITE = Verdict(0, True, 0.0, None, finite_only=True)
SAME = Verdict(3, True, 0.0, None)
OTHER = Verdict(3, False, 2.0, "output 0 differs", differing_share=0.5)
REFUSED = Verdict(3, False, 0.0, "it does not run")


@pytest.mark.parametrize(
    ("verdicts", "wrong"),
    [
        ({PROOF: EQUAL, "litert": SAME, "tflm": SAME}, None),
        ({PROOF: EQUAL, "litert": OTHER, "tflm": SAME}, "litert"),
        ({PROOF: EQUAL, "litert": SAME, "tflm": OTHER}, "tflm"),
        ({PROOF: FINITE, "litert": OTHER}, None),
        ({PROOF: UNKNOWN, "litert": OTHER}, None),
        ({PROOF: OTHER, "litert": OTHER}, None),
        ({PROOF: EQUAL, "litert": REFUSED}, None),
        ({PROOF: EQUAL, PLAN: UNKNOWN, "litert": SAME, "tflm": OTHER}, None),
        ({PROOF: EQUAL, PLAN: EQUAL, "tflm": OTHER}, "tflm"),
    ],
)
def test_a_contradiction_is_a_difference_where_the_proof_says_equal(
    verdicts: dict[str, Verdict], wrong: str | None
) -> None:
    said = contradiction(verdicts)
    assert (said is None) == (wrong is None)
    assert wrong is None or (said is not None and f"and {wrong} differ" in said)


def test_verify_prints_a_contradiction_first_and_has_an_exit_code_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a proof that says of everything that it is equal."""
    for name, units in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.tflite").write_bytes(write_model(other_dense(units)))
    arguments = ["verify", str(tmp_path / "a.tflite"), str(tmp_path / "b.tflite"), "--runtime", "litert", "--quiet"]
    assert CliRunner().invoke(cli, arguments).exit_code == NOT_EQUAL
    monkeypatch.setattr(verification, "prove", lambda *_, **__: Proof(Status.PROVED))
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == CONTRADICTED
    assert result.stderr.startswith("the proof says equal, and litert differ: a fault of this program")


def test_inputs_that_overflow_contradict_no_proof_of_finite_values(tmp_path: Path) -> None:
    first, second, inputs = (tmp_path / name for name in ("a.tflite", "b.tflite", "x.npz"))
    first.write_bytes(write_model(float_sum(True)))
    second.write_bytes(write_model(float_sum(False)))
    large = np.full((1, 500), 3e38, np.float32)
    np.savez(inputs, x=large, y=large, z=-large, other=np.zeros((1, 8), np.int8))
    arguments = ["verify", str(first), str(second), "--runtime", "litert", "--inputs", str(inputs), "--quiet"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == NOT_EQUAL
    assert result.stdout.startswith("DIFFERENT by litert: output 0")
    assert result.stdout.endswith("; the proof is of finite values: if none overflows, report both files\n")
    assert "fault of this program" not in result.stderr


def test_another_name_is_no_value_that_a_proof_of_finite_values_leaves_open() -> None:
    named = Verdict(0, False, 0.0, "output 0 has another name")
    assert verdict_line({PROOF: FINITE, FILE: named, "litert": SAME}) == f"DIFFERENT by {FILE}: {named.reason}"


def other_dense(seed: int) -> Model:
    b = ModelBuilder()
    return b.finish(b.dense(b.input("x", (1, 16)), 8, seed=seed))


def test_json_says_that_a_proof_is_of_real_polynomials(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("a.tflite", "b.tflite"))
    first.write_bytes(write_model(float_sum(True)))
    second.write_bytes(write_model(float_sum(False)))
    result = CliRunner().invoke(cli, ["verify", str(first), str(second), "--runtime", "litert", "--json", "--quiet"])
    proof = json.loads(result.stdout)["verdicts"]["proof"]
    assert proof["exactness"] == "reassociates"
    assert "for finite values that do not overflow" in proof["reason"]
    assert result.exit_code == 0


def test_samples_begin_with_extremes_and_there_are_at_least_ten() -> None:
    model = mobile_chain()
    samples = samples_for(model, Options())
    assert len(samples) == MOST_SAMPLES
    low, high, zero, ramp = (sample[0] for sample in samples[:4])
    assert (low == -128).all()
    assert (high == 127).all()
    assert (zero == 0).all()
    assert (np.diff(ramp.ravel().astype(int)) >= 0).all()
    assert (ramp.min(), ramp.max()) == (-128, 127)
    drawn = seeded_inputs(model, MOST_SAMPLES - 4, 0)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(samples[4:], drawn, strict=True))


def test_a_large_model_runs_on_the_fewest() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 96, 96, 32))
    for seed in range(3):
        y = b.conv(y, 64, kernel=3, seed=seed)
    assert len(samples_for(b.finish(y), Options())) == LEAST_SAMPLES
    assert len(samples_for(dense_model(), Options(samples=2))) == 2


def dilated(padding: int) -> Model:
    """A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4))
    side = (8 + 2 * padding) // 2

    def ints(values: Any) -> Any:
        return b.constant(f"c{len(b.graph.tensors)}", np.asarray(values, np.int32))

    batches = b.tensor("batches", (4, side, side, 4))
    pads = ints([[padding, padding]] * 2)
    b.operator("SPACE_TO_BATCH_ND", (x, ints([2, 2]), pads), (batches,), "SpaceToBatchNDOptions")
    inside = b.depthwise(batches, seed=1)
    y = b.tensor("y", (1, 2 * side, 2 * side, 4))
    b.operator("BATCH_TO_SPACE_ND", (inside, ints([2, 2]), ints([[0, 0]] * 2)), (y,), "BatchToSpaceNDOptions")
    return b.finish(y)


@needs_wheel
def test_a_fault_of_tflm_is_named_and_is_no_evidence() -> None:
    """SPACE_TO_BATCH_ND with padding has no verdict on TFLM; without, it has."""
    data = write_model(dilated(1))
    found = verify(data, data, Options(samples=3))
    assert found["litert"].equal
    assert found["tflm"].equal is None
    assert "SPACE_TO_BATCH_ND 'batches'" in str(found["tflm"].reason)
    data = write_model(dilated(0))
    assert verify(data, data, Options(samples=3))["tflm"].equal


@needs_wheel
def test_a_model_that_tflm_computes_wrongly_is_mended() -> None:
    data = write_model(dilated(1))
    result = optimize(data, Options(effort="quick"))
    assert not any("please report" in warning for warning in result.report.warnings)
    assert PADDING_APART in {use.rule for use in result.report.rewrites}
    assert result.report.equivalence["litert"].equal
    assert verify(result.model, result.model, Options(samples=3))["tflm"].equal


def test_floats_are_exact_where_nothing_is_added_in_another_order() -> None:
    b = ModelBuilder()
    data = write_model(b.finish(b.reshape(b.input("x", (1, 8), DType.FLOAT32), (8,))))
    assert verify(data, data, Options(samples=2, runtimes=("litert",)))[PROOF].exactness == "exact"
