#!/usr/bin/env bash
# A bias of int64 in an int8 FULLY_CONNECTED is read as pairs of 32 bits, on LiteRT and TFLM alike.
#
# Channel 1 gets the upper half of the bias of channel 0. Both agree, so that comparing them shows nothing.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone FULLY_CONNECTED of int8 with a scale per channel and biases of 40 and 80, against real numbers
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
tensors = [tensor("x", (1, 4), s.TensorType.INT8, scale=0.5), tensor("w", (2, 4), s.TensorType.INT8, 1, scale=[0.5, 0.5]),
           tensor("b", (2,), s.TensorType.INT64, 2, scale=[0.25, 0.25]), tensor("y", (1, 2), s.TensorType.INT8, scale=1)]
data = model(tensors, [0], [3], [(s.BuiltinOperator.FULLY_CONNECTED, 5, [0, 1, 2], [3],
                                  s.BuiltinOptions.FullyConnectedOptions, s.FullyConnectedOptionsT())],
             [np.ones((2, 4), np.int8), np.asarray([40, 80], np.int64)])
answers = [run(data, np.ones((1, 4), np.int8)).ravel().tolist() for run in (litert, tflm)]
print("exact", [11, 21], "LiteRT", answers[0], "TFLM", answers[1])
sys.exit(answers != [[11, 1], [11, 1]])
PYTHON
