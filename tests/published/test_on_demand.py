"""The papers' methods are loaded when somebody asks for one, and HiGHS is wanted by nobody else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.models import dense_model
from tflite_memopt import UsageError, compare
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.solvers.schedule.methods import METHODS, solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step

NO_HIGHS = (
    "the scheduler 'ilp' needs the package 'highspy', which is not installed: "
    "run pip install 'tflite-memopt[published]', or choose other schedulers"
)


@pytest.mark.slow
def test_a_run_loads_no_published_method() -> None:
    code = """
import sys
import tflite_memopt
from tests.models import dense_model
from tflite_memopt.cli import analyze, batch, codegen, explore, optimize, verify
from tflite_memopt.model.io.writer import write_model
options = tflite_memopt.Options(samples=1, runtimes=("litert",))
tflite_memopt.optimize(write_model(dense_model()), options)
tflite_memopt.analyze(write_model(dense_model()))
assert not [name for name in sys.modules if "highspy" in name or "tflite_memopt.published" in name]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_of_the_table_is_found(method: str) -> None:
    problem = ScheduleProblem((16, 16, 16), (Step((0,), (1,)), Step((1,), (2,))), (0,), (2,))
    assert solve(problem, method).order == (0, 1)


def test_without_highs_its_extra_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    data = write_model(dense_model())
    said: list[str] = []
    with pytest.raises(UsageError) as refused:
        compare(data, ("ilp",), progress=said.append)
    assert (str(refused.value), said) == (NO_HIGHS, [])
    every = [each.method for each in compare(data, planners=("naive",)).schedulers]
    assert every == [method for method in METHODS if method != "ilp"]
    assert compare(data, ("serenity",), ("naive",)).schedulers[0].method == "serenity"
