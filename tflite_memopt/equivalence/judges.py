"""All runtimes judge one claim, side by side in their processes."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from .external_runner import RUNNER
from .judge import Claim, Judgement, Ran, judge_graph, judge_on_tflm, run_graph
from .original import Original
from .pool import Interpreters
from .trace import Trace

EXECUTE_PLANS = ("tflm", RUNNER)
"""LiteRT and TensorFlow plan for themselves."""


def judge_on_all(original: Original, claim: Claim, interpreters: Interpreters) -> dict[str, Judgement]:
    """By runtime. What LiteRT makes of the optimised model serves the judges of the plan as well."""
    runtimes = list(original.grounds)
    graphs = [name for name in runtimes if name not in EXECUTE_PLANS]
    with ThreadPoolExecutor(max_workers=len(runtimes) + len(graphs)) as pool:
        ran = {name: pool.submit(run_graph, name, original, claim, interpreters) for name in graphs}

        def judge(name: str) -> Judgement:
            if name in ran:
                return judge_graph(name, original, claim, interpreters, ran[name].result())
            ran_there = [ran[each] for each in graphs if original.grounds[each].trace is not None]
            elsewhere = (lambda: _first_trace(ran_there)) if ran_there else None
            return judge_on_tflm(original, claim, interpreters, name, elsewhere)

        return dict(zip(runtimes, pool.map(judge, runtimes), strict=True))


def _first_trace(ran: Iterable[Future[Ran]]) -> Trace | None:
    return next((found for each in ran if isinstance(found := each.result(), Trace)), None)
