"""What is predicted of a region in stripes, against the region written into a model and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.cascade.excerpt import excerpt
from tests.cascade.networks import EVERY, OPERATORS, TYPES, random_network
from tflite_memopt.cascade.arena_terms import ArenaTerms, arena_terms
from tflite_memopt.cascade.counts import Additions
from tflite_memopt.cascade.cut_table import CutTable, Ends, even_ends
from tflite_memopt.cascade.forecast import Forecast, forecasts
from tflite_memopt.cascade.least_needs import least_needs
from tflite_memopt.cascade.predict import Aim, OptionFinder
from tflite_memopt.cascade.region import Region, region_of, start_of_region
from tflite_memopt.cascade.selection import BaseNeed, SelectionLimits
from tflite_memopt.cascade.striped_region import MODES, Mode, StripedRegion, apply_stripes
from tflite_memopt.cascade.twins import Twins
from tflite_memopt.errors import InfeasibleError
from tflite_memopt.graph.alignment import aligned
from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model, Tensor
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.kernels.requests.table import requests_in
from tflite_memopt.memory.cost import Footprint, footprint
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.work import model_work
from tflite_memopt.operators.rows import RowByRow
from tflite_memopt.operators.table import row_by_row
from tflite_memopt.plan.methods import solve

PROFILES = ("portable", "reference", "cmsis-nn", "cmsis-nn-dsp", "cmsis-nn-mve", "esp-nn", "esp-nn-s3")
NO_LIMITS = SelectionLimits(1 << 60, 1 << 60)


def cuts_of(height: int, uneven: Sequence[int]) -> CutTable:
    """Even stripes of several counts, at multiples of rows as well, and one way to cut that is drawn."""
    ways = {even_ends(height, count, multiple): None for count in (2, 3, 5, 12) for multiple in (1, 2)}
    ways[tuple(sorted({min(height, 1 + row % height) for row in uneven} | {height}))] = None
    return CutTable(tuple(way for way in ways if len(way) > 1))


def starts_and_forecasts(
    model: Model, end: int, cuts: CutTable, mode: Mode, kernels: str
) -> Iterator[tuple[int, Forecast, Additions]]:
    """Every region that ends with step ``end``, exclusive."""
    operators = model.main.operators
    ways = [row_by_row(operator) for operator in operators]
    first = start_of_region(model.main, end - 1, ways, 40)
    later = {tensor for operator in operators[end:] for tensor in operator.present_inputs()} | set(model.main.outputs)
    chosen = [way for way in ways[first:end] if isinstance(way, RowByRow)]
    twins = Twins(profile_named(kernels))
    for each in forecasts(operators[first:end], chosen, cuts, mode, twins, later):
        yield first + each.first, each, each.additions()


def lowered(part: Model, ends: Ends, mode: Mode) -> Model | None:
    """An excerpt in stripes; None where it cannot be."""
    copied = copy_model(part)
    try:
        apply_stripes(copied, [StripedRegion(0, len(part.main.operators), ends, *mode)])
    except InfeasibleError:
        return None
    return copied


def predicted(terms: ArenaTerms, forecast: Forecast, added: Additions, way: int) -> Footprint:
    operators, activations = int(added.operators[way]), int(added.activations[way])
    tensors = activations + int(added.tensors[way]) + len(added.constants_of(way))
    requests = int(added.requests[way])
    tail = terms.tail_with(operators, tensors, int(added.params[way]), int(added.buffers[way]), requests)
    temporaries = terms.temporaries_with(tensors, activations, requests)
    macs, peak = terms.macs + int(added.macs[way]), int(forecast.peak[way])
    return Footprint(peak, tail, temporaries, macs, terms.operators + operators)


def first_buffer(model: Model, profile: KernelProfile) -> int:
    """Bytes of the first persistent buffer, the one that shares its 16 bytes with the structures before it."""
    found = requests_in(model, profile.abi, profile.requests)
    asked = [found[operator] for operator in model.main.operators]
    early, late = [size for each in asked for size in each.init], [size for each in asked for size in each.prepare]
    return next(iter([*early, *late]), 0)


def structures_below_a_word(model: Model, profile: KernelProfile) -> int:
    """How many of the parser's structures may share a word, which the prediction does not know."""
    return sum(each.params % 4 > 0 for each in requests_in(model, profile.abi, profile.requests).values())


