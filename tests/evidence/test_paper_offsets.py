"""The pieces of scripts/paper: which tensors count, what ties decide, how claims and the index are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.papers import claims, items, offsets
from tflite_memopt.model.ir.model import Buffer, DType, Graph, OpCode, Operator, Tensor
from tflite_memopt.solvers.plan.problem import Item, PlanProblem


def chain_of_three() -> Graph:
    """Input, two tensors between three operators, output; the first of the two is read by the last operator, too."""
    graph = Graph()
    tensors = [graph.add_tensor(Tensor(f"t{i}", (1, 10 * (i + 1)), DType.INT8, Buffer())) for i in range(4)]
    for step in range(3):
        read = (tensors[step], tensors[1]) if step == 2 else (tensors[step],)
        graph.add_operator(Operator(OpCode("ADD"), read, (tensors[step + 1],)))
    graph.inputs, graph.outputs = (tensors[0],), (tensors[3],)
    return graph


def test_the_caller_s_tensors_are_left_out_and_sizes_are_rounded_up() -> None:
    assert items.intermediate_items(chain_of_three()) == (Item(64, 0, 3, 64), Item(64, 1, 3, 64))


def test_the_order_of_equal_sizes_decides_on_some_networks() -> None:
    always = PlanProblem((Item(2, 0, 1), Item(1, 1, 2)))
    assert offsets.orders_of_ties(always, 20) == 20
    blaze = PlanProblem(tuple(Item(size, start, end) for size, start, end in SOMETIMES))
    assert 0 < offsets.orders_of_ties(blaze, 100) < 100


SOMETIMES = (
    *((7, 4, 8), (7, 6, 8), (7, 7, 11), (6, 0, 4), (6, 1, 3), (6, 2, 4), (6, 3, 6), (6, 5, 7)),
    *((2, 9, 13), (2, 11, 13), (2, 8, 10), (2, 10, 12)),
)
"""The large tensors of a BlazeFace: (size, first step, end)."""


def test_every_claim_of_the_values_has_a_rerun() -> None:
    paper = claims.paper_named("efficient_memory_management")
    found = offsets.reruns({name: offsets.planned((Item(64, 0, 2), Item(128, 1, 3))) for name in offsets.NETWORKS})
    text = "\n".join(claims.page(paper, "scripts/paper x", found, []))
    assert all(str(claim["claim"]) in text for claim in paper.claims.values())


def test_a_claim_without_a_rerun_is_an_error() -> None:
    paper = claims.paper_named("efficient_memory_management")
    with pytest.raises(KeyError, match="claims without a rerun"):
        list(claims.page(paper, "scripts/paper x", [], []))


def test_the_index_has_the_claims_of_every_page_and_a_row_for_each_table(tmp_path: Path) -> None:
    paper = claims.paper_named("cascading_rfc")
    reruns = [
        claims.Rerun(key, f"{number} here", "1", False, 3.0, "Because.") for number, key in enumerate(paper.claims)
    ]
    lines = claims.page(paper, "scripts/paper cascading_rfc X", reruns, ["## More"], claims.Spent(9, 7).since(_START))
    (tmp_path / "cascading_rfc.md").write_text("\n".join(lines))
    text = "\n".join(claims.index(tmp_path))
    assert [text.count(f"{number} here") for number in range(6)] == [1] * 6
    assert "    scripts/paper cascading_rfc X\n" in text
    assert "Because." not in text


_START = claims.Spent(1, 2)


def test_the_values_say_where_each_claim_stands() -> None:
    for path in claims.VALUES.glob("*.json"):
        paper = claims.paper_named(path.stem)
        assert all(claim["where"] and claim["published"] for claim in paper.claims.values())
