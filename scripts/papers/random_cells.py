"""RandWire's random stages as ordering problems, by how a framework writes a vertex down.

    vertex     one operator for all of it
    pairs      a MUL for each input and ADDs of two, as the TFLite converter makes of a weighted sum
    gathered   one operator puts all inputs side by side, the next one sums them up, as ONNX exporters do

Then follow ReLU, depthwise and pointwise convolution, but for ``vertex``. Sizes are in units: the result of a vertex.
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.zoo_networks.watts_strogatz import small_world
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step

VERTICES = 32
_INPUT = 4
"""Units of the first stage's input: twice the side, before a vertex reads it with stride 2."""


def random_stage(seed: int, form: str, vertices: int = VERTICES) -> ScheduleProblem:
    """WS(32, 4, 0.75) of Xie et al., the first stage: vertices without an edge in read its input."""
    edges = small_world(vertices, 4, 0.75, seed)
    graph = _Writer(form)
    made: list[int] = []
    for vertex in range(vertices):
        inputs = [made[low] for low, high in edges if high == vertex]
        made.append(graph.vertex(inputs or [0], _INPUT if not inputs else 1))
    inner = {low for low, _ in edges}
    outputs = [made[vertex] for vertex in range(vertices) if vertex not in inner]
    if len(outputs) > 1:
        graph.sum(outputs)
    return ScheduleProblem(tuple(graph.sizes), tuple(graph.steps), (0,), (len(graph.sizes) - 1,))


class _Writer:
    """Writes operators; ``sizes`` begins with the stage's input."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.sizes = [_INPUT]
        self.steps: list[Step] = []

    def vertex(self, inputs: Sequence[int], size: int) -> int:
        """The weighted sum of the inputs, of ``size`` units, and what follows; the result's number."""
        if self.form == "vertex":
            return self._add(inputs, 1)
        rectified = self._add([self.sum(inputs)], size)
        return self._add([self._add([rectified], 1)], 1)

    def sum(self, inputs: Sequence[int]) -> int:
        """Units of 1 each, summed up."""
        if len(inputs) == 1:
            return inputs[0]
        if self.form == "vertex":
            return self._add(inputs, 1)
        if self.form == "gathered":
            return self._add([self._add(inputs, len(inputs))], 1)
        total, *others = [self._add([each], 1) for each in inputs]
        for other in others:
            total = self._add([total, other], 1)
        return total

    def _add(self, inputs: Sequence[int], size: int) -> int:
        self.sizes.append(size)
        self.steps.append(Step(tuple(inputs), (len(self.sizes) - 1,)))
        return len(self.sizes) - 1
