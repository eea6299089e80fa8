"""HiGHS runs the integer program of an order; the only code that knows the solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from typing import Any, Protocol

from ...solvers.graph.limits import Allowance
from ...solvers.schedule.check import peak_of
from ...solvers.schedule.problem import ScheduleProblem, schedule_lower_bound
from .program import PEAK, Constraints, IntegerProgram

ROUNDING = 0.4
"""Units by which numerical error may lift the solver's bound; the true bound is a whole number of units."""


@dataclass(frozen=True)
class ProgramSolution:
    """The best order known, a bound in bytes that holds for any order, and the solver's branch-and-bound nodes."""

    order: tuple[int, ...]
    lower_bound: int
    nodes: int


class SolverProgram(Protocol):
    """The program as the solver takes it: integer columns first, ``PEAK`` the first of them, in units of bytes."""

    @property
    def unit(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def rows(self) -> Constraints: ...

    @property
    def variables(self) -> int: ...

    def columns_of(self, order: Sequence[int]) -> Iterator[tuple[int, float]]: ...

    def order_of(self, values: Sequence[float]) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class ProgramRun:
    """The answer of HiGHS: the order of its best solution, if any, a bound of the objective in bytes, and nodes."""

    order: tuple[int, ...] | None
    bound: int
    nodes: int
    finished: bool


def solve_program(
    problem: ScheduleProblem, program: IntegerProgram, start: Sequence[int], seed: int, allowance: Allowance
) -> ProgramSolution:
    """Minimize the peak, from the order ``start`` on, as long as the allowance lasts: see :func:`run_program`."""
    floor = schedule_lower_bound(problem)
    found = run_program(program, start, (floor, peak_of(problem, start)), seed, allowance)
    known = [tuple(start), *([found.order] if found.order else [])]
    best = min(known, key=lambda order: peak_of(problem, order))
    return ProgramSolution(best, max(found.bound, floor), found.nodes)


def run_program(
    program: SolverProgram, start: Sequence[int], within: tuple[float, float], seed: int, allowance: Allowance
) -> ProgramRun:
    """Run HiGHS, with the peak ``within`` two numbers of bytes.

    The work is columns, times the linear programs after which the solver looks at its limits. Deterministic but for the
    emergency stop: one thread, a ``seed``.
    """
    highs = _highs(seed, allowance.seconds_left())

    def look(event: Any) -> None:
        allowance.left -= program.columns
        if allowance.is_spent():
            event.interrupt()

    highs.cbMipInterrupt += look
    highs.passModel(_linear_program(program, within))
    known = dict(program.columns_of(start))
    highs.setSolution(len(known), list(known), list(known.values()))
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus())
    if status == "Time limit reached":
        allowance.stopped_by_clock = True
    info, values = highs.getInfo(), highs.getSolution().col_value
    bound = info.mip_dual_bound
    proved = ceil(bound - ROUNDING) * program.unit if isfinite(bound) else 0
    order = program.order_of(values) if values else None
    return ProgramRun(order, proved, max(info.mip_node_count, 0), status == "Optimal")


def _highs(seed: int, seconds: float) -> Any:
    """Return a silent solver. Imported here: highspy loads numpy, which the rest of the package starts without."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "random_seed": seed % 2**31,
        "time_limit": seconds,
        "mip_rel_gap": 0.0,
        # Peaks are whole units, so a smaller gap is a proof.
        "mip_abs_gap": 1 - 1.2 * ROUNDING,
    }
    for option, value in options.items():
        highs.setOptionValue(option, value)
    return highs


def _linear_program(program: SolverProgram, within: tuple[float, float]) -> Any:
    """Return the program in HiGHS' form."""
    import highspy
    import numpy as np

    rows, unit = program.rows, program.unit
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.columns, len(rows.lower)
    lower, upper, cost = np.zeros(program.columns), np.ones(program.columns), np.zeros(program.columns)
    cost[PEAK], lower[PEAK], upper[PEAK] = 1, np.ceil(within[0] / unit), np.floor(within[1] / unit)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
    lp.row_lower_, lp.row_upper_ = np.array(rows.lower, dtype=float), np.array(rows.upper, dtype=float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(rows.starts)
    lp.a_matrix_.index_ = np.array(rows.columns)
    lp.a_matrix_.value_ = np.array(rows.factors, dtype=float)
    whole = program.variables + 1
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger] * whole + [kinds.kContinuous] * (program.columns - whole)
    return lp
