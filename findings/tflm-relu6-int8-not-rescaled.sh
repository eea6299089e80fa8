#!/usr/bin/env bash
# TFLM's RELU6 of int8 copies integers where its output has another scale than its input.
#
# TensorFlow's converter gives a lone RELU6 a scale of its own. LiteRT rescales, and so does TFLM's RELU.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone RELU6 and a lone RELU of int8, against real numbers
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
sample = np.arange(-128, 128, dtype=np.int8)[None]
right = np.clip(np.rint(np.clip((sample.astype(float) + 3) * 0.05, 0, 6) / 0.0235) - 128, -128, 127)
off = {}
for builtin in ("RELU6", "RELU"):
    tensors = [tensor("x", (1, 256), s.TensorType.INT8, scale=0.05, zero=-3),
               tensor("y", (1, 256), s.TensorType.INT8, scale=0.0235, zero=-128)]
    data = model(tensors, [0], [1], [(getattr(s.BuiltinOperator, builtin), 2, [0], [1], 0, None)])
    off[builtin, "LiteRT"] = abs(litert(data, sample, "BUILTIN_WITHOUT_DEFAULT_DELEGATES") - right).max()
    off[builtin, "TFLM"] = abs(tflm(data, sample) - right).max()
for (builtin, name), steps in off.items():
    print(builtin, "on", name, "is off by", int(steps), "of 255 steps")
sys.exit(not (off.pop(("RELU6", "TFLM")) > 50 and max(off.values()) <= 1))
PYTHON
