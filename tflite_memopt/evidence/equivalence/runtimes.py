"""LiteRT and TFLM on one and the same model: by how much they differ, and from which operator on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...model.analysis.side_effects import keeps_state
from ...model.io import offline_plan
from ...model.io.reader import read_model
from ...model.io.writer import write_model
from ...model.ir.model import Graph, Operator, Tensor
from .adapter import Array, ModelRun, RunJob, Sample
from .compare import EXACT, FLOAT_SUMS, Gap, arrays_agree, gap_between
from .runner import ModelRunner

BETWEEN = "litert and tflm"
"""The name of the figures for this difference beside the verdicts of runtimes."""


@dataclass(frozen=True)
class Divergence:
    """The operator that is the first whose inputs are the same on LiteRT and TFLM and whose outputs are not.

    ``number``: in the file, None for one that is not in it. ``sample``: the first in which that is so, from 0. ``gap``:
    between its outputs.
    """

    number: int | None
    operator: Operator
    sample: int
    gap: Gap

    def __str__(self) -> str:
        name = self.operator.outputs[0].name
        number = "" if self.number is None else f"{self.number} "
        return (
            f"operator {number}{self.operator.opcode.label} '{name}' is the first to differ, by "
            f"{_by(self.gap)} on equal inputs"
        )


@dataclass(frozen=True)
class BetweenRuntimes:
    """Other outputs of LiteRT and TFLM, above what another order of sums may do to floats.

    ``first``: None where a run with all tensors as outputs did not show it.
    """

    gap: Gap
    samples: int
    first: Divergence | None

    def __str__(self) -> str:
        where = "" if self.first is None else f": {self.first}"
        return f"LiteRT and TFLM compute the original differently, outputs by up to {_by(self.gap)}{where}"


def between_runtimes(
    data: bytes, samples: list[Sample], litert: ModelRun, tflm: ModelRun, runner: ModelRunner, arena: int
) -> BetweenRuntimes | None:
    """Compare the runs of a model on LiteRT, with its ``tensors``, and on TFLM; None where they agree.

    ``runner``: of TFLM, which runs the model once more if they do not, with each tensor as an output; ``arena``: bytes
    for it, without any sharing.
    """
    if all(_agree(_of(litert.outputs, at), _of(tflm.outputs, at)) for at in range(len(samples))):
        return None
    first = _divergence(data, samples, litert, runner, arena)
    return BetweenRuntimes(gap_between(litert.outputs, tflm.outputs, {}), len(samples), first)


def _divergence(
    data: bytes, samples: list[Sample], litert: ModelRun, runner: ModelRunner, arena: int
) -> Divergence | None:
    """Return the first operator that gives other outputs for equal inputs, in any sample.

    One that keeps a state counts only until anything has differed.
    """
    model = read_model(data)
    graph = model.main
    shown = [at for at in litert.tensors if graph.tensors[at].producer is not None]
    places = dict(zip(shown, range(len(graph.outputs), len(graph.outputs) + len(shown)), strict=True))
    graph.outputs = (*graph.outputs, *(graph.tensors[at] for at in shown))
    offline_plan.detach(model)
    run = runner.run(RunJob(write_model(model), samples, arena))
    if not run.ran:
        return None
    found, is_same = dict[int, Divergence](), True
    for sample in range(len(samples)):
        pairs = {at: (litert.tensors[at][sample], run.outputs[place][sample]) for at, place in places.items()}
        differing = {at: pair for at, pair in pairs.items() if not _agree([pair[0]], [pair[1]])}
        number = _first_in(graph, {graph.tensors[at] for at in differing}, is_same)
        is_same = is_same and not differing
        if number is not None and number not in found:
            operator = graph.operators[number]
            written = {at: pair for at, pair in differing.items() if graph.tensors[at] in operator.outputs}
            one, other = ({at: [pair[side]] for at, pair in written.items()} for side in (0, 1))
            found[number] = Divergence(number, operator, sample, gap_between(one, other, {}))
    return found[min(found)] if found else None


def _first_in(graph: Graph, differing: set[Tensor], has_same_state: bool) -> int | None:
    """Return the first operator that writes a differing tensor and reads none, and whose state is the same, if any."""
    for number, operator in enumerate(graph.operators):
        is_first = has_same_state or not keeps_state(operator)
        if is_first and differing & set(operator.outputs) and not differing & set(operator.present_inputs()):
            return number
    return None


def _of(values: Mapping[int, list[Array]], sample: int) -> list[Array]:
    return [values[at][sample] for at in sorted(values)]


def _agree(one: list[Array], other: list[Array]) -> bool:
    return len(one) == len(other) and all(
        arrays_agree(a, b, FLOAT_SUMS if a.dtype.kind == "f" else EXACT) for a, b in zip(one, other, strict=True)
    )


def _by(gap: Gap) -> str:
    if gap.max_lsb_diff:
        return "1 step" if gap.max_lsb_diff == 1 else f"{gap.max_lsb_diff:g} steps"
    return f"{gap.max_abs_diff:g}"
