#!/usr/bin/env bash
# TFLM's ADD of int32 leaves out the fused activation, which LiteRT applies.
#
# A converter fuses a RELU behind an addition of counts or token numbers. Negative sums then stay negative on the device.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone ADD of int32 with RELU
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
options = s.AddOptionsT()
options.fusedActivationFunction = s.ActivationFunctionType.RELU
tensors = [tensor(name, (1, 4), s.TensorType.INT32) for name in "aby"]
data = model(tensors, [0, 1], [2], [(s.BuiltinOperator.ADD, 1, [0, 1], [2], s.BuiltinOptions.AddOptions, options)])
one, other = np.asarray([[-9, -6, 1, 7]], np.int32), np.full((1, 4), 5, np.int32)
answers = [run(data, one, other).ravel().tolist() for run in (litert, tflm)]
print("LiteRT", answers[0])
print("TFLM", answers[1])
sys.exit(answers != [[0, 0, 6, 12], [-4, -1, 6, 12]])
PYTHON
