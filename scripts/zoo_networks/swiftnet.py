"""A network in the style of SwiftNet, with the size that SERENITY's table 2 states: 62 operators, cells of 21, 19, 22.

SwiftNet (Zhang et al., arXiv 1906.08305) was searched for human presence detection; its wiring was never published
as data. Taken from SERENITY (Ahn et al., "Ordering Chaos", MLSys 2020): the number of operators of the three cells,
that a single tensor joins one cell to the next, and that concatenations feed 1x1 and depthwise convolutions, so that
identity rewriting has 12, 9 and 7 more operators to make (33, 28 and 29 in table 2).
Assumed: everything else. The input (224x224x3), the channels (16, 24, 32), the kernels (3 and 5), which operator
reads which, that the stem belongs to cell A and the classifier (two classes) to cell C.
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
    Step("a1", "pointwise", "x"),
    Step("a2", "depthwise 3", "a1"),
    Step("a3", "depthwise 5", "a1"),
    Step("a4", "depthwise 3", "x"),
    Step("a5", "pointwise", "a1 a2 a3 a4"),
    Step("a6", "depthwise 3", "a5"),
    Step("a7", "depthwise 5", "a4"),
    Step("a8", "depthwise 3", "a2 a5 a6 a7"),
    Step("a9", "pointwise", "a8"),
    Step("a10", "depthwise 5", "a3"),
    Step("a11", "pointwise", "a5 a7 a9 a10"),
    Step("a12", "depthwise 3", "a11"),
    Step("a13", "depthwise 3", "a9"),
    Step("a14", "depthwise 3", "a6 a11 a12 a13", stride=2),
    Step("a15", "widen", "a14"),
)
CELL_B = (
    Step("b1", "pointwise", "x"),
    Step("b2", "depthwise 3", "b1"),
    Step("b3", "depthwise 5", "x"),
    Step("b4", "depthwise 3", "b3"),
    Step("b5", "pointwise", "b1 b2 b3 b4"),
    Step("b6", "depthwise 3", "b5"),
    Step("b7", "depthwise 5", "b2"),
    Step("b8", "pointwise", "b4"),
    Step("b9", "depthwise 3", "b5 b6 b7 b8"),
    Step("b10", "pointwise", "b9"),
    Step("b11", "depthwise 5", "b10"),
    Step("b12", "depthwise 3", "b8"),
    Step("b13", "depthwise 3", "b6"),
    Step("b14", "pointwise", "b10 b11 b12 b13"),
    Step("b15", "depthwise 3", "b14", stride=2),
    Step("b16", "widen", "b15"),
)
CELL_C = (
    Step("c1", "pointwise", "x"),
    Step("c2", "depthwise 3", "c1"),
    Step("c3", "depthwise 5", "c1"),
    Step("c4", "depthwise 3", "x"),
    Step("c5", "pointwise", "c1 c2 c3 c4"),
    Step("c6", "depthwise 3", "c5"),
    Step("c7", "depthwise 5", "c2"),
    Step("c8", "depthwise 3", "c5 c6 c7"),
    Step("c9", "pointwise", "c8"),
    Step("c10", "depthwise 3", "c9"),
    Step("c11", "depthwise 5", "c4"),
    Step("c12", "pointwise", "c9 c10 c11"),
    Step("c13", "depthwise 3", "c12"),
    Step("c14", "pointwise", "c13"),
    Step("c15", "depthwise 3", "c14", stride=2),
    Step("c16", "widen", "c15"),
)


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
    if step.kind in ("pointwise", "widen"):
        return conv(x, channels if step.kind == "pointwise" else following)
    return depthwise(x, int(step.kind.removeprefix("depthwise ")), step.stride)
