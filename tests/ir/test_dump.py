"""The text form of a model, which people and golden files rely on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.dump import describe_tensor, dump_model
from tests.models import branches, dense_model, if_model
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Buffer

GOLDEN = Path(__file__).with_name("golden_branches.txt")


def test_the_dump_of_branches_is_the_golden_one() -> None:
    assert dump_model(branches()) == GOLDEN.read_text()


def test_the_dump_of_a_file_is_the_same_after_a_round_trip() -> None:
    model = read_model(write_model(if_model()))
    assert dump_model(read_model(write_model(model))) == dump_model(model)


def test_metadata_signatures_and_subgraphs_are_listed() -> None:
    model = dense_model()
    model.metadata.append(("note", Buffer(np.zeros(1, np.uint8))))
    assert dump_model(model).splitlines()[-2:] == ["metadata note", "signature serving_default"]
    heads = [line for line in dump_model(if_model()).splitlines() if line.startswith("graph")]
    assert heads == ["graph 0 main", "graph 1 then", "graph 2 else"]


def test_a_missing_input_and_a_variable_are_marked() -> None:
    model = dense_model()
    model.main.set_input(model.main.operators[0], 2, None)
    model.main.tensors[0].is_variable = True
    assert "FULLY_CONNECTED(%0, %2, -)" in dump_model(model)
    assert describe_tensor(model.main.tensors[0]) == "x: int8[1, 16] variable"
    assert describe_tensor(model.main.tensors[2]) == "dense0/weights: int8[8, 16] const"
