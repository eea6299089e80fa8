"""Small models for the tests, built by the project's own builder: no converter, no files."""

from __future__ import annotations

import numpy as np

from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.model import Buffer, DType, Model, OpCode, Operator, Signature, Tensor
from tflite_memopt.model.ir.tensors import per_tensor


def mobile_chain(size: int = 24) -> Model:
    """Pointwise and depthwise convolutions, then pool, dense and softmax: the shape of MobileNet.

    No greedy order of placement reaches the bound of its plan at size 24, as with the real one.
    """
    b = ModelBuilder()
    x = b.input("image", (1, size, size, 3))
    y = b.conv(x, 8, kernel=3, stride=2, seed=1)
    y = b.depthwise(y, seed=2)
    y = b.conv(y, 16, seed=3)
    y = b.depthwise(y, stride=2, seed=4)
    y = b.conv(y, 24, seed=5)
    y = b.average_pool(y, y.shape[1])
    y = b.reshape(y, (1, 24))
    return b.finish(b.softmax(b.dense(y, 4, seed=6)))


def that_nothing_runs(model: Model) -> Model:
    """The model behind whose output there is an operator that nobody has: every runtime refuses it when it is loaded.

    For what is wrong in other ways, and would crash one: so no test holds such a model.
    """
    output = model.main.outputs[0]
    last = Tensor("nobodys", output.shape, output.dtype, Buffer(None), output.quantization)
    model.main.tensors.append(last)
    model.main.add_operator(Operator(OpCode("CUSTOM", 1, "Nobodys"), (output,), (last,)))
    model.main.outputs = (last, *model.main.outputs[1:])
    return model


def branches() -> Model:
    """Two branches of different length, added, with one input read twice."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4))
    left = b.conv(x, 4, seed=1)
    right = b.depthwise(b.conv(x, 4, kernel=3, seed=2), seed=3)
    return b.finish(b.add(left, right))


def concat_model() -> Model:
    """A channel concat of two branches, read by one convolution; two outputs."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 4))
    joined = b.concat((b.conv(x, 4, seed=1), b.conv(x, 8, seed=2)))
    return b.finish(b.conv(joined, 4, seed=3), joined)


def dense_model(units: int = 8) -> Model:
    """One dense layer with a signature: the smallest useful model."""
    b = ModelBuilder()
    x = b.input("x", (1, 16))
    y = b.dense(x, units, seed=1)
    model = b.finish(y)
    model.signatures = [Signature("serving_default", model.main, (("x", x),), (("y", y),))]
    return model


def split_model() -> Model:
    """A multi-output operator whose middle output nobody reads."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 6))
    axis = b.constant("axis", np.asarray(3, dtype=np.int32))
    parts = [b.tensor(f"part{i}", (1, 4, 4, 2)) for i in range(3)]
    b.operator("SPLIT", (axis, x), parts, "SplitOptions", numSplits=3)
    return b.finish(b.add(parts[0], parts[2]))


def transpose_conv_model() -> Model:
    """An operator whose reference kernel asks for scratch."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 4))
    shape = b.constant("shape", np.asarray([1, 8, 8, 2], dtype=np.int32))
    values = np.random.default_rng(3).integers(-127, 128, (2, 3, 3, 4)).astype(np.int8)
    quantization = per_tensor(0.01, 0)
    weights = b.constant("weights", values, quantization)
    y = b.tensor("y", (1, 8, 8, 2))
    b.operator("TRANSPOSE_CONV", (shape, weights, x), (y,), "TransposeConvOptions", padding=0, strideW=2, strideH=2)
    return b.finish(b.conv(y, 2, seed=2))


def streaming_model() -> Model:
    """Resource variables set up by CALL_ONCE: y = x + state, state = y. Two subgraphs, stateful."""
    b = ModelBuilder()
    model = b.model
    x = b.input("x", (1, 8))
    b.operator("CALL_ONCE", (), (), "CallOnceOptions", initSubgraphIndex=1)
    handle = b.tensor("handle", (), DType.RESOURCE)
    b.operator("VAR_HANDLE", (), (handle,), "VarHandleOptions", container=b"", sharedName=b"state")
    state = b.tensor("state", (1, 8))
    b.operator("READ_VARIABLE", (handle,), (state,), "ReadVariableOptions")
    y = b.add(x, state)
    b.operator("ASSIGN_VARIABLE", (handle, y), (), "AssignVariableOptions")
    b.finish(y)
    b.new_graph("init")
    init_handle = b.tensor("init_handle", (), DType.RESOURCE)
    b.operator("VAR_HANDLE", (), (init_handle,), "VarHandleOptions", container=b"", sharedName=b"state")
    zeros = b.constant("zeros", np.zeros((1, 8), dtype=np.int8), per_tensor(0.05, 0))
    b.operator("ASSIGN_VARIABLE", (init_handle, zeros), (), "AssignVariableOptions")
    b.finish()
    return model


