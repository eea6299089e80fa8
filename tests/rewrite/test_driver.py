"""The driver: cascades below a concatenation, what it keeps and drops, and what it records."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import if_model
from tests.rewrite.patterns import I8, Branch, assert_same_bits, model_of
from tflite_memopt.errors import ErrorKind, ModelFormatError
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import EXACTNESS
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Model, Operator, Tensor
from tflite_memopt.search.rewrite.engine import Answer, Applied, Driver, Match, Pattern, Proposal, Rule, is_dead
from tflite_memopt.search.rewrite.stage import SPLITS


def concat_of(b: ModelBuilder, *channels: int) -> Tensor:
    return b.concat([b.input(f"x{count}", (1, 8, 8, count)) for count in channels])


def relu(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.tensor(f"relu{len(b.graph.operators)}", x.shape)
    b.operator("RELU", (x,), (y,))
    return y


def mean(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.tensor(f"mean{len(b.graph.operators)}", (1, 1, 1, x.shape[3]))
    axes = b.constant(f"{y.name}/axes", np.asarray([1, 2], np.int32))
    b.operator("MEAN", (x, axes), (y,), "ReducerOptions", keepDims=True)
    return y


def names(model: Model) -> dict[str, int]:
    return dict(Counter(operator.name for operator in model.main.operators))


def taken_apart(model: Model, x: Tensor, allowed: tuple[str, ...] = EXACTNESS) -> Driver:
    assert x.producer is not None
    driver = Driver(model, allowed)  # type: ignore[arg-type]
    driver.apply_below(SPLITS, model.main, x.producer)
    return driver


def test_a_split_goes_down_to_the_convolution_along_every_reader() -> None:
    b = ModelBuilder()
    x = concat_of(b, 2, 3)
    deep = b.conv(b.depthwise(relu(b, x)), 4)
    shallow = b.conv(b.average_pool(x, 2), 6)
    model = b.finish(deep, shallow)
    driver = taken_apart(model, x)
    parts = {"RELU": 2, "DEPTHWISE_CONV_2D": 2, "AVERAGE_POOL_2D": 2, "CONV_2D": 4, "ADD": 2}
    assert names(model) == parts
    assert driver.refused == {}
    assert model.main.outputs == (deep, shallow)
    assert sorted(each.rule for each in driver.applied) == [
        "partial_convolution",
        "partial_convolution",
        "split_depthwise",
        "split_elementwise",
        "split_pooling",
    ]


def test_what_changes_values_is_refused_unless_it_is_allowed() -> None:
    b = ModelBuilder()
    x = concat_of(b, 2, 3)
    model = b.finish(b.conv(relu(b, x), 4))
    driver = taken_apart(model, x, ("exact",))
    assert names(model) == {"RELU": 2, "CONCATENATION": 1, "CONV_2D": 1}
    assert driver.applied == [Applied("split_elementwise", "relu1", "exact")]
    (refused,) = driver.refused.values()
    assert (refused.rule, refused.operator) == ("partial_convolution", "conv2")
    assert "--allow-approximate" in refused.reason


@pytest.mark.parametrize("relu_first", [True, False])
def test_a_reader_that_waits_for_another_split_is_tried_again(relu_first: bool) -> None:
    b = ModelBuilder()
    x = concat_of(b, 2, 3)
    model = b.finish(b.add(x, relu(b, x)))
    if not relu_first:
        x.uses.reverse()
    driver = taken_apart(model, x)
    assert names(model) == {"RELU": 2, "ADD": 2, "CONCATENATION": 1}
    assert driver.refused == {}


def test_squeeze_and_excitation_is_split_around_its_dense_layers() -> None:
    b = ModelBuilder()
    x = concat_of(b, 16, 32)
    scale = b.conv(b.conv(mean(b, x), 4), 48)
    y = b.tensor("scaled", x.shape)
    b.operator("MUL", (x, scale), (y,), "MulOptions")
    model = b.finish(b.conv(y, 8))
    taken_apart(model, x, ("exact",))
    assert names(model) == {"MEAN": 2, "CONCATENATION": 2, "CONV_2D": 3, "SPLIT_V": 1, "MUL": 2}
    assert x.producer is None


def test_a_concatenation_that_the_graph_returns_stays() -> None:
    b = ModelBuilder()
    x = concat_of(b, 2, 3)
    y = relu(b, x)
    model = b.finish(x, y)
    taken_apart(model, x)
    assert names(model) == {"CONCATENATION": 2, "RELU": 2}
    assert model.main.outputs == (x, y)


def network(branch: Branch) -> None:
    """Channelwise operators, sums, joins and convolutions in any wiring, on maps of two sizes."""
    b, pick = branch.builder, branch.random
    tensors = [branch.input(shape, I8) for shape in ((1, 6, 6, 2), (1, 6, 6, 2), (1, 3, 3, 4))]
    for _ in range(16):
        x, other = pick.choice(tensors[-3:]), pick.choice(tensors)
        tensors.append(step(b, pick.randrange(9), x, other))
    branch.outputs += [tensor for tensor in tensors[3:] if not tensor.uses or pick.random() < 0.1]


def step(b: ModelBuilder, kind: int, x: Tensor, other: Tensor) -> Tensor:
    if kind <= 2 and x.shape[1:3] == other.shape[1:3] and x.shape[3] + other.shape[3] <= 24:
        return b.concat((x, other))
    if kind == 3 and x.shape == other.shape:
        return b.add(x, other)
    if kind == 4 and x.shape[1] == 6:
        return b.average_pool(x, 2)
    if kind == 5:
        return b.depthwise(x, seed=len(b.graph.operators))
    if kind == 6:
        return b.conv(x, 4, seed=len(b.graph.operators))
    if kind == 7:
        y = b.tensor(f"scaled{len(b.graph.operators)}", x.shape)
        b.operator("MUL", (mean(b, x), x), (y,), "MulOptions")
        return y
    return relu(b, x)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_networks_with_all_their_concatenations_taken_apart(seed: int) -> None:
    model, owners = model_of(network, seed, 8)
    original = write_model(model)
    driver = Driver(model)
    for operator in reversed([each for each in model.main.operators if each.name == "CONCATENATION"]):
        if operator in model.main.operators:
            driver.apply_below(SPLITS, model.main, operator)
    assert len(driver.applied) > 20
    assert_same_bits(original, write_model(model), owners, seed)


def test_rules_are_applied_in_every_graph_until_none_is_left() -> None:
    def check(match: Match) -> Answer:
        add = match.anchor
        return Proposal(lambda edit: edit.operator("MUL", add.inputs, add.outputs, "MulOptions"))

    rule = Rule("add_to_mul", Pattern("add", ("ADD",)), check)
    model = if_model()
    driver = Driver(model)
    driver.apply_everywhere((rule,))
    assert len(driver.applied) == 4
    assert {operator.name for graph in model.graphs for operator in graph.operators} == {"IF", "MUL"}


def test_a_rule_that_leaves_an_invalid_graph_is_found_out() -> None:
    rule = Rule("broken", Pattern("relu", ("RELU",)), lambda _: Proposal(lambda _: None))
    b = ModelBuilder()
    y = relu(b, b.input("x", (1, 4)))
    model = b.finish(relu(b, y))
    with raises(ModelFormatError, ErrorKind.UNWRITTEN):
        Driver(model).apply_at((rule,), model.main, model.main.operators[0])


def test_the_first_rule_that_accepts_is_applied_and_an_operator_that_is_gone_is_left_alone() -> None:
    def rule(name: str, reason: str | None) -> Rule:
        def check(match: Match) -> Answer:
            relu = match.anchor
            return reason or Proposal(lambda edit: edit.operator("RELU6", relu.inputs, relu.outputs))

        return Rule(name, Pattern("relu", ("RELU",)), check)

    b = ModelBuilder()
    model = b.finish(relu(b, b.input("x", (1, 4))))
    driver = Driver(model)
    (anchor,) = model.main.operators
    rules = (rule("first", "not today"), rule("second", None), rule("third", None))
    assert driver.apply_at(rules, model.main, anchor)
    assert not driver.apply_at(rules, model.main, anchor)
    assert [(each.rule, each.reason) for each in driver.refused.values()] == [("first", "not today")]
    assert [each.rule for each in driver.applied] == ["second"]
    check_model(model)


def test_what_a_rule_is_not_about_is_not_reported() -> None:
    b = ModelBuilder()
    model = b.finish(relu(b, b.input("x", (1, 4))))
    driver = Driver(model)
    driver.apply_everywhere((Rule("never", Pattern("relu", ("RELU",)), lambda _: None),))
    assert (driver.applied, driver.refused) == ([], {})


def test_dead_operators() -> None:
    b = ModelBuilder()
    y = relu(b, b.input("x", (1, 4)))
    model = b.finish()
    graph = model.main
    assert is_dead(graph, graph.operators[0])
    graph.outputs = (y,)
    assert not is_dead(graph, graph.operators[0])
    assert not is_dead(graph, Operator(graph.operators[0].opcode, (), ()))


def test_rules_that_undo_each_other_are_found_out() -> None:
    def other(kind: str) -> Rule:
        swapped = {"RELU": "RELU6", "RELU6": "RELU"}[kind]

        def check(match: Match) -> Answer:
            inputs, outputs = match.anchor.inputs, match.anchor.outputs
            return Proposal(lambda edit: edit.operator(swapped, inputs, outputs))

        return Rule(f"not_{kind}", Pattern("operator", (kind,)), check)

    b = ModelBuilder()
    model = b.finish(relu(b, b.input("x", (1, 4, 4, 2))))
    with pytest.raises(AssertionError, match="rules undo each other: not_RELU, not_RELU6"):
        Driver(model).apply_everywhere([other("RELU"), other("RELU6")])