def with_first_buffer_of(striped: Model, part: Model, found: Footprint, profile: KernelProfile) -> Footprint:
    """The prediction where a PAD, in place of the excerpt's first operator, has the first persistent buffer."""
    was, now = first_buffer(part, profile), first_buffer(striped, profile)
    structures = arena_terms(striped, profile).structures - now
    shift = aligned(structures + now) - aligned(now) - (aligned(structures + was) - aligned(was))
    return replace(found, tail=found.tail + shift)


def exits(model: Model) -> list[int]:
    """The ends, exclusive, of the steps that can be the last one of a region."""
    found = []
    for at, operator in enumerate(model.main.operators):
        shape = operator.outputs[0].shape
        if len(shape) > 2 and shape[1] > 1 and isinstance(region_of(model.main, [operator]), Region):
            found.append(at + 1)
    return found


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    mode=st.sampled_from(MODES),
    kernels=st.sampled_from(PROFILES),
    uneven=st.lists(st.integers(0, 40), max_size=6),
    kinds=st.just(EVERY),
)
# Views of other stripes end inside what an operator reads, and stripes that read the very same rows.
@example(252411, DType.FLOAT32, 1, ("rolling", "pad"), "reference", [1, 3], OPERATORS)
@example(1509, DType.INT8, 5, ("rolling", "trim"), "reference", [4], OPERATORS)
@example(23153, DType.FLOAT32, 6, ("recompute", "trim"), "reference", [1, 3, 6, 8], OPERATORS)
@example(407855, DType.FLOAT32, 1, ("recompute", "pad"), "portable", [35, 3, 8], OPERATORS)
@example(546092, DType.FLOAT32, 2, ("rolling", "pad"), "reference", [4], OPERATORS)
@example(819375, DType.FLOAT32, 2, ("recompute", "trim"), "cmsis-nn-mve", [33, 31, 10], OPERATORS)
def test_what_is_predicted_is_what_the_lowered_region_needs(
    seed: int, dtype: DType, layers: int, mode: Mode, kernels: str, uneven: list[int], kinds: Sequence[str]
) -> None:
    model = random_network(seed, dtype, layers, kinds=kinds)
    assume(exits(model))
    end = exits(model)[seed % len(exits(model))]
    cuts = cuts_of(model.main.operators[end - 1].outputs[0].shape[1], uneven)
    profile = profile_named(kernels)
    for first, forecast, added in starts_and_forecasts(model, end, cuts, mode, kernels):
        part = excerpt(model, first, end)
        terms = arena_terms(part, profile)
        if not first_buffer(part, profile):
            continue  # nothing but resizing, which keeps nothing: no model is like that
        for way, ends in enumerate(cuts.ways):
            striped = lowered(part, ends, mode)
            if striped is None or not forecast.exact[way]:
                assert striped is not None or not forecast.exact[way]
                continue
            found = with_first_buffer_of(striped, part, predicted(terms, forecast, added, way), profile)
            measured = footprint(striped, profile)
            small = structures_below_a_word(striped, profile)
            if small and abs(found.tail - measured.tail) <= aligned(4 * small):
                measured = replace(measured, tail=found.tail)
            assert found == measured, (first, end, ends)
            more = model_work(striped, profile.prices) - model_work(part, profile.prices)
            assert int(added.work[way]) == more, (first, end, ends)
            assert forecast.bound[way] <= forecast.peak[way]
            if way == seed % len(cuts.ways):
                plan = solve(memory_layout(striped, profile).problem, "best", SearchLimit(0.05))
                assert forecast.bound[way] <= plan.arena_bytes


