"""The search for the concatenations to take apart, with costs made up for each set of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tests.rewrite.patterns import rule_named
from tflite_memopt.memory.arrange import Cost
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.options import Options
from tflite_memopt.search.rewrite.search import SiteLimit, TakenApart, search
from tflite_memopt.search.rewrite.stage import SPLITS, start_of

SPLIT_ELEMENTWISE = rule_named("split_elementwise")


Taken = frozenset[int]
BytesOf = Callable[[Taken], int]
AMPLE = SiteLimit(20_000)


def cells(count: int) -> Model:
    """A concatenation and a RELU, ``count`` times."""
    b = ModelBuilder()
    outputs = []
    for number in range(count):
        x = b.concat([b.input(f"x{number}_{part}", (1, 4, 4, 2)) for part in range(2)])
        outputs.append(b.tensor(f"cell{number}", x.shape))
        b.operator("RELU", (x,), outputs[-1:])
    return b.finish(*outputs)


def taken_in(model: Model) -> Taken:
    """The cells that are in parts."""
    writers = [tensor.producer for tensor in model.main.outputs]
    return frozenset(at for at, op in enumerate(writers) if op is not None and op.name == "CONCATENATION")


def run(count: int, head_of: BytesOf, need_of: BytesOf | None = None, limit: SiteLimit = AMPLE) -> TakenApart:
    def cost_of(model: Model) -> Cost:
        taken = taken_in(model)
        head = head_of(taken)
        return Cost(head if need_of is None else need_of(taken), head, 0, len(model.main.operators))

    return search(start_of(cells(count), (SPLIT_ELEMENTWISE,), Options().search), cost_of, limit)


def best_of(count: int, head_of: BytesOf) -> int:
    sets = (frozenset(each) for size in range(count + 1) for each in combinations(range(count), size))
    return min(head_of(each) for each in sets)


@examples(60)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=5))
def test_the_optimum_where_every_site_counts_for_itself(changes: list[int]) -> None:
    def head_of(taken: Taken) -> int:
        return 1000 + sum(changes[at] for at in taken)

    found = run(len(changes), head_of)
    assert found.cost.head == best_of(len(changes), head_of)
    assert taken_in(found.model) == {at for at, change in enumerate(changes) if change < 0}


@examples(60)
@given(st.lists(st.tuples(st.integers(10, 100), st.integers(1, 200)), min_size=1, max_size=5))
def test_the_optimum_where_the_largest_counts(peaks: list[tuple[int, int]]) -> None:
    """Taking a cell apart makes its peak smaller, or larger than any."""
    peaks = [(whole, parts if parts < whole else 200 + parts) for whole, parts in peaks]

    def head_of(taken: Taken) -> int:
        return max(parts if at in taken else whole for at, (whole, parts) in enumerate(peaks))

    found = run(len(peaks), head_of)
    assert found.cost.head == best_of(len(peaks), head_of)
    taken = taken_in(found.model)
    assert all(head_of(taken - {at}) > found.cost.head for at in taken), "a site that nothing needs"


def test_equal_cells_that_bind_together_although_each_costs_a_little() -> None:
    def head_of(taken: Taken) -> int:
        return 60 if taken >= {0, 1, 2} else 100

    found = run(4, head_of, lambda taken: head_of(taken) + 3 * len(taken))
    assert taken_in(found.model) == {0, 1, 2}
    assert [site.saved_bytes for site in found.sites] == [37, 37, 37]
    assert [site.applied[0].rule for site in found.sites] == ["split_elementwise"] * 3
    assert [(each.rule, each.operator) for each in found.refused] == [("search", "concat6")]


def test_what_raises_the_cost_is_undone() -> None:
    model = cells(3)
    before = dump_model(model)
    found = search(
        start_of(model, (SPLIT_ELEMENTWISE,), Options().search), lambda each: Cost(len(taken_in(each)), 0, 0, 0), AMPLE
    )
    assert found.model is model
    assert dump_model(model) == before
    assert found.sites == ()
    assert len(found.refused) == 3


def test_the_original_is_not_changed_and_the_result_has_no_dead_tensors() -> None:
    model = cells(2)
    before = dump_model(model)
    seen = []

    def cost_of(each: Model) -> Cost:
        check_model(each)
        seen.append(sum(tensor.producer is None and not tensor.uses for tensor in each.main.tensors))
        return Cost(-len(taken_in(each)), 0, 0, 0)

    found = search(start_of(model, (SPLIT_ELEMENTWISE,), Options().search), cost_of, AMPLE)
    assert taken_in(found.model) == {0, 1}
    assert dump_model(model) == before
    assert set(seen) == {0}


@pytest.mark.parametrize("work", [0, 15, 50, 100, 600])
def test_no_cost_is_asked_for_once_the_operators_of_the_limit_are_worked_out(work: int) -> None:
    asked = []

    def head_of(taken: Taken) -> int:
        asked.append(taken)
        return 100 - len(taken & {0, 1, 2})

    found = run(6, head_of, limit=SiteLimit(work))
    # None and all are always compared. A cell has two operators, and three in parts.
    assert len(asked) == 2 or sum(12 + len(taken) for taken in asked[:-1]) < work
    assert len(asked) == len(set(asked))
    assert found.cost.head == 97
    # A model of which not all was tried is not called the best.
    complete = "taking it apart does not lower the memory to reserve, within the limit on run time"
    assert all((each.reason == complete) == (work == 600) for each in found.refused)


@pytest.mark.parametrize(("below", "is_hopeless"), [(95, True), (96, False), (None, False)])
def test_nothing_more_is_tried_where_all_sites_leave_too_much(below: int | None, is_hopeless: bool) -> None:
    asked = []

    def need_of(taken: Taken) -> int:
        asked.append(taken)
        return 100 + 2 * len(taken)

    found = run(5, lambda taken: 50 - len(taken), need_of, SiteLimit(600, below))
    assert (found.cost.need, found.sites) == (100, ())
    assert (len(asked) == 2) == is_hopeless


def test_a_model_without_a_site_stays_as_it_is() -> None:
    b = ModelBuilder()
    model = b.finish(b.conv(b.input("x", (1, 4, 4, 2)), 4))
    found = search(start_of(model, (SPLIT_ELEMENTWISE,), Options().search), lambda _: Cost(1, 1, 1, 1), AMPLE)
    assert found.model is model
    assert (found.sites, found.refused) == ((), ())


@pytest.mark.parametrize("worse", ["exact", "approximates"])
def test_what_is_allowed_is_used_only_where_it_pays(worse: str) -> None:
    """Two cells of a concatenation, RELU and convolution; in parts, the RELU or the convolution costs more."""
    b = ModelBuilder()
    for number in range(2):
        x = b.concat([b.input(f"x{number}_{part}", (1, 4, 4, 2)) for part in range(2)])
        y = b.tensor(f"relu{number}", x.shape)
        b.operator("RELU", (x,), (y,))
        b.graph.outputs = (*b.graph.outputs, b.conv(y, 4))

    def cost_of(model: Model) -> Cost:
        """The first cell wants to go all the way down, the second only through the RELU."""
        first, second = model.main.outputs
        bytes_of = {"ADD": 10, "split": 20, "whole": 30}, {"ADD": 50, "split": 20, "whole": 30}
        head = sum(table[state(tensor)] for table, tensor in zip(bytes_of, (first, second), strict=True))
        return Cost(head + (500 if worse == "exact" and state(first) == "split" else 0), head, 0, 0)

    found = search(start_of(b.model, SPLITS, Options(allow_approximate=True).search), cost_of, AMPLE)
    assert [state(tensor) for tensor in found.model.main.outputs] == ["ADD", "split"]
    assert [[each.exactness for each in site.applied] for site in found.sites] == [["exact", "approximates"], ["exact"]]


def state(conv: Tensor) -> str:
    """In how many pieces a cell is."""
    writer = conv.producer
    assert writer is not None
    if writer.name == "ADD":
        return "ADD"
    relu = writer.inputs[0]
    assert relu is not None
    assert relu.producer is not None
    return "split" if relu.producer.name == "CONCATENATION" else "whole"
