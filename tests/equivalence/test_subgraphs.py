"""IF and WHILE of the model's own: what is wrong inside shows, though no output does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.models import if_model, streaming_model, while_model
from tflite_memopt import Options, optimize, verify
from tflite_memopt.equivalence.subgraphs import isolated
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import DType, Model, Operator, Tensor
from tflite_memopt.ir.tensors import per_tensor

OPTIONS = Options(samples=3)


def _times_zero(b: ModelBuilder, x: Tensor, name: str) -> Tensor:
    """x * 3 * 0 + x: whatever comes before the product with 0, as long as it is finite, is lost."""
    doubled = b.add(x, x)
    tripled = b.add(doubled, x)
    zero = b.constant(f"{name}_zero", np.zeros((1, 64), np.float32))
    lost = b.tensor(f"{name}_lost", (1, 64), DType.FLOAT32)
    b.operator("MUL", (tripled, zero), (lost,), "MulOptions")
    return b.add(lost, x)


def masked_if() -> Model:
    """IF whose branches hide what they compute; one of them calls IF again."""
    b = ModelBuilder()
    conditions = b.input("condition", (1,), DType.BOOL), b.input("other_condition", (1,), DType.BOOL)
    x, y = b.input("x", (1, 64), DType.FLOAT32), b.tensor("y", (1, 64), DType.FLOAT32)
    b.operator("IF", (*conditions, x), (y,), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    b.finish(y)
    b.new_graph("then")
    b.input("then_condition", (1,), DType.BOOL)
    b.finish(_times_zero(b, b.input("then_x", (1, 64), DType.FLOAT32), "then"))
    b.new_graph("else")
    condition, x = b.input("else_condition", (1,), DType.BOOL), b.input("else_x", (1, 64), DType.FLOAT32)
    y = b.tensor("inner_y", (1, 64), DType.FLOAT32)
    b.operator("IF", (condition, x), (y,), "IfOptions", thenSubgraphIndex=3, elseSubgraphIndex=4)
    b.finish(y)
    for name in ("inner_then", "inner_else"):
        b.new_graph(name)
        b.finish(_times_zero(b, b.input(f"{name}_x", (1, 64), DType.FLOAT32), name))
    return b.model


def masked_while() -> Model:
    """WHILE whose body hides what it computes."""
    b = ModelBuilder()
    n = b.input("n", (1,), DType.INT32)
    x = b.input("x", (1, 64), DType.FLOAT32)
    outputs = (b.tensor("n_out", (1,), DType.INT32), b.tensor("x_out", (1, 64), DType.FLOAT32))
    b.operator("WHILE", (n, x), outputs, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    b.finish(*outputs)
    b.new_graph("condition")
    n = b.input("cond_n", (1,), DType.INT32)
    b.input("cond_x", (1, 64), DType.FLOAT32)
    less = b.tensor("less", (1,), DType.BOOL)
    b.operator("LESS", (n, b.constant("limit", np.asarray([2**30], np.int32))), (less,), "LessOptions")
    b.finish(less)
    b.new_graph("body")
    n, x = b.input("body_n", (1,), DType.INT32), b.input("body_x", (1, 64), DType.FLOAT32)
    more = b.tensor("n_next", (1,), DType.INT32)
    b.operator("ADD", (n, b.constant("step", np.asarray([2**29], np.int32))), (more,), "AddOptions")
    b.finish(more, _times_zero(b, x, "body"))
    return b.model


def sums_of(model: Model, graph: int) -> list[Operator]:
    found = [operator for operator in model.graphs[graph].operators if operator.name == "ADD"]
    return [operator for operator in found if operator.outputs[0].shape == (1, 64)]


def wrong_inside(model: Model, graph: int) -> bytes:
    """x * 4 in place of x * 3 in a subgraph; the product with 0 hides it from every output."""
    edited = read_model(write_model(model))
    doubled, tripled, _ = sums_of(edited, graph)
    edited.graphs[graph].set_input(tripled, 1, doubled.outputs[0])
    return write_model(edited)


def spoilt_inside(model: Model, graph: int) -> bytes:
    """A plan in which x * 3 is written over what is still to be read of x * 2; the product with 0 hides it."""
    planned = read_model(optimize(write_model(model), Options(verify=False)).model)
    offsets = dict(offline_plan.decode(planned) or {})
    doubled, tripled, _ = (operator.outputs[0] for operator in sums_of(planned, graph))
    lost = next(tensor for tensor in planned.graphs[graph].tensors if tensor.name.endswith("_lost"))
    top = 16 * -(-max(offset + tensor.nbytes for tensor, offset in offsets.items()) // 16)
    offsets |= {doubled: top, tripled: top + doubled.nbytes // 2, lost: top + 2 * doubled.nbytes}
    offline_plan.attach(planned, offsets)
    return write_model(planned)


MASKED = [(masked_if, 1), (masked_if, 3), (masked_while, 2)]


@pytest.mark.parametrize(("make", "graph"), MASKED)
def test_what_no_output_shows_is_named_with_its_subgraph(make: Callable[[], Model], graph: int) -> None:
    found = verify(write_model(make()), wrong_inside(make(), graph), OPTIONS)
    for runtime in ("litert", "tflm"):
        assert found[runtime].equal is False
        assert f"in subgraph {graph}: tensor 'add" in str(found[runtime].reason)


@pytest.mark.parametrize(("make", "graph"), MASKED)
def test_a_plan_that_spoils_a_subgraph_is_wrong_though_no_output_shows_it(
    make: Callable[[], Model], graph: int
) -> None:
    found = verify(write_model(make()), spoilt_inside(make(), graph), OPTIONS)
    assert found["litert"].equal
    assert found["tflm"].equal is False
    assert f"in subgraph {graph}: the plan changes values: at its last use, tensor 'add" in str(found["tflm"].reason)


@pytest.mark.parametrize("make", [masked_if, masked_while, if_model, while_model])
def test_right_models_pass_and_inner_tensors_are_counted(make: Callable[[], Model]) -> None:
    data = write_model(make())
    report = optimize(data, OPTIONS).report
    for runtime in ("litert", "tflm"):
        verdict = report.equivalence[runtime]
        assert (verdict.equal, verdict.reason) == (True, None)
        main = len(make().main.inputs) + len(make().main.outputs)
        assert verdict.inner_tensors > main


def test_a_subgraph_stands_alone_with_its_offsets() -> None:
    planned = optimize(write_model(masked_if()), Options(verify=False)).model
    data, order = isolated(planned, 2)
    alone, whole = read_model(data), read_model(planned)
    assert order == (2, 3, 4)
    assert [graph.name for graph in alone.graphs] == ["else", "inner_then", "inner_else"]
    assert alone.main.operators[-1].option("elseSubgraphIndex") == 2
    wanted, found = (
        {t.name: o for t, o in (offline_plan.decode(m) or {}).items() if t in m.graphs[g].tensors}
        for m, g in ((whole, 2), (alone, 0))
    )
    assert wanted == found
    assert wanted


def stateful_branch() -> Model:
    """CALL_ONCE sets a variable; one branch of an IF reads it."""
    b = ModelBuilder()
    b.operator("CALL_ONCE", (), (), "CallOnceOptions", initSubgraphIndex=3)
    condition, x = b.input("condition", (1,), DType.BOOL), b.input("x", (1, 8))
    y = b.tensor("y", (1, 8))
    b.operator("IF", (condition, x), (y,), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    b.finish(y)

    def handle() -> Tensor:
        found = b.tensor(f"{b.graph.name}_handle", (), DType.RESOURCE)
        b.operator("VAR_HANDLE", (), (found,), "VarHandleOptions", container=b"", sharedName=b"state")
        return found

    b.new_graph("then")
    x, state = b.input("then_x", (1, 8)), b.tensor("state", (1, 8))
    b.operator("READ_VARIABLE", (handle(),), (state,), "ReadVariableOptions")
    b.finish(b.add(x, state))
    b.new_graph("else")
    x = b.input("else_x", (1, 8))
    b.finish(b.add(x, x))
    b.new_graph("init")
    start = b.constant("start", np.full((1, 8), 5, np.int8), per_tensor(0.05, 0))
    b.operator("ASSIGN_VARIABLE", (handle(), start), (), "AssignVariableOptions")
    b.finish()
    return b.model


def test_a_subgraph_that_keeps_state_is_said_not_to_be_looked_into() -> None:
    """An initializer is not mentioned: what it sets is seen by who reads it."""
    found = verify(write_model(stateful_branch()), write_model(stateful_branch()), OPTIONS)
    for runtime in ("litert", "tflm"):
        assert found[runtime].equal
        assert found[runtime].reason == "inner tensors of subgraph 1 were not compared: it keeps state"
    assert verify(write_model(streaming_model()), write_model(streaming_model()), OPTIONS)["tflm"].reason is None
