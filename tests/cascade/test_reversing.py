"""Stripes with the last one first undo the drift of kernels that write over their input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tflite_memopt
from scripts.makers.model_builder import ModelBuilder
from tests.dump import dump_model
from tests.profiles import examples
from tflite_memopt.cascade.in_order import OrderSearch, Plans
from tflite_memopt.cascade.measure import Measured
from tflite_memopt.cascade.reversing import reversible
from tflite_memopt.cascade.space import Modes
from tflite_memopt.cascade.tiling import Reversed, Tiling, Tilings, apply_tilings
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.check import check_model
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.model import Model
from tflite_memopt.memory.arrange import Cost, cost_of
from tflite_memopt.memory.problems import Alive
from tflite_memopt.options import Options

HEAD = Options(objective="head", kernels="reference", samples=3, runtimes=("tflm",))
ANY = Cost(1 << 40, 1 << 40, 0, 0)


def chain(blocks: int = 4, size: int = 12, channels: int = 16) -> Model:
    """Depthwise and pointwise convolutions that drift: each output lies a little below its input."""
    b = ModelBuilder()
    y = b.conv(b.input("image", (1, size, size, 1)), channels, kernel=3, seed=1)
    for block in range(blocks):
        y = b.conv(b.depthwise(y, seed=block + 2), channels, seed=block + 9)
    return b.finish(b.dense(b.average_pool(y, size), 2))


def reversed_in(options: Options, known: Cost = ANY) -> tuple[Cost, Tilings]:
    """What a search without any other form finds for the chain."""
    model = chain()
    none = Modes((), (), phases=False)
    whole = cost_of(model, options.profile, options)
    return OrderSearch(model, options.profile, options, whole, Measured(), none).run(known)


@pytest.mark.slow
def test_the_drift_is_undone_and_tflm_says_so() -> None:
    model = chain()
    whole = cost_of(model, HEAD.profile, HEAD)
    least = max(Alive(model, HEAD.profile).needs())
    cost, chosen = reversed_in(HEAD)
    assert chosen
    assert least <= cost.head < whole.head
    assert cost.macs == whole.macs
    report = tflite_memopt.optimize(write_model(model), HEAD).report
    assert report.equivalence["tflm"].equal
    assert report.after.arena_bytes <= cost.head
    assert report.basis.plan_executed


def test_the_stage_takes_it_and_says_what_it_did() -> None:
    options = replace(HEAD, verify=False, loops=False, halos=("recompute",), every_byte=True)
    report = tflite_memopt.optimize(write_model(chain()), options).report
    assert any(use.rule.endswith("the last one first)") for use in report.rewrites)


@examples(12)
@given(steps=st.sets(st.sampled_from((2, 4, 6, 8)), min_size=1), rows=st.integers(1, 5))
def test_any_such_stripes_are_a_valid_model_whose_last_stripe_is_first(steps: set[int], rows: int) -> None:
    model, before = chain(), dump_model(chain())
    tilings = [Tiling(step, step + 1, Reversed((*range(rows, 12, rows), 12))) for step in sorted(steps)]
    made = apply_tilings(copy_model(model), tilings)
    check_model(made)
    assert dump_model(model) == before
    for step in steps:
        whole = model.main.operators[step].outputs[0].name
        names = [op.outputs[0].name for op in made.main.operators if op.name == "CONV_2D"]
        numbers = [int(name.split("/stripe")[1].split("of")[0]) for name in names if name.startswith(f"{whole}/stripe")]
        assert numbers == list(range(-(-12 // rows), 0, -1))


@pytest.mark.parametrize(
    "options",
    [
        replace(HEAD, objective="total"),
        replace(HEAD, kernels="portable"),
    ],
)
def test_where_there_is_none(options: Options) -> None:
    assert reversed_in(options)[1] == ()


def test_what_is_known_is_not_found_again() -> None:
    cost, _ = reversed_in(HEAD)
    assert reversed_in(HEAD, cost) == (cost, ())


def padded_below() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 11, 4, 4)), 4)
    z = b.tensor("z", (1, 12, 4, 4))
    b.operator("PAD", (y, b.constant("amounts", np.asarray([[0, 0], [0, 1], [0, 0], [0, 0]], np.int32))), (z,))
    return b.finish(z)


def test_rows_below_are_no_rows_of_the_input() -> None:
    assert {step for step, _ in reversible(padded_below(), 0, HEAD)} == {0}
    assert tflite_memopt.optimize(write_model(padded_below()), HEAD).report.equivalence["tflm"].equal


def test_a_candidate_that_cannot_be_written_ends_itself_and_not_the_run() -> None:
    plans = Plans(padded_below(), HEAD.profile, replace(HEAD, max_extra_work=1.0))
    fits, fits_not = (Tiling(step, step + 1, Reversed(ends)) for step, ends in ((0, (4, 8, 11)), (1, (4, 8, 11, 12))))
    costs = plans.full([(fits,), (fits_not,)], ANY.need)
    assert costs[0] is not None
    assert costs[1] is None
