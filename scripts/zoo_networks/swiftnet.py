"""A network in the style of SwiftNet, of the size that SERENITY states: 62 operators, in cells of 21, 19 and 22.

SwiftNet (Zhang et al., arXiv 1906.08305) was searched for the detection of human presence; its wiring was never
published as data. Taken from SERENITY (Ahn et al., "Ordering Chaos", MLSys 2020, table 2 and section 3.3):
the number of operators of each cell, that a single tensor joins a cell to the next, and that concatenations feed 1x1
and depthwise convolutions, so that rewriting has 12, 9 and 7 operators to add (33, 28 and 29 in table 2), if the sum
of all partial convolutions counts as one.
Assumed: everything else. The input (224x224x3, two classes), the channels (16, 24, 32), the kernels (3 and 5), the
expansions (3), which operator reads which, that the stem belongs to cell A and the classifier to cell C.
The wiring of cell A was chosen so that a depth-first order is not the best, and so that a concatenation binds the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor, classifier, conv, depthwise, image


@dataclass(frozen=True)
class Step:
    """One operator and, where it has several inputs, the concatenation before it. Input ``x`` is the cell's own."""

    name: str
    kind: str
    inputs: str
    stride: int = 1


CELL_A = (
    Step("a1", "expand", "x"),
    Step("a2", "depthwise 3", "a1"),
    Step("a3", "project", "a2"),
    Step("a4", "expand", "x"),
    Step("a5", "depthwise 5", "a4"),
    Step("a6", "project", "a5"),
    Step("a7", "depthwise 3", "x"),
    Step("a8", "project", "x a3 a6 a7"),
    Step("a9", "depthwise 5", "a1"),
    Step("a10", "project", "a9"),
    Step("a11", "project", "a8 a3 a7 a10"),
    Step("a12", "project", "a8 a6 a10 a11"),
    Step("a13", "depthwise 3", "a12"),
    Step("a14", "depthwise 3", "a13 a12 a11 a10", stride=2),
    Step("a15", "widen", "a14"),
)
CELL_B = (
    Step("b1", "expand", "x"),
    Step("b2", "depthwise 5", "b1"),
    Step("b3", "project", "b2"),
    Step("b4", "expand", "x"),
    Step("b5", "depthwise 3", "b4"),
    Step("b6", "project", "b5"),
    Step("b7", "depthwise 3", "x"),
    Step("b8", "project", "x b3 b6 b7"),
    Step("b9", "expand", "b8"),
    Step("b10", "depthwise 3", "b9"),
    Step("b11", "project", "b10"),
    Step("b12", "depthwise 5", "b7"),
    Step("b13", "depthwise 3", "b3 b8 b11 b12"),
    Step("b14", "project", "b13"),
    Step("b15", "depthwise 3", "b6 b11 b12 b14", stride=2),
    Step("b16", "widen", "b15"),
)
CELL_C = (
    Step("c1", "expand", "x"),
    Step("c2", "depthwise 3", "c1"),
    Step("c3", "project", "c2"),
    Step("c4", "expand", "x"),
    Step("c5", "depthwise 5", "c4"),
    Step("c6", "project", "c5"),
    Step("c7", "depthwise 3", "x"),
    Step("c8", "project", "x c3 c6 c7"),
    Step("c9", "depthwise 5", "c8"),
    Step("c10", "depthwise 3", "c7"),
    Step("c11", "depthwise 3", "c6 c9 c10"),
    Step("c12", "project", "c11"),
    Step("c13", "depthwise 3", "c12"),
    Step("c14", "project", "c9 c12 c13"),
    Step("c15", "depthwise 3", "c14", stride=2),
    Step("c16", "widen", "c15"),
)
EXPANSION = 3


def swiftnet(size: int = 224, channels: tuple[int, int, int, int] = (16, 24, 32, 64)) -> keras.Model:
    """``channels`` of the cells A, B and C and of the classifier's input."""
    source = image(size)
    x = conv(conv(source, channels[0] // 2, 3, 2), channels[0], 3, 2)
    for cell, width, following in zip((CELL_A, CELL_B, CELL_C), channels, channels[1:], strict=False):
        x = _cell(x, cell, width, following)
    return keras.Model(source, classifier(x, 2, "softmax"))


def _cell(x: Tensor, steps: tuple[Step, ...], channels: int, following: int) -> Tensor:
    made = {"x": x}
    for step in steps:
        inputs = [made[name] for name in step.inputs.split()]
        joined = layers.Concatenate()(inputs) if len(inputs) > 1 else inputs[0]
        made[step.name] = _operator(joined, step, channels, following)
    return made[steps[-1].name]


def _operator(x: Tensor, step: Step, channels: int, following: int) -> Tensor:
    pointwise = {"expand": EXPANSION * channels, "project": channels, "widen": following}
    if step.kind in pointwise:
        return conv(x, pointwise[step.kind])
    return depthwise(x, int(step.kind.removeprefix("depthwise ")), step.stride)
