"""Plans of whole families are those of their candidates one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import concat_model, split_model
from tests.profiles import examples
from tflite_memopt import UsageError
from tflite_memopt.oracle.description import Dimension, GraphSketch, OperatorSketch, Sizes, TensorSketch, sketch_of
from tflite_memopt.oracle.levels import RamOracle
from tflite_memopt.oracle.replay import heads_under_one_plan

from .cells import cell_network
from .test_oracle import family_of


def scaled(seed: int, widths: Sizes, rows: Sizes) -> GraphSketch:
    """A network of cells at several widths and even resolutions: dimensions follow from three that are known."""
    small, tall, wide = (sketch_of(cell_network(seed, w, r, cells=1)) for w, r in ((4, 12), (4, 16), (8, 12)))
    tensors = {}
    for name, each in small.tensors.items():
        dimensions = zip(each.shape, tall.tensors[name].shape, wide.tensors[name].shape, strict=True)
        shape = tuple(
            own
            if own == by_rows == by_width
            else own + (by_rows - own) * (rows - 12) // 4 + (by_width - own) * (widths - 4) // 4
            for own, by_rows, by_width in dimensions
        )
        tensors[name] = replace(each, shape=shape)
    return replace(small, tensors=tensors)


@given(
    st.integers(0, 10**6),
    st.sampled_from((None, "cortex-m4", "cortex-m55", "riscv32")),
    st.lists(st.tuples(st.integers(1, 24), st.integers(3, 12)), min_size=1, max_size=5),
)
@examples(8)
def test_every_candidate_is_planned_as_if_alone(seed: int, target: str | None, sizes: list[tuple[int, int]]) -> None:
    widths, rows = (np.array(each, np.int64) for each in zip(*sizes, strict=True))
    for family in (scaled(seed, widths, 2 * rows), family_of(seed, widths, rows)):
        oracle = RamOracle.on(target)
        found = oracle.plans(family)
        for number in range(len(sizes)):
            alone = oracle.ram(family.candidate(number), "plan")
            assert (found.required[number], found.head[number], found.macs[number]) == (alone, alone.head, alone.macs)


def test_one_plan_serves_other_sizes() -> None:
    widths, rows = np.array([8, 4, 16, 12], np.int64), np.array([12, 16, 20, 24], np.int64)
    oracle = RamOracle.on("cortex-m4")
    family = scaled(3, widths, rows)
    heads = heads_under_one_plan(family, oracle.table, oracle.options)
    assert heads.tolist() == oracle.bounds(family).head.tolist()


def test_what_another_plan_does_not_fit_is_planned_alone() -> None:
    """Of two maps, each made from what the other one is not, one is the larger in one candidate, one in the other."""
    ups, downs = np.array([2, 32], np.int64), np.array([32, 2], np.int64)
    conv = {"padding": 0, "strideH": 1, "strideW": 1}
    maps: dict[str, Dimension] = {"x": 4, "a": ups, "b": downs, "c": 4, "d": 4, "sum": 4}
    tensors = {name: TensorSketch((1, 8, 8, channels)) for name, channels in maps.items()}
    convs = (("x", "a"), ("x", "b"), ("a", "c"), ("b", "d"))
    for source, made in convs:
        tensors[f"to {made}"] = TensorSketch((maps[made], 1, 1, maps[source]), is_constant=True)
    made_by = tuple(OperatorSketch("CONV_2D", (x, f"to {y}"), (y,), conv) for x, y in convs)
    family = GraphSketch(tensors, (*made_by, OperatorSketch("ADD", ("c", "d"), ("sum",))), ("x",), ("sum",))
    oracle = RamOracle.on("cortex-m4")
    found = oracle.plans(family)
    assert found.required.tolist() == [oracle.ram(family.candidate(number), "plan") for number in range(2)]


@pytest.mark.parametrize("model", [concat_model, split_model], ids=lambda each: each.__name__)
def test_a_graph_without_arrays_is_a_family_of_one(model: object) -> None:
    oracle, sketch = RamOracle.on("cortex-m4"), sketch_of(model())  # type: ignore[operator]
    assert oracle.plans(sketch).required.tolist() == [oracle.ram(sketch, "plan")]


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="different lengths"):
        RamOracle.on().plans(family_of(0, np.arange(1, 4), np.arange(1, 3)))