def test_most_ways_to_cut_are_predicted() -> None:
    """Rows of 16 bytes and more, as in real networks; what is left out is a last stripe that reads no new row."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 24, 24, 8)), 16, kernel=3, stride=2, seed=1)
    y = b.add(y, b.conv(b.depthwise(y, seed=2), 16, seed=3))
    model = b.finish(b.conv(y, 8, kernel=3, seed=4))
    cuts = cuts_of(12, ())
    for mode in MODES:
        found = list(starts_and_forecasts(model, 5, cuts, mode, "reference"))
        assert [first for first, _, _ in found] == [4, 3, 2, 1, 0]
        exact = [flag for _, forecast, _ in found for flag in forecast.exact.tolist()]
        assert exact.count(True) >= 0.95 * len(exact)


def figures(model: Model, cuts: CutTable, mode: Mode, twins: Twins, start: int | None) -> dict[int, list[object]]:
    """What is said of each region that ends with the last step, or of the one that starts with ``start``."""
    operators, found = model.main.operators, {}
    ways = [row_by_row(operator) for operator in operators]
    first = start_of_region(model.main, len(operators) - 1, ways, 40)
    chosen = [way for way in ways[first:] if isinstance(way, RowByRow)]
    returned = model.main.outputs
    wanted: Callable[[int], bool] = (lambda _: True) if start is None else (lambda place: first + place == start)
    for each in forecasts(operators[first:], chosen, cuts, mode, twins, returned, starts_at=wanted):
        arrays = each.peak, each.bound, each.exact, each.macs, *vars(each.additions()).values()
        found[first + each.first] = [array.tolist() for array in arrays]
    return found


@pytest.mark.parametrize("kernels", ["portable", "reference"])
@pytest.mark.parametrize("mode", MODES)
def test_of_each_start_a_sweep_says_what_one_for_that_start_alone_says(mode: Mode, kernels: str) -> None:
    """What is read of an input is known from the start before, but for where an operator more reads it."""
    b = ModelBuilder()
    x = b.conv(b.input("x", (1, 24, 20, 3)), 8, kernel=3, seed=1)
    y = b.conv(b.depthwise(x, kernel=3, seed=2), 8, seed=3)
    z = b.conv(b.add(y, x), 8, kernel=3, seed=4)
    model = b.finish(b.add(b.concat([z, x]), b.concat([b.conv(x, 8, seed=5), y])))
    twins = Twins(profile_named(kernels))
    every = figures(model, cuts_of(24, [5, 7]), mode, twins, None)
    assert len(every) == len(model.main.operators)
    for start, expected in every.items():
        assert figures(model, cuts_of(24, [5, 7]), mode, twins, start) == {start: expected}


def aim(below: int = 1 << 40) -> Aim:
    return Aim(0, below, NO_LIMITS, BaseNeed(0, 0, 0))


def chain() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 32, 32, 4)), 16, kernel=3, seed=1)
    y = b.conv(b.depthwise(y, kernel=3, stride=2, seed=2), 8, seed=3)
    return b.finish(b.average_pool(y, 16))


@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_options_say_what_the_whole_model_needs_while_they_run(kernels: str) -> None:
    model, profile = chain(), profile_named(kernels)
    found = OptionFinder(model, profile, aim()).options(MODES)
    assert found.options
    assert list(found.needs) == least_needs(model, profile)
    for region, option in found.every.items():
        striped = copy_model(model)
        apply_stripes(striped, [region])
        outside = [need for step, need in enumerate(found.needs) if not option.first <= step < option.end]
        plan = solve(memory_layout(striped, profile).problem, "greedy_by_size")
        assert max(*outside, option.bound) <= plan.arena_bytes
        assert len(striped.main.operators) - len(model.main.operators) == option.operators


def test_options_within_limits_only() -> None:
    limits = SelectionLimits(1000, 20)
    found = OptionFinder(chain(), profile_named("portable"), Aim(0, 1 << 40, limits, BaseNeed(0, 0, 0))).options(MODES)
    assert found.every
    assert all(option.macs <= 1000 and option.operators <= 20 for option in found.every.values())


def test_a_pinned_tensor_is_inside_no_option() -> None:
    model = chain()
    inner: Tensor = model.main.operators[1].outputs[0]
    found = OptionFinder(model, profile_named("portable"), aim(), [inner.name]).options(MODES)
    assert found.every
    assert not any(option.first <= 1 < option.end - 1 for option in found.every.values())
