#!/usr/bin/env bash
# LiteRT's reference kernel (BUILTIN_REF) of int8 SUM is off by up to the whole range.
#
# Its other kernels, TFLM's, and exact sums agree. A tool that judges a network by BUILTIN_REF calls a right one wrong.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone SUM of int8 over the last axis, on three runtimes, against numpy
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
q = dict(scale=0.05, zero=-3)
options = s.ReducerOptionsT()
options.keepDims = True
tensors = [tensor("x", (4, 4), s.TensorType.INT8, **q), tensor("axis", (1,), s.TensorType.INT32, 1),
           tensor("y", (4, 1), s.TensorType.INT8, **q)]
data = model(tensors, [0], [2], [(s.BuiltinOperator.SUM, 2, [0, 1], [2], s.BuiltinOptions.ReducerOptions, options)],
             [np.asarray([1], np.int32)])
sample = np.random.default_rng(0).integers(-40, 41, (4, 4)).astype(np.int8)
right = np.clip(np.rint((sample.astype(int) + 3).sum(1) - 3.0), -128, 127)
found = {name: litert(data, sample, name).ravel().astype(int)
         for name in ("BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF")}
found["TFLM"] = tflm(data, sample).ravel().astype(int)
print("exact sum", right.astype(int))
for name, values in found.items():
    print(name, values, "off by", int(abs(values - right).max()))
off = {name: abs(values - right).max() for name, values in found.items()}
sys.exit(not (off.pop("BUILTIN_REF") > 2 and max(off.values()) <= 1))
PYTHON
