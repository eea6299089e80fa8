"""A search for architectures under a budget of RAM and of multiply-accumulates, with Optuna and the RAM oracle.

    pip install optuna
    python docs/examples/architecture_search.py

A candidate is a keyword-spotting network in the manner of DS-CNN, drawn as a graph without weights. Most candidates are
turned away by a bound in less than a millisecond, the others are planned. What stands for the accuracy here is the
number of weights: put your training, or your own estimate, in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import optuna

from tflite_memopt import GraphSketch, OperatorSketch, Ram, RamOracle, TensorSketch

TARGET = "cortex-m7"
RAM_BUDGET = 24 * 1024
MAC_BUDGET = 2_000_000


class Sketcher:
    """Draws a network layer by layer; every layer method returns the name of its output."""

    def __init__(self, *shape: int) -> None:
        self.tensors = {"x": TensorSketch((1, *shape))}
        self.operators: list[OperatorSketch] = []
        self.weights = 0

    def conv(self, x: str, channels: int, kernel: int = 1, stride: int = 1) -> str:
        """A convolution with SAME padding and RELU."""
        filters = (channels, kernel, kernel, int(self.tensors[x].shape[3]))
        return self._window("CONV_2D", "Conv2DOptions", x, filters, 0, stride)

    def depthwise(self, x: str, kernel: int, stride: int = 1) -> str:
        """A depthwise convolution with SAME padding and RELU."""
        filters = (1, kernel, kernel, int(self.tensors[x].shape[3]))
        return self._window("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", x, filters, 3, stride, depthMultiplier=1)

    def pool(self, x: str) -> str:
        """The average over all pixels."""
        _, height, width, channels = self.tensors[x].shape
        fields = {"padding": 1, "strideH": 1, "strideW": 1, "filterHeight": height, "filterWidth": width}
        return self._add("AVERAGE_POOL_2D", "Pool2DOptions", (x,), (1, 1, 1, channels), fields)

    def dense(self, x: str, units: int) -> str:
        """A fully connected layer on the channels of one pixel."""
        weights = self._constant((units, int(self.tensors[x].shape[3])), 1)
        bias = self._constant((units,), 1, "int32")
        return self._add("FULLY_CONNECTED", "FullyConnectedOptions", (x, weights, bias), (1, units), {})

    def finish(self, output: str) -> GraphSketch:
        """The whole graph."""
        return GraphSketch(self.tensors, tuple(self.operators), ("x",), (output,))

    def _window(
        self, kind: str, table: str, x: str, filters: tuple[int, ...], axis: int, stride: int, **more: int
    ) -> str:
        _, height, width, _ = (int(each) for each in self.tensors[x].shape)
        channels = filters[axis]
        shape = (1, -(-height // stride), -(-width // stride), channels)
        weights, bias = self._constant(filters, channels, axis=axis), self._constant((channels,), channels, "int32")
        fields = {"padding": 0, "strideH": stride, "strideW": stride, "fusedActivationFunction": 1, **more}
        return self._add(kind, table, (x, weights, bias), shape, fields)

    def _constant(self, shape: tuple[int, ...], scales: int, kind: str = "int8", axis: int = 0) -> str:
        self.weights += math.prod(shape)
        return self._tensor(TensorSketch(shape, kind, is_constant=True, scales=scales, axis=axis))

    def _add(self, kind: str, table: str, inputs: tuple[str, ...], shape: Any, fields: dict[str, Any]) -> str:
        output = self._tensor(TensorSketch(shape))
        self.operators.append(OperatorSketch(kind, inputs, (output,), fields, table))
        return output

    def _tensor(self, tensor: TensorSketch) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor
        return name


@dataclass(frozen=True)
class Found:
    """What the search ends with: the best candidate, what it needs, and how many were turned away by what."""

    graph: GraphSketch
    ram: Ram
    parameters: dict[str, Any]
    turned_away: dict[str, int]


def draw(trial: optuna.trial.BaseTrial) -> tuple[GraphSketch, int]:
    """A candidate, and its number of weights."""
    net = Sketcher(49, 10, 1)
    width = trial.suggest_int("width", 8, 128, step=8)
    x = net.conv("x", width, trial.suggest_categorical("first kernel", [3, 5, 7]), trial.suggest_int("stride", 1, 2))
    for block in range(trial.suggest_int("blocks", 1, 6)):
        x = net.depthwise(x, trial.suggest_categorical(f"kernel {block}", [3, 5]))
        x = net.conv(x, trial.suggest_int(f"width {block}", 8, 128, step=8))
    return net.finish(net.dense(net.pool(x), 12)), net.weights


def search(trials: int, seed: int = 0) -> Found:
    """The candidate with most weights that fits both budgets. Raises ValueError when none does."""
    oracle, turned_away = RamOracle.on(TARGET), {"bound": 0, "MACs": 0, "plan": 0}

    def check(is_too_much: bool, by: str) -> None:
        if is_too_much:
            turned_away[by] += 1
            raise optuna.TrialPruned

    def score(trial: optuna.Trial) -> float:
        graph, weights = draw(trial)
        bound = oracle.ram(graph, "bound")
        check(bound > RAM_BUDGET, "bound")
        check(bound.macs > MAC_BUDGET, "MACs")
        check(oracle.ram(graph, "plan") > RAM_BUDGET, "plan")
        return weights  # train the candidate here, and return its accuracy

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(score, n_trials=trials)
    graph, _ = draw(optuna.trial.FixedTrial(study.best_params))
    return Found(graph, oracle.ram(graph, "plan"), study.best_params, turned_away)


def main() -> None:
    """Search, and say what was found."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    found = search(trials=300)
    print(f"{found.ram:,} bytes on {TARGET}, {found.ram.macs:,} MACs: {found.parameters}")
    print(f"turned away: {found.turned_away}")


if __name__ == "__main__":
    main()
