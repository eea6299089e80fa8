#!/usr/bin/env bash
# TFLM's DEQUANTIZE takes the first scale of a tensor for all of its channels.
#
# So a network with weights of int8 and a scale per channel (weight-only quantization) loads, runs, and computes
# something else, without an error. LiteRT is right.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a DEQUANTIZE of a constant with two scales, added to the input
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
tensors = [tensor("x", (2, 2), s.TensorType.FLOAT32),
           tensor("w", (2, 2), s.TensorType.INT8, 1, scale=[0.01, 1.0]),
           tensor("d", (2, 2), s.TensorType.FLOAT32), tensor("y", (2, 2), s.TensorType.FLOAT32)]
values = np.asarray([[1, 2], [3, 4]], np.int8)
data = model(tensors, [0], [3], [
    (s.BuiltinOperator.DEQUANTIZE, 5, [1], [2], s.BuiltinOptions.DequantizeOptions, s.DequantizeOptionsT()),
    (s.BuiltinOperator.ADD, 1, [0, 2], [3], s.BuiltinOptions.AddOptions, s.AddOptionsT()),
], [values])
sample = np.zeros((2, 2), np.float32)
right = values * np.asarray([[0.01], [1.0]])
one, other = litert(data, sample, "BUILTIN_WITHOUT_DEFAULT_DELEGATES"), tflm(data, sample)
print("exact", right.tolist())
print("LiteRT", one.tolist())
print("TFLM", other.tolist())
sys.exit(not (np.allclose(one, right) and np.allclose(other, values * 0.01)))
PYTHON
