#!/usr/bin/env bash
# Block-wise int4 weights: LiteRT's reference kernels give the bias alone, and TFLM refuses the file.
#
# A FULLY_CONNECTED of float32 with int4 weights and a float16 scale for each block of 32, as quantizers write it. LiteRT's
# default kernels, with and without delegates, are right to the 8 bits in which they take the input, each otherwise.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone FULLY_CONNECTED with QuantizationDetails.BlockwiseQuantization, against numpy
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
rng = np.random.default_rng(0)
values, scales = rng.integers(-7, 8, (4, 64)), rng.uniform(0.02, 0.2, (4, 2)).astype(np.float16)
nibbles = (values.reshape(-1, 2) & 15).astype(np.uint8)
bias = np.asarray([1, 2, 3, 4], np.float32)
w = tensor("w", (4, 64), s.TensorType.INT4, 1)
w.quantization = s.QuantizationParametersT()
w.quantization.detailsType = s.QuantizationDetails.BlockwiseQuantization
w.quantization.details = s.BlockwiseQuantizationT()
w.quantization.details.scales, w.quantization.details.zeroPoints, w.quantization.details.blockSize = 4, -1, 32
tensors = [tensor("x", (1, 64), s.TensorType.FLOAT32), w, tensor("bias", (4,), s.TensorType.FLOAT32, 2),
           tensor("y", (1, 4), s.TensorType.FLOAT32), tensor("scales", (4, 2), s.TensorType.FLOAT16, 3)]
options = s.FullyConnectedOptionsT()
data = model(tensors, [0], [3], [(s.BuiltinOperator.FULLY_CONNECTED, 13, [0, 1, 2], [3],
                                 s.BuiltinOptions.FullyConnectedOptions, options)],
             [nibbles[:, 0] | nibbles[:, 1] << 4, bias, scales])
sample = rng.normal(size=(1, 64)).astype(np.float32)
right = sample @ (values * np.repeat(scales.astype(float), 32, 1)).T + bias
found = {name: litert(data, sample, name).ravel()
         for name in ("BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF")}
print("exact", right.ravel().round(3))
for name, each in found.items():
    print(name, each.round(3), "off by", round(float(abs(each - right).max()), 3))
try:
    print("TFLM", tflm(data, sample))
    is_refused = False
except RuntimeError as error:
    is_refused = True
    print("TFLM refuses it:", str(error).splitlines()[0])
is_bias = np.array_equal(found.pop("BUILTIN_REF"), bias)
off = max(abs(each - right).max() / abs(right).max() for each in found.values())
sys.exit(not (is_refused and is_bias and off < 0.01))
PYTHON
