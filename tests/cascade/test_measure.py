"""What is measured of a region alone, against the region in the whole model, and in other orders of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cascade.networks import EVERY as EVERY_KIND
from tests.cascade.networks import TYPES, random_network
from tests.cascade.spaces import EVERY, figures_of, space_of
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt.kernels.faults import faults_in
from tflite_memopt.kernels.mend import mend
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.figures import arena_terms
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.work import model_work
from tflite_memopt.model.ir.copying import copy_model, share_constants
from tflite_memopt.model.ir.model import Buffer, DType, Model
from tflite_memopt.search.cascade import measure as measuring
from tflite_memopt.search.cascade.measure import CONSTANT, Measure, Measured, _RegionKeys
from tflite_memopt.search.cascade.select import Figures
from tflite_memopt.search.cascade.space import Space
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings
from tflite_memopt.solvers.graph.alignment import ARENA_ALIGNMENT
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.together import solve_together

KERNELS = ("portable", "reference")
TRIED = 8
"""Tilings of each model that are written into it."""
SLACK = 2 * (ARENA_ALIGNMENT - 1)
"""Bytes that two alignments come to at most."""


def measured_tilings(space: Space, seed: int) -> Iterator[tuple[Tiling, Figures]]:
    """A few of them, drawn at random."""
    every = sorted(figures_of(space))
    chosen = random.Random(seed).sample(every, min(TRIED, len(every)))
    for each in chosen:
        if each in figures_of(space):
            space.measurements.take([each])
            said = figures_of(space).get(each)
            if said is not None:
                yield each, said


def read_elsewhere(model: Model, tiling: Tiling) -> int:
    """How many constants of a region stay in the model, even if the region moves into a loop."""
    inside = set(model.main.operators[tiling.first : tiling.end])
    constants = {tensor for operator in inside for tensor in operator.present_inputs() if tensor.is_constant}
    return sum(any(use.operator not in inside for use in tensor.uses) for tensor in constants)


def assert_adds(model: Model, tiling: Tiling, said: Figures, profile: KernelProfile) -> None:
    """A model with the tiling needs what is said, but for constants that it had before, and for alignment."""
    made = apply_tilings(copy_model(model), [tiling])
    mend(made, profile, {each.form for each in faults_in(model, profile)})
    before, after = arena_terms(model, profile), arena_terms(made, profile)
    layout = memory_layout(made, profile)
    plan = solve_together(layout.joined, "greedy_by_size", SearchLimit())
    assert said.head <= plan.arena_bytes
    assert after.macs - before.macs == said.macs
    assert len(made.all_operators) - len(model.all_operators) == said.operators
    work = model_work(made, profile.prices, layout.loops.loops) - model_work(model, profile.prices)
    assert work == said.work
    constants = said.constants + read_elsewhere(model, tiling)
    tail, temporaries = (size.on(profile.abi) * constants for size in CONSTANT)
    assert said.tail - SLACK <= after.parts_of_tail - before.parts_of_tail <= said.tail + tail + SLACK
    assert said.temporaries <= after.tables - before.tables <= said.temporaries + temporaries


@pytest.mark.slow
@examples(30)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(2, 7),
    kernels=st.sampled_from(KERNELS),
)
# Two inputs that are one in another shape.
@example(11486, DType.INT8, 5, "portable")
def test_a_region_needs_in_the_model_what_it_needs_alone(seed: int, dtype: DType, layers: int, kernels: str) -> None:
    model, profile = random_network(seed, dtype, layers, kinds=EVERY_KIND), profile_named(kernels)
    share_constants(model)  # as the pipeline does before
    for tiling, said in measured_tilings(space_of(model, profile), seed):
        assert_adds(model, tiling, said, profile)


def chain(depth: int = 16) -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 32, 32, 4)), depth, kernel=3, seed=1)
    y = b.conv(b.depthwise(y, kernel=3, stride=2, seed=2), 8, seed=3)
    return b.finish(b.average_pool(y, 16))


@pytest.mark.parametrize("kernels", KERNELS)
def test_every_form_of_a_chain_needs_in_the_model_what_it_needs_alone(kernels: str) -> None:
    model, profile = chain(), profile_named(kernels)
    forms = set()
    for tiling, said in measured_tilings(space_of(model, profile), 1):
        assert_adds(model, tiling, said, profile)
        forms.add(type(tiling.form))
    assert forms


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


def figures(model: Model, profile: KernelProfile, known: Measured) -> dict[Tiling, Figures | None]:
    """What is measured of some tilings of a model, those of the first and of the smallest regions among them."""
    measure = Measure(model, profile, known)
    every = sorted(figures_of(space_of(model, profile, EVERY)))
    return {tiling: measure(tiling) for tiling in every[:: max(1, len(every) // 30)]}


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 10_000), st.sampled_from(TYPES), st.sampled_from(KERNELS))
def test_what_is_known_is_what_is_measured_anew(seed: int, dtype: DType, kernels: str) -> None:
    model, known, profile = random_network(seed, dtype, 4, height=8), Measured(), profile_named(kernels)
    figures(model, profile, known)
    for each in (another_order(model, seed), another_output(model, seed)):
        assert figures(each, profile, known) == figures(each, profile, Measured())


def test_a_copy_needs_nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    model, known, profile = chain(), Measured(), profile_named("portable")
    first = figures(model, profile, known)
    assert known.found
    assert any(first.values())
    monkeypatch.setattr(measuring, "apply_tilings", None)
    assert figures(copy_model(model), profile, known) == first


def test_keys_tell_regions_apart() -> None:
    """By where they are, what lives on, the kernels, and operators with other weights."""
    model, known = chain(), Measured()

    def keys(model: Model, profile: int = 0) -> _RegionKeys:
        return _RegionKeys(model, profile, known)

    heavier = chain()
    weights = heavier.main.operators[0].inputs[1]
    assert weights is not None
    assert weights.buffer.data is not None
    weights.buffer = Buffer(np.bitwise_not(weights.buffer.data))
    others = [
        keys(heavier).of(0, 2),
        keys(another_output(model, 1)).of(0, 4),
        keys(model, 1).of(0, 2),
        keys(model).of(1, 3),
        keys(model).of(0, 3),
    ]
    assert len({keys(model).of(0, 2), *others}) == 1 + len(others)
    assert keys(chain()).of(0, 2) == keys(copy_model(model)).of(0, 2) == keys(model).of(0, 2)


def test_a_region_that_cannot_be_written_is_known_as_such() -> None:
    model, known, profile = chain(), Measured(), profile_named("portable")
    measure, space = Measure(model, profile, known), space_of(model, profile)
    tiling = min(figures_of(space))
    wrong = Tiling(tiling.first, tiling.end, Unrolled((1, 2), "rolling", "trim"))
    assert measure(wrong) is None
    assert measure.is_known(wrong)
    measure.add(tiling, None)
    space_knowing = space_of(model, profile, measured=known)
    space_knowing.measurements.take([tiling])
    assert tiling not in figures_of(space_knowing)
