#!/usr/bin/env bash
# DEPTHWISE_CONV_2D of int8 does not read the zero point of its weights; FULLY_CONNECTED does. LiteRT and TFLM alike.
#
# A file of a quantizer with asymmetric weights loads everywhere and computes something else, without an error.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: both operators with weights of 5 and a zero point of 3, against real numbers
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


def litert(data, *samples):
    runner = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    runner.allocate_tensors()
    for entry, sample in zip(runner.get_input_details(), samples):
        runner.set_tensor(entry["index"], sample)
    runner.invoke()
    return runner.get_tensor(runner.get_output_details()[0]["index"])


def tflm(data, *samples):
    runner = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    for place, sample in enumerate(samples):
        runner.set_input(sample, place)
    runner.invoke()
    return runner.get_output(0)


print("ai-edge-litert", version("ai-edge-litert"))
print("tflite-micro", version("tflite-micro"))
def made(builtin, kind, options, shape, axis, places):
    tensors = [tensor("x", places, s.TensorType.INT8, scale=0.5), tensor("w", shape, s.TensorType.INT8, 1, scale=0.5, zero=3, axis=axis),
               tensor("b", (1,), s.TensorType.INT32, 2, scale=0.25), tensor("y", places, s.TensorType.INT8, scale=0.25)]
    return model(tensors, [0], [3], [(builtin, 5 if len(shape) == 2 else 3, [0, 1, 2], [3], kind, options)],
                 [np.full(shape, 5, np.int8), np.zeros(1, np.int32)])


depthwise = s.DepthwiseConv2DOptionsT()
depthwise.strideH = depthwise.strideW = depthwise.dilationHFactor = depthwise.dilationWFactor = depthwise.depthMultiplier = 1
files = {
    "depthwise": made(s.BuiltinOperator.DEPTHWISE_CONV_2D, s.BuiltinOptions.DepthwiseConv2DOptions, depthwise, (1, 1, 1, 1), 3, (1, 1, 1, 1)),
    "dense": made(s.BuiltinOperator.FULLY_CONNECTED, s.BuiltinOptions.FullyConnectedOptions, s.FullyConnectedOptionsT(), (1, 1), 0, (1, 1)),
}
told = {}
for name, data in files.items():
    sample = np.full((1, 1) if name == "dense" else (1, 1, 1, 1), 10, np.int8)
    told[name] = [int(run(data, sample).ravel()[0]) for run in (litert, tflm)]
    print(name, "exact", 10 * (5 - 3), "LiteRT", told[name][0], "TFLM", told[name][1])
sys.exit(told != {"depthwise": [50, 50], "dense": [20, 20]})
PYTHON
