"""The files for Model Explorer: keys that it finds in the model, values that are those of the report."""

from __future__ import annotations

import json
from pathlib import Path

import tflite_memopt
from tests.command import run
from tests.models import ALL, mobile_chain
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.node_data import node_data


def test_the_values_are_those_of_the_operators() -> None:
    analysis = tflite_memopt.analyze(write_model(mobile_chain()))
    files = {name: json.loads(text) for name, text in node_data(analysis.arena).items()}
    assert set(files) == {"bytes_in_use.json", "highest_byte.json", "multiply_accumulates.json", "step.json"}
    [(graph, data)] = files["bytes_in_use.json"].items()
    assert graph == "main"
    assert {name: each["value"] for name, each in data["results"].items()} == {
        step.output: step.working_set for step in analysis.arena.steps
    }
    macs = files["multiply_accumulates.json"]["main"]["results"]
    assert sum(each["value"] for each in macs.values()) == analysis.memory.macs


def test_each_subgraph_has_values_of_its_own() -> None:
    data = json.loads(node_data(tflite_memopt.analyze(write_model(ALL["while_model"]())).arena)["step.json"])
    assert list(data) == ["main", "condition", "body"]


def test_from_the_command_line(tmp_path: Path) -> None:
    source, folder = tmp_path / "m.tflite", tmp_path / "explorer"
    source.write_bytes(write_model(mobile_chain()))
    words = ("analyze", source, "--node-data", folder)
    assert run(*words).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted(node_data(tflite_memopt.analyze(source).arena))
    again = run(*words)
    assert again.returncode == 2
    assert "--force" in again.stderr
