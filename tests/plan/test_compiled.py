"""Compiled copies: the same steps as the plain source, typed in full, and left alone when they are out of date."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.problems import guillotine, small_problems
from tests.profiles import examples
from tflite_memopt.graph.search_limit import SearchLimit, WorkAllowance
from tflite_memopt.plan.compiled import code_for, compiled_copy
from tflite_memopt.plan.exact import disjunctive, tree
from tflite_memopt.plan.exact.group import group_of, time_groups
from tflite_memopt.plan.exact.pair_search import PairSearch
from tflite_memopt.plan.exact.run import SearchRun
from tflite_memopt.plan.exact.settings import ORDERINGS, TreeSettings
from tflite_memopt.plan.exact.tree_search import TreeSearch
from tflite_memopt.plan.hill_climb import moves, strategy
from tflite_memopt.plan.placement import Placement
from tflite_memopt.plan.problem import PlanProblem

SOURCES = (tree, disjunctive, moves)
LIMIT = SearchLimit(time_limit=600.0)
needs_copies = pytest.mark.skipif(
    any(code_for(source)[0] is source for source in SOURCES), reason="the package was built without Cython"
)


def both_runs(problem: PlanProblem, indices: Sequence[int], top: int, rule: int, nodes: int) -> list[SearchRun]:
    """A run of the plain source and one of its copy."""
    group, runs = group_of(problem, indices), []
    for compiles in (False, True):
        settings = TreeSettings(compiles=compiles)
        search = PairSearch(group, compiles) if group.has_relations else TreeSearch(group, settings)
        rules = search.rules
        runs.append(search.run(top, rules[rule % len(rules)], nodes, WorkAllowance(10**9, LIMIT)))
    return runs


@needs_copies
@given(problem=small_problems(), rule=st.integers(0, 2), less=st.integers(0, 8))
@examples(300)
def test_compiled_searches_visit_the_same_nodes(problem: PlanProblem, rule: int, less: int) -> None:
    for indices in time_groups(problem.items):
        top = sum(problem.items[index].size for index in indices) + 20 - less
        plain, compiled = both_runs(problem, indices, top, rule, 1000)
        assert plain == compiled


@needs_copies
@pytest.mark.parametrize("rule", range(len(ORDERINGS)))
def test_the_compiled_tree_visits_the_same_nodes_of_a_long_search(rule: int) -> None:
    plain, compiled = both_runs(guillotine(seed=5, cuts=60), range(60), 4096, rule, 4000)
    assert plain == compiled
    assert plain.nodes > 60


@needs_copies
@pytest.mark.parametrize("rule", PairSearch.rules)
def test_compiled_pairs_visit_the_same_nodes_below_the_depth_of_31(rule: str) -> None:
    """Causes are sets of nodes, a bit for each depth: an int of C would not hold them."""
    problem = guillotine(seed=2, cuts=60)
    plain, compiled = (
        PairSearch(group_of(problem, range(len(problem.items))), compiles).run(
            4096, rule, 400, WorkAllowance(10**9, LIMIT)
        )
        for compiles in (False, True)
    )
    assert plain == compiled
    assert plain.nodes > 60


@needs_copies
@given(problem=small_problems(), seed=st.integers(0, 99))
@examples(100)
def test_the_compiled_hill_climb_makes_the_same_moves(problem: PlanProblem, seed: int) -> None:
    limit = SearchLimit(time_limit=600.0, seed=seed)
    compiled = strategy.hill_climb(problem, limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy, "code_for", lambda source: code_for(source, compiles=False))
        assert strategy.hill_climb(problem, limit) == compiled


@given(problem=small_problems(), pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
@examples(200)
def test_after_every_exchange_each_item_lies_as_low_as_its_turn_allows(
    problem: PlanProblem, pairs: list[tuple[int, int]]
) -> None:
    free = [index for index, item in enumerate(problem.items) if item.offset is None and item.size]
    if len(free) < 2:
        return
    data = moves.ClimbData(strategy._tables(problem, free))
    state = moves.ClimbState(strategy._state(problem, free))
    state.registers[moves.BEST] = 1 << 40
    moves.place_all(data, state)
    for a, b in pairs:
        top = state.registers[moves.TOP]
        moves.exchange(data, state, free[a % len(free)], free[b % len(free)])
        assert state.registers[moves.TOP] <= top
        placement = Placement(problem)
        for index in state.order[: len(free)]:
            placement.place(((index, 0),), placement.lowest(((index, 0),)))
            assert placement.offsets[index] == state.offset[index]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__.rpartition(".")[2])
def test_every_function_and_field_has_its_c_types(source: ModuleType) -> None:
    """What the .pxd file leaves out would run as slow Python objects."""
    path = Path(source.__file__ or "")
    text, types = path.read_text(), path.with_name(f"_{path.stem}.pxd").read_text()
    functions = dict(re.findall(r"^def (\w+)\((.*?)\) -> ", text, re.MULTILINE))
    typed = dict(re.findall(r"^cp?def (?:void|long long) (\w+)\((.*?)\) noexcept$", types, re.MULTILINE))
    names = {name: re.findall(r"(\w+):", arguments) for name, arguments in functions.items()}
    assert names == {name: re.findall(r"(\w+)(?:,|$)", arguments) for name, arguments in typed.items()}
    fields = re.findall(r"^    (\w+): (?:Ints|int)$", text, re.MULTILINE)
    assert fields == re.findall(r"^    cdef public long long(?:\[::1\])? (\w+)$", types, re.MULTILINE)


def test_a_copy_of_another_version_is_left_alone(tmp_path: Path) -> None:
    newer = tmp_path / "tree.py"
    newer.write_text("# changed\n")
    assert compiled_copy(tree.__name__, str(newer)) is None
    assert compiled_copy("tflite_memopt.plan.exact.strategy", str(newer)) is None


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_no_function_has_a_number_that_compiles_to_an_object(source: ModuleType) -> None:
    """Arithmetic with one looks for signals, and a function that cannot raise then swallows the Ctrl-C."""
    functions = [
        node
        for node in ast.walk(ast.parse(Path(source.__file__ or "").read_text()))
        if isinstance(node, ast.FunctionDef)
    ]
    numbers = [node.value for each in functions for node in ast.walk(each) if isinstance(node, ast.Constant)]
    assert [value for value in numbers if isinstance(value, int) and abs(value) >= 1 << 31] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_no_function_shifts_a_plain_number(source: ModuleType) -> None:
    """C takes it for an int, and so the result: bits beyond the 31st would be lost in the compiled copy alone."""
    functions = [
        node
        for node in ast.walk(ast.parse(Path(source.__file__ or "").read_text()))
        if isinstance(node, ast.FunctionDef)
    ]
    shifts = [node for each in functions for node in ast.walk(each) if isinstance(node, ast.BinOp)]
    wrong = [each.lineno for each in shifts if isinstance(each.op, ast.LShift) and isinstance(each.left, ast.Constant)]
    assert wrong == []
