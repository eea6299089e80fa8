"""The cell that NASNet-like networks stack: blocks that add the results of two operations, then a concatenation.

Source: Zoph et al., "Learning Transferable Architectures for Scalable Image Recognition", section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keras import layers

from scripts.zoo_networks.layers import Tensor, conv, relu, separable

Choice = tuple[str, int]  # An operation's name and the state it reads.


@dataclass(frozen=True)
class Cell:
    """States 0 and 1 are the outputs of the two cells before (0 the older); every block adds one state."""

    blocks: tuple[tuple[Choice, Choice], ...]
    outputs: tuple[int, ...]

    def build(self, older: Tensor, newer: Tensor, channels: int, reduction: bool) -> Tensor:
        """The cell's output. In a reduction cell the operations that read state 0 or 1 have stride 2."""
        states = [older, newer]
        for block in self.blocks:
            parts = [_OPERATIONS[name](states[at], channels, 2 if reduction and at < 2 else 1) for name, at in block]
            states.append(layers.Add()(parts))
        return layers.Concatenate()([states[index] for index in self.outputs])


def squeeze(x: Tensor, channels: int) -> Tensor:
    """ReLU, 1x1 convolution, batch norm: what a cell does to its inputs first."""
    return conv(relu(x), channels, activation=None)


def _separable_twice(kernel: int) -> Callable[[Tensor, int, int], Tensor]:
    def apply(x: Tensor, channels: int, stride: int) -> Tensor:
        x = separable(relu(x), channels, kernel, stride)
        return separable(relu(x), channels, kernel)

    return apply


def _dilated(x: Tensor, channels: int, stride: int) -> Tensor:
    return separable(relu(x), channels, 3, stride, dilation=2)


def _seven_and_seven(x: Tensor, channels: int, stride: int) -> Tensor:
    x = conv(x, channels, (1, 7), stride, activation=None)
    return conv(x, channels, (7, 1), activation=None)


def _average(x: Tensor, channels: int, stride: int) -> Tensor:
    return layers.AveragePooling2D(3, stride, "same")(x)


def _maximum(x: Tensor, channels: int, stride: int) -> Tensor:
    return layers.MaxPooling2D(3, stride, "same")(x)


def _identity(x: Tensor, channels: int, stride: int) -> Tensor:
    if stride != 1:
        raise ValueError("no cell here strides an identity")
    return x


_OPERATIONS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "identity": _identity,
    "average 3x3": _average,
    "max 3x3": _maximum,
    "separable 3x3": _separable_twice(3),
    "separable 5x5": _separable_twice(5),
    "separable 7x7": _separable_twice(7),
    "dilated 3x3": _dilated,
    "1x7 7x1": _seven_and_seven,
}
