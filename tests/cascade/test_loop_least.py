"""What is said of a loop before it is written, against the bound of the loop that is written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from tests.cascade.networks import EVERY, TYPES, random_network
from tflite_memopt.cascade.known_loops import KnownLoops, RegionKeys
from tflite_memopt.cascade.loop.least import least_head
from tflite_memopt.cascade.loop.lower import turns_of
from tflite_memopt.cascade.loop_options import LoopOptions
from tflite_memopt.cascade.may_share import MayShare
from tflite_memopt.cascade.region import region_of
from tflite_memopt.cascade.selection import SelectionLimits
from tflite_memopt.cascade.striped_region import LOOP_MODES, LoopMode
from tflite_memopt.ir.builder import SAME, ModelBuilder
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import profile_named

THIN = (1, 16, 1, 1)


def both(model: Model, profile: KernelProfile, mode: LoopMode, numbers: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """For all regions of a model and numbers of rows: what is said before, and the bound."""
    count, keys, shares = len(model.main.operators), RegionKeys(model, profile, KnownLoops()), MayShare(profile)
    written = LoopOptions(model, profile, SelectionLimits(0, 0), KnownLoops())
    for first, end in combinations(range(count + 1), 2):
        region = region_of(model.main, model.main.operators[first:end])
        if isinstance(region, str):
            continue
        lives_on = {tensor for tensor in region.inputs if keys.lives_on(tensor, end)}
        for rows in numbers:
            turns = turns_of(region, rows, mode[2], *mode[:2])
            if not isinstance(turns, str):
                said = least_head(region, turns, shares, lives_on)
                yield said, written._worked_out(first, end, rows, mode).bound


@pytest.mark.parametrize("kernels", ["portable", "reference", "cmsis-nn-dsp"])
@pytest.mark.parametrize("mode", LOOP_MODES)
@pytest.mark.parametrize("seed", range(3))
def test_no_loop_needs_less_than_is_said_before(seed: int, mode: LoopMode, kernels: str) -> None:
    kinds = ("conv", "depthwise", "add", "concat", "average", "cut") if seed else EVERY
    model = random_network(seed, TYPES[seed % 3], 4, height=12, kinds=kinds)
    assert all(said <= bound for said, bound in both(model, profile_named(kernels), mode, (1, 2, 3)))


def deep(kind: str, lives_on: bool = False) -> Model:
    """One operator: a window of seven rows or of one, or a sum of two inputs. An input may be returned as well."""
    b = ModelBuilder()
    channels, taps = (32 if kind in ("wide", "pointwise") else 16), (1 if kind == "pointwise" else 7)
    x, y = b.input("x", (1, 16, 16, 16)), b.tensor("y", (1, 16, 16, channels))
    fields = {"padding": SAME, "strideH": 1, "strideW": 1}
    if kind in ("depthwise", "wide", "pointwise"):
        weights = b.constant("weights", np.ones((1, taps, taps, channels), np.int8))
        operands = (x, weights, b.constant("bias", np.zeros(channels, np.int32)))
        b.operator(
            "DEPTHWISE_CONV_2D", operands, (y,), "DepthwiseConv2DOptions", **fields, depthMultiplier=channels // 16
        )
    elif kind == "sum":
        b.operator("ADD", (x, b.input("other", (1, 16, 16, 16))), (y,), "AddOptions")
    else:
        b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", **fields, filterHeight=7, filterWidth=1)
    return b.finish(y, x) if lives_on else b.finish(y)


@pytest.mark.parametrize("lives_on", [False, True])
@pytest.mark.parametrize("kind", ["depthwise", "wide", "pointwise", "pool", "sum"])
def test_what_is_said_lacks_the_counter_and_a_begin_at_most(kind: str, lives_on: bool) -> None:
    found = list(both(deep(kind, lives_on), profile_named("portable"), LOOP_MODES[0], (1, 2, 3)))
    assert len(found) == 3
    assert all(0 <= bound - said <= 32 for said, bound in found)


def test_a_slice_of_a_whole_image_may_read_from_further_on() -> None:
    b = ModelBuilder()
    x, cut, y = (b.tensor(n, s, DType.FLOAT32) for n, s in (("x", (1, 16, 4, 8)), ("cut", THIN), ("y", THIN)))
    b.graph.inputs = (x,)
    said = b.constant("begin", np.asarray([0, 0, 3, 7], np.int32)), b.constant("size", np.asarray(THIN, np.int32))
    b.operator("SLICE", (x, *said), (cut,), "SliceOptions")
    fields = {"padding": SAME, "strideH": 1, "strideW": 1, "filterHeight": 15, "filterWidth": 1}
    b.operator("MAX_POOL_2D", (cut,), (y,), "Pool2DOptions", **fields)
    found = list(both(b.finish(y), profile_named("portable"), LOOP_MODES[0], (2, 4)))
    assert all(said <= bound for said, bound in found)


def test_who_may_share_under_which_profile() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8, 4, 16)), b.tensor("y", (1, 8, 4, 16))
    pool = {"padding": SAME, "strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 3}
    b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", **pool)
    joins = {3: b.tensor("channels", (1, 8, 4, 32)), 2: b.tensor("columns", (1, 8, 8, 16))}
    for axis, joined in joins.items():
        b.operator("CONCATENATION", (x, y), (joined,), "ConcatenationOptions", axis=axis)
    pooled, channels, columns = b.finish(*joins.values()).main.operators
    portable, reference = MayShare(profile_named("portable")), MayShare(profile_named("reference"))
    assert (portable(pooled), reference(pooled)) == (False, True)
    assert not portable(channels)
    assert not reference(channels)
    assert portable(columns)  # one row of it is one run
    assert reference(columns)
