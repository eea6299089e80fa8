"""Changed results: what is proved all the same computes the same on LiteRT; what is not proved is told apart."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scripts.mutation.__main__ import KINDS
from tests.memory.loops import looped, plain
from tests.rewrite.patterns import ARENA, LITERT
from tests.test_random_models import random_model
from tests.tflm import run_models
from tflite_memopt.cascade.loop import LoopForm
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Buffer, Model
from tflite_memopt.proof import Status, prove

_MUTANTS, _SAMPLES = 12, 12


@pytest.mark.parametrize("form", ["clamped", "masked"])
def test_a_loop_is_proved(form: LoopForm) -> None:
    assert prove(plain(), looped(form)).status is Status.PROVED


def test_a_loop_that_never_ends_is_broken() -> None:
    changed = looped("masked")
    (tensor,) = (tensor for tensor in changed.graphs[2].tensors if tensor.name == "next")
    tensor.buffer = Buffer(np.zeros(tensor.nbytes, np.uint8))
    proof = prove(plain(), changed)
    assert proof.status is Status.DIFFERENT
    assert "never ends" in str(proof)


def test_loops_over_other_rows_are_proved() -> None:
    for rows in (1, 2, 3):
        assert prove(plain(), looped("clamped", rows)).status is Status.PROVED


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("name", ["masked", "random"])
def test_no_mutant_that_computes_otherwise_is_proved(name: str, kind: str) -> None:
    original, result = (plain(), looped("masked")) if name == "masked" else (random_model(3), random_model(3))
    data, draw, kept, shown = write_model(result), random.Random(kind), dict[str, bytes](), 0
    for number in range(20 * _MUTANTS):
        mutant = read_model(data)
        if len(kept) + shown == _MUTANTS:
            break
        where = KINDS[kind](mutant, draw)
        if where is None:
            continue
        if prove(original, mutant).proved:
            kept[f"{where} {number}"] = write_model(mutant)
        else:
            shown += 1
    assert shown or (name, kind) == ("random", "loop tables")
    _assert_same(original, kept)


def _assert_same(original: Model, mutants: dict[str, bytes]) -> None:
    samples = seeded_inputs(original, _SAMPLES, 0)
    runs = run_models(LITERT, {"original": write_model(original), **mutants}, samples, ARENA)
    for where, run in runs.items():
        assert run.ran, (where, run.reason)
        for at, wanted in runs["original"].outputs.items():
            for one, other in zip(wanted, run.outputs[at], strict=True):
                assert np.array_equal(one, other), where
