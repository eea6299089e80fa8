"""The compiled copy: the same steps as the plain source, typed in full, and left alone when it is out of date."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.problems import guillotine, small_problems
from tests.profiles import examples
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.plan import disjunctive
from tflite_memopt.solvers.plan.exact import RULES, PairSearch, SearchRun, code, compiled_copy, group_of, time_groups
from tflite_memopt.solvers.plan.problem import PlanProblem

LIMIT = SearchLimit(time_limit=600.0)
SOURCE = Path(disjunctive.__file__)
needs_copies = pytest.mark.skipif(code() is disjunctive, reason="the package was built without Cython")


def both_runs(problem: PlanProblem, indices: Sequence[int], top: int, rule: str, nodes: int) -> list[SearchRun]:
    """A run of the plain source and one of its copy."""
    group = group_of(problem, indices)
    searches = (PairSearch(group, compiles) for compiles in (False, True))
    return [search.run(top, rule, nodes, Allowance(10**9, LIMIT)) for search in searches]


@needs_copies
@given(problem=small_problems(), rule=st.sampled_from(RULES), less=st.integers(0, 8))
@examples(300)
def test_compiled_searches_visit_the_same_nodes(problem: PlanProblem, rule: str, less: int) -> None:
    for indices in time_groups(problem.items):
        top = sum(problem.items[index].size for index in indices) + 20 - less
        plain, compiled = both_runs(problem, indices, top, rule, 1000)
        assert plain == compiled


@needs_copies
@pytest.mark.parametrize("rule", RULES)
def test_compiled_pairs_visit_the_same_nodes_below_the_depth_of_31(rule: str) -> None:
    """Causes are sets of nodes, a bit for each depth: an int of C would not hold them."""
    problem = guillotine(seed=2, cuts=60)
    plain, compiled = both_runs(problem, range(len(problem.items)), 4096, rule, 400)
    assert plain == compiled
    assert plain.nodes > 60


def test_every_function_and_field_has_its_c_types() -> None:
    """What the .pxd file leaves out would run as slow Python objects."""
    text, types = SOURCE.read_text(), SOURCE.with_name(f"_{SOURCE.stem}.pxd").read_text()
    functions = dict(re.findall(r"^def (\w+)\((.*?)\) -> ", text, re.MULTILINE))
    typed = dict(re.findall(r"^cp?def (?:void|long long) (\w+)\((.*?)\) noexcept$", types, re.MULTILINE))
    names = {name: re.findall(r"(\w+):", arguments) for name, arguments in functions.items()}
    assert names == {name: re.findall(r"(\w+)(?:,|$)", arguments) for name, arguments in typed.items()}
    fields = re.findall(r"^    (\w+): (?:Ints|int)$", text, re.MULTILINE)
    assert fields == re.findall(r"^    cdef public long long(?:\[::1\])? (\w+)$", types, re.MULTILINE)


def test_a_copy_of_another_version_is_left_alone(tmp_path: Path) -> None:
    newer = tmp_path / "disjunctive.py"
    newer.write_text("# changed\n")
    with pytest.warns(RuntimeWarning, match=r"disjunctive.py"):
        assert compiled_copy(disjunctive.__name__, str(newer)) is None
    assert compiled_copy("tflite_memopt.solvers.plan.methods", str(newer)) is None


def test_no_function_has_a_number_that_compiles_to_an_object() -> None:
    """Arithmetic with one looks for signals, and a function that cannot raise then swallows the Ctrl-C."""
    functions = [node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, ast.FunctionDef)]
    numbers = [node.value for each in functions for node in ast.walk(each) if isinstance(node, ast.Constant)]
    assert [value for value in numbers if isinstance(value, int) and abs(value) >= 1 << 31] == []


def test_no_function_shifts_a_plain_number() -> None:
    """C takes it for an int, and so the result: bits beyond the 31st would be lost in the compiled copy alone."""
    functions = [node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, ast.FunctionDef)]
    shifts = [node for each in functions for node in ast.walk(each) if isinstance(node, ast.BinOp)]
    wrong = [each.lineno for each in shifts if isinstance(each.op, ast.LShift) and isinstance(each.left, ast.Constant)]
    assert wrong == []
