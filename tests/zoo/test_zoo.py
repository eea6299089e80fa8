"""The zoo's tiny networks, built by its command: TensorFlow's warnings stay in processes of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Graph

ROOT = Path(__file__).parents[2]
OPERATORS = {"swiftnet": 62, "darts_cell": 38, "blazeface": 73}

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
    pytest.mark.slow,
]


def run_zoo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.zoo_networks", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def graph_of(path: Path) -> Graph:
    model = read_model(path.read_bytes())
    check_model(model)
    return model.main


@pytest.mark.slow
def test_tiny_networks_are_valid_small_and_the_same_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    done = run_zoo(*OPERATORS, "--size", "tiny", "-o", first)
    assert (done.returncode, done.stderr) == (0, "")
    for name, operators in OPERATORS.items():
        path = first / f"{name}_tiny.tflite"
        graph = graph_of(path)
        assert f"{path.name}: {operators} operators, {path.stat().st_size:,} bytes, " in done.stdout
        assert len(graph.operators) == operators
        assert path.stat().st_size < 300_000
        assert all(tensor.shape[0] == 1 for tensor in graph.inputs + graph.outputs)

    second.mkdir()
    kept = second / "swiftnet_tiny.tflite"
    kept.write_bytes(b"kept")
    done = run_zoo("blazeface", "swiftnet", "--size", "tiny", "-o", second)
    assert done.stdout.startswith(f"{kept.name}: exists\n")
    assert kept.read_bytes() == b"kept"
    assert (second / "blazeface_tiny.tflite").read_bytes() == (first / "blazeface_tiny.tflite").read_bytes()


@pytest.mark.slow
def test_int8_from_end_to_end_with_batch_norm_folded(tmp_path: Path) -> None:
    assert run_zoo("swiftnet", "--size", "tiny", "--int8", "-o", tmp_path).returncode == 0
    graph = graph_of(tmp_path / "swiftnet_tiny_int8.tflite")
    activations = [*graph.inputs, *(tensor for operator in graph.operators for tensor in operator.outputs)]
    assert {tensor.dtype.name for tensor in activations} == {"INT8"}
    counts = Counter(operator.opcode.name for operator in graph.operators)
    del counts["QUANTIZE"]  # A tensor that two concatenations read needs the scales of both.
    folded = {"CONV_2D", "DEPTHWISE_CONV_2D", "CONCATENATION", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}
    assert (set(counts), counts.total()) == (folded, OPERATORS["swiftnet"])