def if_model() -> Model:
    """IF with two subgraphs of different memory; the condition is an input."""
    b = ModelBuilder()
    condition = b.input("condition", (1,), DType.BOOL)
    x = b.input("x", (1, 64), DType.FLOAT32)
    y = b.tensor("y", (1, 64), DType.FLOAT32)
    b.operator("IF", (condition, x), (y,), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    b.finish(y)
    for name, doublings in (("then", 3), ("else", 1)):
        b.new_graph(name)
        value = b.input(f"{name}_x", (1, 64), DType.FLOAT32)
        for _ in range(doublings):
            value = b.add(value, value)
        b.finish(value)
    return b.model


def while_model() -> Model:
    """WHILE n < 2**30: n += 2**29, x += x. At most six turns for any int32 n."""
    b = ModelBuilder()
    n = b.input("n", (1,), DType.INT32)
    x = b.input("x", (1, 32), DType.FLOAT32)
    outputs = (b.tensor("n_out", (1,), DType.INT32), b.tensor("x_out", (1, 32), DType.FLOAT32))
    b.operator("WHILE", (n, x), outputs, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    b.finish(*outputs)
    b.new_graph("condition")
    n = b.input("cond_n", (1,), DType.INT32)
    b.input("cond_x", (1, 32), DType.FLOAT32)
    limit = b.constant("limit", np.asarray([2**30], dtype=np.int32))
    less = b.tensor("less", (1,), DType.BOOL)
    b.operator("LESS", (n, limit), (less,), "LessOptions")
    b.finish(less)
    b.new_graph("body")
    n = b.input("body_n", (1,), DType.INT32)
    x = b.input("body_x", (1, 32), DType.FLOAT32)
    one = b.constant("one", np.asarray([2**29], dtype=np.int32))
    more = b.tensor("n_next", (1,), DType.INT32)
    b.operator("ADD", (n, one), (more,), "AddOptions")
    b.finish(more, b.add(x, x))
    return b.model


def dead_model() -> Model:
    """A dense layer beside an activation and a weight that nothing uses."""
    b = ModelBuilder()
    x = b.input("x", (1, 16))
    b.tensor("dead", (1, 400))
    b.constant("dead_weight", np.ones(50, dtype=np.int8))
    return b.finish(b.dense(x, 8, seed=1))


def irregular_model() -> Model:
    """Three branches, each wide inside and narrow at its end, interleaved so that all are wide at the same time.

    Another order, one branch after the other, needs half the memory.
    """
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2))
    wide = [b.conv(x, 32, kernel=3, seed=seed) for seed in (1, 2, 3)]
    narrow = [b.conv(tensor, 2, seed=seed) for seed, tensor in enumerate(wide, 4)]
    return b.finish(b.concat(tuple(narrow)))


def quantized_at_the_boundary() -> Model:
    """A small network that takes and gives floats, quantized inside; a signature with names of its own."""
    b = ModelBuilder()
    x = b.input("image", (1, 6, 6, 3), DType.FLOAT32)
    q = b.tensor("image_int8", x.shape, scale=0.0234, zero_point=-7)
    b.operator("QUANTIZE", (x,), (q,), "QuantizeOptions")
    last = b.conv(b.depthwise(b.conv(q, 8, kernel=3, seed=1), seed=2), 4, seed=3)
    y = b.tensor("scores", last.shape, DType.FLOAT32)
    b.operator("DEQUANTIZE", (last,), (y,), "DequantizeOptions")
    model = b.finish(y)
    model.signatures = [Signature("serving_default", model.main, (("picture", x),), (("result", y),))]
    return model


def float_sum(left_first: bool) -> Model:
    """(a + b) + c or a + (b + c) of float tensors, and an int8 output beside it."""
    b = ModelBuilder()
    x, y, z = (b.input(name, (1, 500), DType.FLOAT32) for name in "xyz")
    i = b.input("other", (1, 8))
    other = b.add(i, i)
    if left_first:
        return b.finish(b.add(b.add(x, y), z), other)
    return b.finish(b.add(x, b.add(y, z)), other)


ALL = {
    function.__name__: function
    for function in (
        mobile_chain,
        branches,
        concat_model,
        dense_model,
        split_model,
        transpose_conv_model,
        streaming_model,
        if_model,
        while_model,
        dead_model,
        irregular_model,
        quantized_at_the_boundary,
    )
}
