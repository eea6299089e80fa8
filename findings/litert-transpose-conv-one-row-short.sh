#!/usr/bin/env bash
# A TRANSPOSE_CONV (VALID) whose output is one row and column short has three answers: an error, more rows, the right ones.
#
# TensorFlow's converter writes it for a Conv2DTranspose of Keras on JAX (padding="same", stride 2). LiteRT's own kernels
# refuse it, its default delegate (XNNPACK) gives 6x6 values for 4x4, and TFLM the right 16, as Keras does.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone TRANSPOSE_CONV of floats from 2x2 to 4x4 with a filter of 3x3, against real numbers
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


def litert(data, resolver, *samples):
    runner = Interpreter(model_content=data, experimental_op_resolver_type=resolver)
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
filters, image = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3, 1), np.asarray([[1, 2], [3, 4]], np.float32)
tensors = [tensor("size", (4,), s.TensorType.INT32, 1), tensor("w", (1, 3, 3, 1), s.TensorType.FLOAT32, 2),
           tensor("x", (1, 2, 2, 1), s.TensorType.FLOAT32), tensor("y", (1, 4, 4, 1), s.TensorType.FLOAT32)]
options = s.TransposeConvOptionsT()
options.padding, options.strideH, options.strideW = s.Padding.VALID, 2, 2
data = model(tensors, [2], [3], [(s.BuiltinOperator.TRANSPOSE_CONV, 1, [0, 1, 2], [3], s.BuiltinOptions.TransposeConvOptions, options)],
             [np.asarray([1, 4, 4, 1], np.int32), filters])
whole = np.zeros((5, 5), np.float32)
for row in range(2):
    for column in range(2):
        whole[2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += image[row, column] * filters[0, :, :, 0]
right, sample = whole[:4, :4], image.reshape(1, 2, 2, 1)
told = {"TFLM": "right" if (tflm(data, sample)[0, :, :, 0] == right).all() else "wrong"}
given = litert(data, OpResolverType.AUTO, sample)
told["LiteRT"] = "right" if given.shape == (1, 4, 4, 1) and (given[0, :, :, 0] == right).all() else f"gives {given.shape}"
try:
    litert(data, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, sample)
    told["LiteRT's own kernels"] = "runs"
except RuntimeError:
    told["LiteRT's own kernels"] = "refuses"
print(told)
sys.exit(told != {"TFLM": "right", "LiteRT": "gives (1, 6, 6, 1)", "LiteRT's own kernels": "refuses"})
PYTHON
