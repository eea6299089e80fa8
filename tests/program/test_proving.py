"""Programs proved for all inputs: fed fronts of every form, and what is fed wrongly."""

from __future__ import annotations

import pytest

from tests.models import mobile_chain
from tests.program.test_feed import CASES, IN_PIECES, WRONG, front_of, without_masks
from tflite_memopt.evidence.proof import Status
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.run.parts.cutting import cut
from tflite_memopt.run.parts.proving import prove_program


def as_read(model: Model) -> Model:
    """With all options that its file has: operators with and without a default are told apart."""
    return read_model(write_model(model))


_SLOW = {("sequence", 16, 4), ("deep", 8, 4), ("deep", 8, 2)}
FRONTS = [
    pytest.param(*front, marks=pytest.mark.slow) if front in _SLOW else front
    for front in (*((name, rows, 1) for name, rows in CASES), *IN_PIECES)
]


RUNNING_MEANS = ("mean_of_image", "mean_of_sequence", "pooled", "pooled_late")
"""A mean as a float sum, rounded twice: equal for every possible sum, as total.py finds out; no fact says so."""


@pytest.mark.few(8)
@pytest.mark.parametrize(("name", "rows", "pieces"), FRONTS)
def test_fronts_are_proved(name: str, rows: int, pieces: int) -> None:
    model, file = front_of(name, rows, pieces)
    proof = prove_program(as_read(model), [read_model(file.data)], file.feed)
    assert (proof.status is Status.PROVED) == (name not in RUNNING_MEANS), proof


@pytest.mark.parametrize("name", WRONG)
def test_what_is_fed_wrongly_is_different(name: str) -> None:
    network, rows, wrong = WRONG[name]
    model, file = front_of(network, rows)
    proof = prove_program(as_read(model), [read_model(file.data)], wrong(file.feed))
    assert proof.status is Status.DIFFERENT, proof


def test_without_masks_it_is_different() -> None:
    model, file = front_of("chain", 4)
    proof = prove_program(as_read(model), [without_masks(read_model(file.data))], file.feed)
    assert proof.status is Status.DIFFERENT, proof


def test_a_part_that_takes_other_dimensions_is_different() -> None:
    model = as_read(mobile_chain())
    first, second = map(as_read, cut(model, [2]))
    assert prove_program(model, [first, second]).proved
    (taken,) = second.main.inputs
    taken.shape = (1, *taken.shape)
    proof = prove_program(model, [first, second])
    assert proof.status is Status.DIFFERENT
    assert "part 1's input 0 has shape" in str(proof.reason)
