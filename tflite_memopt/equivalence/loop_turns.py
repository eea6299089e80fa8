"""What the tensors in a loop's body hold in every turn, on LiteRT: the body by itself, turn after turn.

LiteRT shows what its memory holds after a run, so of a loop at most the last turn. The body becomes a model of its own,
begins with what the loop was given, and goes on with what it gave back the turn before. In the end it must have made
what the loop has made in the model: then these were the loop's turns.

TFLM cannot: there logs show the turns (``loop_logs.py``), which LiteRT would copy anew in every turn.
"""

from __future__ import annotations

from collections.abc import Container

from ..analysis.loops import Loop, loops_of
from ..io.offline_plan import tensors_in_file_order
from ..ir.constants import values
from ..ir.model import Model, Tensor
from .adapter import RunJob
from .inputs import Sample
from .isolation import isolated
from .loop_logs import log_bytes
from .runner import ModelRunner, Run
from .tolerance import Array, arrays_agree
from .trace import Trace, trace_of


def given_to_loops(model: Model) -> tuple[int, ...]:
    """Positions of the variables of the entry graph that loops are given: what no operator writes is not computed."""
    given = {tensor for loop in loops_of(model) for tensor in loop.operator.present_inputs()}
    return tuple(at for at, tensor in enumerate(model.main.tensors) if tensor.is_variable and tensor in given)


def add_turns(
    found: Trace, data: bytes, model: Model, numbers: Container[int], interpreter: ModelRunner, kernels: str
) -> Run | None:
    """Add what the tensors in loops hold, in the form of logs, to a trace of ``model``, which is written in ``data``.

    ``numbers``: of the subgraphs that are bodies to be looked at. Returns the failed run where one fails, or where a
    body by itself ends otherwise than the loop in the model.
    """
    shown = log_bytes(model)
    for loop in loops_of(model):
        number = next(at for at, graph in enumerate(model.graphs) if graph is loop.body)
        if number in numbers and loop.turns:
            failed = _add_turns_of(loop, number, found, data, model, set(shown), interpreter, kernels)
            if failed is not None:
                return failed
    return None


def _add_turns_of(
    loop: Loop,
    number: int,
    found: Trace,
    data: bytes,
    model: Model,
    shown: Container[int],
    interpreter: ModelRunner,
    kernels: str,
) -> Run | None:
    given = _columns(loop.operator.inputs, model, found)
    if given is None:
        return Run(error=f"what the loop of subgraph {number} is given is not known")
    samples: list[Sample] = [list(row) for row in zip(*given, strict=True)]
    base = sum(len(graph.tensors) for graph in model.graphs[:number])
    wanted = tuple(at for at in range(len(loop.body.tensors)) if base + at in shown)
    job = RunJob(isolated(data, number)[0], samples, 0, wanted, kernels, turns=loop.turns or 0)
    run = interpreter.run(job)
    if not run.ran:
        return run
    turned = trace_of(run.arrays, len(samples))
    if not _ends_alike(loop, turned, model, found):
        return Run(error=f"the turns of subgraph {number} by themselves do not end as its loop does")
    found.tensors.update({base + at: each for at, each in turned.tensors.items()})
    return None


def _columns(tensors: tuple[Tensor | None, ...], model: Model, found: Trace) -> list[list[Array]] | None:
    """The values of tensors of the entry graph for each sample; None where one is not known."""
    places = {tensor: at for at, tensor in enumerate(tensors_in_file_order(model))}
    count = len(next(iter(found.tensors.values()), ()))
    columns = []
    for tensor in tensors:
        constant = None if tensor is None or not tensor.is_constant else values(tensor)
        column = found.tensors.get(places[tensor]) if tensor is not None and constant is None else [constant] * count
        if column is None or any(each is None for each in column):
            return None
        columns.append([each for each in column if each is not None])
    return columns


def _ends_alike(loop: Loop, turned: Trace, model: Model, found: Trace) -> bool:
    """Whether the last outputs are what the loop gives back in the model, as far as that is known there."""
    places = {tensor: at for at, tensor in enumerate(model.main.tensors)}
    for slot, tensor in enumerate(loop.operator.outputs):
        wanted = found.tensors.get(places[tensor])
        got = turned.outputs.get(slot, [])
        if wanted is None:
            continue
        if len(wanted) != len(got) or not all(map(arrays_agree, wanted, got)):
            return False
    return True
