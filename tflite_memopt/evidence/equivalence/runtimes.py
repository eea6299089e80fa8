"""One and the same model on two runtimes, or kernels: by how much they differ, and by which operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...model.io import offline_plan
from ...model.io.reader import read_model
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from .adapter import Array, ModelRun, Sample, Values
from .compare import EXACT, FLOAT_SUMS, Gap, arrays_agree, gap_between, max_abs_diff

BETWEEN = "litert and tflm"
"""The name of the figures for this difference beside the verdicts of runtimes."""
_LENGTHS = (DType.INT32, DType.INT64)
"""Types of shapes, which a runtime wants to know before it runs."""
_NARROW_BYTES = 2
Numbers = Mapping[tuple[int, str], int]
"""Of the operators in the user's file, by subgraph and the name of the first output."""
Rerun = Callable[[Model, list[Sample]], ModelRun]
"""Runs a model on the runtime that is compared."""


@dataclass(frozen=True)
class Divergence:
    """The operator that differs most between two runtimes where both give it the same inputs.

    ``number``: its position in the user's file, None where a rewrite made it. ``sample``: the first in which it
    differs, from 0. ``gap``: between its outputs.
    """

    number: int | None
    operator: Operator
    sample: int
    gap: Gap

    def __str__(self) -> str:
        number = "" if self.number is None else f"{self.number} "
        return f"operator {number}{self.operator.opcode.label} '{self.operator.outputs[0].name}'"


@dataclass(frozen=True)
class BetweenRuntimes:
    """Other outputs of two runtimes, above what another order of sums may do to floats.

    ``most``: None where a run with every operator apart did not show it.
    """

    gap: Gap
    samples: int
    most: Divergence | None

    def __str__(self) -> str:
        where = "" if self.most is None else f": {self.most} differs most, by {said_of(self.most.gap)} on equal inputs"
        return f"LiteRT and TFLM compute the original differently, outputs by up to {said_of(self.gap)}{where}"


def between_runtimes(
    data: bytes,
    samples: list[Sample],
    judge: ModelRun,
    other: ModelRun,
    rerun: Rerun,
    numbers: Numbers | None,
) -> BetweenRuntimes | None:
    """Compare the run of a model on LiteRT, with its ``tensors``, with another one; None where they agree.

    ``rerun``: where the other run was; it runs every operator apart if they do not agree. ``numbers``: of the operators
    in the user's file, by the name of the first output, if that is another file.
    """
    if all(_agree(_of(judge.outputs, at), _of(other.outputs, at)) for at in range(len(samples))):
        return None
    most = _divergence(data, samples, judge.tensors, rerun)
    if most is not None and numbers is not None:
        most = replace(most, number=numbers.get((0, most.operator.outputs[0].name)))
    return BetweenRuntimes(gap_between(judge.outputs, other.outputs, {}), len(samples), most)


def _divergence(data: bytes, samples: list[Sample], values: Values, rerun: Rerun) -> Divergence | None:
    """Return the operator whose outputs differ most from ``values``, by position, when its inputs are those.

    So a difference that an operator passes on, or amplifies, is not taken for its own. One that reads what could not be
    given to it, and differs, does not count. A state is what the operator makes of the same inputs from its first on.
    """
    model = read_model(data)
    graph = model.main
    shown = [at for at in values if graph.tensors[at].producer is not None]
    places = {graph.tensors[at]: (at, len(graph.outputs) + place) for place, at in enumerate(shown)}
    graph.outputs = (*graph.outputs, *places)
    offline_plan.detach(model)
    fed = _taken_apart(graph, places, values)
    run = rerun(model, [[*sample, *(values[at][number] for at in fed)] for number, sample in enumerate(samples)])
    if not run.ran:
        return None
    pairs = {tensor: (values[at], run.outputs[place]) for tensor, (at, place) in places.items()}
    differing = {tensor: pair for tensor, pair in pairs.items() if not _agree(*pair)}
    found = [
        (max(map(_share, written)), -number, operator, written)
        for number, operator in enumerate(graph.operators)
        if (written := [differing[tensor] for tensor in operator.outputs if tensor in differing])
        and not differing.keys() & set(operator.present_inputs())
    ]
    if not found:
        return None
    _, number, operator, written = max(found, key=lambda each: each[:2])
    first = next(at for at in range(len(samples)) if any(not _agree([a[at]], [b[at]]) for a, b in written))
    one, other = (dict(enumerate(side)) for side in zip(*written, strict=True))
    return Divergence(-number, operator, first, gap_between(one, other, {}))


def _taken_apart(graph: Graph, computed: Mapping[Tensor, tuple[int, int]], values: Values) -> list[int]:
    """Make every reader of a computed tensor read another input of the graph; return whose values these take.

    Shapes stay as they are computed.
    """
    fed = []
    for tensor, (at, _) in computed.items():
        if tensor.dtype in _LENGTHS or not tensor.uses:
            continue
        shape, outputs = values[at][0].shape, graph.outputs
        twin = Tensor(f"{tensor.name}/given", shape, tensor.dtype, tensor.buffer, tensor.quantization)
        graph.add_tensor(twin)
        graph.replace_uses(tensor, twin)
        graph.outputs = outputs
        graph.inputs = (*graph.inputs, twin)
        fed.append(at)
    return fed


def _share(pair: tuple[Sequence[Array], Sequence[Array]]) -> float:
    """Return the largest difference as a share of the range of the type, or of the largest value of a wider one."""
    gap = max(max_abs_diff(a, b) for a, b in zip(*pair, strict=True))
    dtype = pair[0][0].dtype
    if dtype.kind in "iu" and dtype.itemsize <= _NARROW_BYTES:
        return gap / float(np.iinfo(dtype).max - np.iinfo(dtype).min)
    largest = max(float(np.abs(each[np.isfinite(each)].astype(np.float64)).max(initial=0.0)) for each in pair[0])
    return gap / largest if largest else np.inf


def _of(values: Values, sample: int) -> list[Array]:
    return [values[at][sample] for at in sorted(values)]


def _agree(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return len(one) == len(other) and all(
        arrays_agree(a, b, FLOAT_SUMS if a.dtype.kind == "f" else EXACT) for a, b in zip(one, other, strict=True)
    )


def said_of(gap: Gap) -> str:
    """Return the size of a difference in words: in steps, where it has any."""
    if gap.max_lsb_diff:
        return "1 step" if gap.max_lsb_diff == 1 else f"{gap.max_lsb_diff:g} steps"
    return f"{gap.max_abs_diff:g}"
