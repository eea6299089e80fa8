#!/usr/bin/env bash
# TFLM refuses FULLY_CONNECTED with int4 weights and a scale per channel, which quantizers write.
#
# With one scale for the tensor it runs, and CONV_2D runs with a scale per channel. LiteRT runs all three.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: lone FULLY_CONNECTED and CONV_2D of int8 with int4 weights
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ai-edge-litert==2.3.0 tflite-micro==0.dev20261023182759
"$folder/venv/bin/python" -W ignore - << 'PYTHON'
import sys
from importlib.metadata import version

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as s
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro import runtime


def tensor(name, shape, kind, buffer=0, scale=None, zero=0, axis=0):
    t = s.TensorT()
    t.name, t.shape, t.type, t.buffer = name, list(shape), kind, buffer
    if scale is not None:
        t.quantization = s.QuantizationParametersT()
        t.quantization.scale, t.quantization.quantizedDimension = [float(each) for each in np.ravel(scale)], axis
        t.quantization.zeroPoint = [zero] * len(t.quantization.scale)
    return t


def model(tensors, inputs, outputs, operators, constants=()):
    """operators: (builtin, version, inputs, outputs, options type, options); constant k is buffer k + 1."""
    m, g = s.ModelT(), s.SubGraphT()
    m.version, m.subgraphs, m.operatorCodes, m.buffers = 3, [g], [], [s.BufferT()]
    for each in constants:
        b = s.BufferT()
        b.data = np.frombuffer(np.ascontiguousarray(each).tobytes(), np.uint8)
        m.buffers.append(b)
    g.tensors, g.inputs, g.outputs, g.operators = tensors, inputs, outputs, []
    for builtin, number, ins, outs, kind, options in operators:
        code, op = s.OperatorCodeT(), s.OperatorT()
        code.builtinCode = code.deprecatedBuiltinCode = builtin
        code.version = number
        op.opcodeIndex, op.inputs, op.outputs = len(m.operatorCodes), ins, outs
        op.builtinOptionsType, op.builtinOptions = kind, options
        m.operatorCodes.append(code)
        g.operators.append(op)
    builder = flatbuffers.Builder(1024)
    builder.Finish(m.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def litert(data, sample, kernels):
    runner = Interpreter(model_content=data, experimental_op_resolver_type=getattr(OpResolverType, kernels))
    runner.allocate_tensors()
    runner.set_tensor(runner.get_input_details()[0]["index"], sample)
    runner.invoke()
    return runner.get_tensor(runner.get_output_details()[0]["index"])


def tflm(data, sample):
    runner = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    runner.set_input(sample, 0)
    runner.invoke()
    return runner.get_output(0)


print("ai-edge-litert", version("ai-edge-litert"))
print("tflite-micro", version("tflite-micro"))
def made(kind, scales):
    shape = (2, 4) if kind == "dense" else (2, 1, 1, 4)
    x, y = ((1, 4), (1, 2)) if kind == "dense" else ((1, 1, 1, 4), (1, 1, 1, 2))
    tensors = [tensor("x", x, s.TensorType.INT8, scale=0.05), tensor("w", shape, s.TensorType.INT4, 1, scale=scales),
               tensor("b", (2,), s.TensorType.INT32, 2, scale=np.asarray(scales) * 0.05),
               tensor("y", y, s.TensorType.INT8, scale=0.1)]
    if kind == "dense":
        op = (s.BuiltinOperator.FULLY_CONNECTED, 7, [0, 1, 2], [3], s.BuiltinOptions.FullyConnectedOptions,
              s.FullyConnectedOptionsT())
    else:
        options = s.Conv2DOptionsT()
        options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
        op = (s.BuiltinOperator.CONV_2D, 3, [0, 1, 2], [3], s.BuiltinOptions.Conv2DOptions, options)
    values = np.asarray([0x21, 0x43, 0x65, 0x07], np.uint8)
    return model(tensors, [0], [3], [op], [values, np.zeros(2, np.int32)]), np.full(x, 20, np.int8)


def answer(run):
    try:
        return run().ravel().tolist()
    except (RuntimeError, ValueError) as error:
        return "refused: " + str(error).splitlines()[0][:90]


told = {}
for kind, scales in (("dense", [0.1]), ("dense", [0.1, 0.2]), ("convolution", [0.1, 0.2])):
    data, sample = made(kind, scales)
    one = answer(lambda: litert(data, sample, "BUILTIN_WITHOUT_DEFAULT_DELEGATES"))
    other = answer(lambda: tflm(data, sample))
    print(kind, len(scales), "scales: LiteRT", one, "TFLM", other)
    told[kind, len(scales)] = (one, other)
is_refused = isinstance(told["dense", 2][1], str) and not isinstance(told["dense", 2][0], str)
others_run = told["dense", 1][0] == told["dense", 1][1] and told["convolution", 2][0] == told["convolution", 2][1]
sys.exit(not (is_refused and others_run))
PYTHON
