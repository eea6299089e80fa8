"""RandWire, small regime: Xie et al., "Exploring Randomly Wired Neural Networks for Image Recognition".

WS(32, 4, 0.75) and C = 78 (sections 3 and 4, table 1): two convolutions, three random stages, a 1x1 convolution.
"""

from __future__ import annotations

import keras
from keras import layers, ops

from scripts.zoo_networks.layers import Tensor, classifier, conv, image, relu, separable
from scripts.zoo_networks.watts_strogatz import Edges, small_world

VERTICES, NEIGHBORS, PROBABILITY = 32, 4, 0.75
STAGES = 3


class WeightedSum(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Sum of the inputs, each times the sigmoid of a weight of its own."""

    def build(self, shapes: list[tuple[int, ...]]) -> None:
        self.logits = self.add_weight(shape=(len(shapes),), initializer="random_normal", name="logits")

    def call(self, inputs: list[Tensor]) -> Tensor:
        weights = ops.sigmoid(self.logits)
        total = inputs[0] * weights[0]
        for index, tensor in enumerate(inputs[1:], start=1):
            total = total + tensor * weights[index]
        return total


def randwire(seed: int, size: int = 224, channels: int = 78, features: int = 1280, classes: int = 1000) -> keras.Model:
    """Each stage has a random graph of its own, drawn with ``STAGES * seed + stage``."""
    source = image(size)
    x = conv(source, channels // 2, 3, 2)
    x = conv(x, channels, 3, 2, activation=None)
    for stage in range(STAGES):
        edges = small_world(VERTICES, NEIGHBORS, PROBABILITY, STAGES * seed + stage)
        x = _stage(x, edges, channels << stage)
    return keras.Model(source, classifier(conv(relu(x), features), classes))


def _stage(x: Tensor, edges: Edges, channels: int) -> Tensor:
    """Vertices without an edge in read the stage's input with stride 2; those without an edge out are averaged."""
    made: list[Tensor] = []
    for vertex in range(VERTICES):
        inputs = [made[low] for low, high in edges if high == vertex]
        made.append(_vertex(inputs, channels, 1) if inputs else _vertex([x], channels, 2))
    inner = {low for low, _ in edges}
    outputs = [made[vertex] for vertex in range(VERTICES) if vertex not in inner]
    return layers.Average()(outputs) if len(outputs) > 1 else outputs[0]


def _vertex(inputs: list[Tensor], channels: int, stride: int) -> Tensor:
    total = WeightedSum()(inputs) if len(inputs) > 1 else inputs[0]
    return separable(relu(total), channels, 3, stride)
