"""Loops that set items of a list run on TFLM, with LiteRT's values; others stay refused."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.faults import raises
from tests.recurrent import loop_with_a_list
from tests.tflm import needs_wheel, run_models
from tflite_memopt import Options, UnsupportedModelError, optimize, verify
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.proof import prove
from tflite_memopt.model.analysis.loops import integers_by_iteration, loops_of
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.search.rewrite.static_lists import make_lists_static

ARENA = 1 << 20


def static(model: Model) -> Model:
    """A copy whose lists are written in place."""
    changed = copy_model(model)
    assert make_lists_static(changed).uses
    check_model(changed)
    return read_model(write_model(changed))


@pytest.mark.few(1)
@needs_wheel
@pytest.mark.parametrize(("steps", "items"), [(1, 1), (2, 1), (7, 1), (5, 3)])
def test_tflm_computes_what_litert_does_of_the_original(steps: int, items: int) -> None:
    model = loop_with_a_list(steps, items)
    names = [operator.name for operator in static(model).graphs[2].operators]
    assert "DYNAMIC_UPDATE_SLICE" in names
    assert names.count("SLICE") == 0
    result, samples = optimize(write_model(model)), seeded_inputs(model, 4, 1)
    wanted = run_models("litert", {"of": write_model(model)}, samples, ARENA)["of"].outputs
    found = run_models("tflm", {"of": result.model}, samples, ARENA)["of"].outputs
    for at, values in wanted.items():
        np.testing.assert_allclose(np.stack(found[at]), np.stack(values), rtol=1e-5, atol=1e-6)
    report = result.report
    assert report.basis.plan_executed
    assert {proof.status for proof in report.proofs.values()} == {"proved"}
    assert {name: verdict.equal for name, verdict in report.equivalence.items()} == {"litert": True, "tflm": True}
    assert [each.kind for each in report.as_it_came.support.reasons] == ["computed_size"]
    (use,) = (use for use in report.rewrites if use.rule == "static_lists")
    assert use.operators == ("grown",)


def test_the_same_for_all_inputs_is_proved_and_another_place_is_not() -> None:
    model = loop_with_a_list()
    changed = static(model)
    assert prove(model, changed).proved
    (loop,) = loops_of(changed)
    (update,) = (operator for operator in loop.body.operators if operator.name == "DYNAMIC_UPDATE_SLICE")
    assert integers_by_iteration(loop)[update.inputs[2]] == tuple((at, 0, 0) for at in range(5))  # type: ignore[index]
    moved = next(op for op in loop.body.operators if op.name == "CONCATENATION" and op.outputs[0] is update.inputs[2])
    before = loop.body.inputs[0]
    loop.body.set_input(moved.inputs[0].producer, 0, loop.body.inputs[1])  # type: ignore[union-attr, arg-type]
    assert before not in moved.inputs
    assert not prove(model, changed).proved


def test_shapes_that_hold_for_no_turn_are_proved_of_the_original_alone() -> None:
    model = loop_with_a_list()
    proof = prove(model, copy_model(model))
    assert not proof.proved
    assert "'head'" in str(proof)


@pytest.mark.parametrize(
    "model", [loop_with_a_list(gap=1), loop_with_a_list(until_data=True)], ids=["a gap", "turns of data"]
)
def test_what_is_no_item_of_a_list_stays_refused(model: Model) -> None:
    assert not make_lists_static(copy_model(model)).uses
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL):
        optimize(write_model(model), Options(runtimes=("litert",)))


@pytest.mark.parametrize("name", ["item", "blank_now"])
def test_what_a_concatenation_rescales_is_no_item(name: str) -> None:
    model = loop_with_a_list()
    next(tensor for tensor in model.graphs[2].tensors if tensor.name == name).quantization = per_tensor(0.5, 0)
    assert not make_lists_static(model).uses


def test_operands_that_do_not_fit_are_no_items() -> None:
    model = loop_with_a_list()
    cut = next(operator for operator in model.graphs[2].operators if operator.name == "SLICE")
    model.graphs[2].set_input(cut, 2, None)
    assert not make_lists_static(model).uses


def test_an_older_tflm_lacks_what_writes_items_in_place() -> None:
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "2025-11-10", "2025-01-01"):
        optimize(write_model(loop_with_a_list()), Options(tflm="2025-01-01"))


def test_without_verification_lists_are_static_as_well() -> None:
    result = optimize(write_model(loop_with_a_list()), Options(verify=False))
    assert "DYNAMIC_UPDATE_SLICE" in {op.name for graph in read_model(result.model).graphs for op in graph.operators}


@pytest.mark.slow
def test_verify_proves_and_runs_a_result_against_the_loop_as_it_came() -> None:
    """On LiteRT: TFLM crashed on such a loop as it came, whose slices are larger than the file says."""
    data = write_model(loop_with_a_list())
    found = verify(data, optimize(data).model, Options(runtimes=("litert",)))
    assert all(found[name].equal for name in ("proof", "plan", "litert"))


def test_a_loop_that_is_given_a_list_overwrites_no_image_before_its_first_turn() -> None:
    """TFLM copies what a loop is given into its outputs, before anything is read."""
    result = optimize(write_model(loop_with_a_list(12)), Options(kernels="reference"))
    assert result.report.proofs["plan"].status == "proved"


NETWORKS = {
    "lstm_seq": "L.LSTM(8, return_sequences=True)",
    "gru_seq_100": "L.GRU(8, return_sequences=True)",
    "rnn_seq": "L.SimpleRNN(8, return_sequences=True)",
    "lstm_last": "L.LSTM(8)",
    "lstm_back": "L.LSTM(8, return_sequences=True, go_backwards=True)",
    "gru_bi": "L.Bidirectional(L.GRU(8, return_sequences=True))",
    "gru_two": "keras.Sequential([L.GRU(8, return_sequences=True), L.GRU(8)])",
    "lstm_unrolled": "L.LSTM(8, return_sequences=True, unroll=True)",
    "gru_unrolled": "L.GRU(8, unroll=True)",
    "gru_bi_unrolled": "L.Bidirectional(L.GRU(8, return_sequences=True, unroll=True))",
    "rnn_unrolled": "L.SimpleRNN(8, return_sequences=True, unroll=True)",
    "lstm_two_bi": "keras.Sequential([L.LSTM(8, return_sequences=True), L.Bidirectional(L.LSTM(8))])",
}
_BUILD = """
import sys, keras, tensorflow as tf
L = keras.layers
keras.utils.set_random_seed(1)
x = keras.Input((int(sys.argv[2]), 6), batch_size=1)
model = keras.Model(x, L.Dense(3)(eval(sys.argv[3])(x)))
open(sys.argv[1], "wb").write(tf.lite.TFLiteConverter.from_keras_model(model).convert())
"""


@needs_wheel
@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")
@pytest.mark.parametrize("name", NETWORKS)
def test_recurrent_networks_of_keras_run_on_tflm(name: str, tmp_path: Path) -> None:
    path, steps = tmp_path / "network.tflite", 100 if name.endswith("100") else 10
    command = [sys.executable, "-c", _BUILD, str(path), str(steps), NETWORKS[name]]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    model = read_model(path.read_bytes())
    result = optimize(path, Options(max_slowdown=0.25, effort="quick"))
    samples = seeded_inputs(model, 4, 1)
    wanted = run_models("litert", {"of": path.read_bytes()}, samples, ARENA)["of"].outputs
    found = run_models("tflm", {"of": result.model}, samples, ARENA)["of"].outputs
    np.testing.assert_allclose(np.stack(found[0]), np.stack(wanted[0]), rtol=1e-4, atol=1e-6)
    assert {proof.status for proof in result.report.proofs.values()} == {"proved"}
    assert result.report.basis.plan_executed
