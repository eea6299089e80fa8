"""What is known of loops, against searches that know nothing: the same options in other orders, with other outputs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cascade.networks import TYPES, random_network
from tflite_memopt.cascade.known_loops import KnownLoops, RegionKeys
from tflite_memopt.cascade.predict import Aim, OptionFinder, StripingOptions
from tflite_memopt.cascade.selection import BaseNeed, SelectionLimits
from tflite_memopt.cascade.striped_region import LOOP_MODES
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.profiles import profile_named

AIM = Aim(0, 1 << 40, SelectionLimits(1 << 60, 1 << 60), BaseNeed(0, 0, 0))
FORMS = LOOP_MODES[:2]


def looked_for(model: Model, kernels: str, known: KnownLoops, jobs: int = 1) -> tuple[StripingOptions, int]:
    finder = OptionFinder(model, profile_named(kernels), AIM, jobs=jobs, known=known)
    return finder.options(FORMS), finder.looked_at


def another_order(model: Model, seed: int) -> Model:
    """A copy that runs in an order drawn at random."""
    other, rng = copy_model(model), random.Random(seed)
    operators, order = list(other.main.operators), list[int]()
    while len(order) < len(operators):
        ran = {operators[at] for at in order}
        ready = [
            at
            for at, operator in enumerate(operators)
            if operator not in ran and all(t.producer is None or t.producer in ran for t in operator.present_inputs())
        ]
        order.append(rng.choice(ready))
    other.main.reorder(order)
    return other


def another_output(model: Model, seed: int) -> Model:
    """A copy that returns one more tensor, so that it lives on."""
    other = copy_model(model)
    inner = [tensor for operator in other.main.operators for tensor in operator.outputs]
    other.main.outputs = tuple(dict.fromkeys((*other.main.outputs, random.Random(seed).choice(inner))))
    return other


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(TYPES), st.sampled_from(("portable", "reference")))
def test_what_is_known_is_what_is_found_anew(seed: int, dtype: DType, kernels: str) -> None:
    model, known = random_network(seed, dtype, 4, height=8), KnownLoops()
    looked_for(model, kernels, known)
    for each in (another_order(model, seed), another_output(model, seed)):
        assert looked_for(each, kernels, known) == looked_for(each, kernels, KnownLoops())


def chain(depth: int = 16) -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 32, 32, 4)), depth, kernel=3, seed=1)
    y = b.conv(b.depthwise(y, kernel=3, stride=2, seed=2), 8, seed=3)
    return b.finish(b.average_pool(y, 16))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_copy_needs_no_loop_worked_out(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    model, known = chain(), KnownLoops()
    first = looked_for(model, "portable", known, jobs)
    assert known.found
    monkeypatch.setattr("tflite_memopt.cascade.loop_options.lower_loop", None)
    assert looked_for(copy_model(model), "portable", known) == first


def test_keys_tell_regions_apart() -> None:
    """By where they are, what lives on, the kernels, and operators with other weights."""
    model, known, profile = chain(), KnownLoops(), profile_named("portable")
    keys = RegionKeys(model, profile, known)
    others = [
        RegionKeys(chain(), profile, known).of(0, 2),
        RegionKeys(another_output(model, 1), profile, known).of(0, 4),
        RegionKeys(model, profile_named("reference"), known).of(0, 2),
        keys.of(1, 3),
        keys.of(0, 3),
    ]
    assert len({keys.of(0, 2), *others}) == 1 + len(others)
    assert RegionKeys(copy_model(model), profile, known).of(0, 2) == keys.of(0, 2)
