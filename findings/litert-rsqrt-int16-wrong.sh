#!/usr/bin/env bash
# LiteRT's RSQRT of int16 is off by a factor for small inputs; TFLM's is right.
#
# So a model whose int16 layer normalization was tested on LiteRT computes otherwise, and right, on the device.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone RSQRT of int16, against real numbers
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
tensors = [tensor("x", (1, 5), s.TensorType.INT16, scale=0.01), tensor("y", (1, 5), s.TensorType.INT16, scale=0.001)]
data = model(tensors, [0], [1], [(s.BuiltinOperator.RSQRT, 2, [0], [1], 0, None)])
sample = np.asarray([[100, 105, 350, 10100, 16483]], np.int16)
right = np.rint(1 / np.sqrt(sample * 0.01) / 0.001)
answers = [run(data, sample) for run in (litert, tflm)]
print("exact", right.ravel().tolist())
print("LiteRT", answers[0].ravel().tolist())
print("TFLM", answers[1].ravel().tolist())
sys.exit(not (abs(answers[0] - right).max() > 1000 and abs(answers[1] - right).max() <= 1))
PYTHON
