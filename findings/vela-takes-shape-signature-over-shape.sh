#!/usr/bin/env bash
# Vela leaves an operator to the CPU whose tensor has an open side in shape_signature, although its shape is whole.
#
# LiteRT and TFLM go by the shape. An open batch is set to 1; any other open side takes all operators on it off the NPU.
# Versions: ethos-u-vela 5.2.0, ai-edge-litert 2.3.0; seen on 2026-11-29.
# Source: two CONV_2D of int8 whose tensor between them has the shape 1x8x8x4 and three signatures
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for each in litert vela; do python3 -m venv "$folder/$each"; done
install="-m pip install --quiet --disable-pip-version-check"
# shellcheck disable=SC2086
"$folder/litert/bin/python" $install ai-edge-litert==2.3.0
# shellcheck disable=SC2086
"$folder/vela/bin/python" $install ethos-u-vela==5.2.0
cat > "$folder/make.py" << 'PYTHON'
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as s


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


def made(signature):
    tensors = [tensor("x", (1, 8, 8, 4), s.TensorType.INT8, scale=0.05),
               tensor("w", (4, 1, 1, 4), s.TensorType.INT8, 1, scale=[0.01] * 4),
               tensor("b", (4,), s.TensorType.INT32, 2, scale=[0.0005] * 4),
               tensor("y", (1, 8, 8, 4), s.TensorType.INT8, scale=0.1),
               tensor("z", (1, 8, 8, 4), s.TensorType.INT8, scale=0.1)]
    tensors[3].shapeSignature = signature
    options = s.Conv2DOptionsT()
    options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
    kind = s.BuiltinOptions.Conv2DOptions
    operators = [(s.BuiltinOperator.CONV_2D, 3, [0, 1, 2], [3], kind, options),
                 (s.BuiltinOperator.CONV_2D, 3, [3, 1, 2], [4], kind, options)]
    constants = [np.random.default_rng(0).integers(-100, 100, (4, 1, 1, 4)).astype(np.int8), np.zeros(4, np.int32)]
    return model(tensors, [0], [4], operators, constants)


for name, signature in (("none", None), ("batch", [-1, 8, 8, 4]), ("row", [1, -1, 8, 4])):
    with open(f"{sys.argv[1]}/{name}.tflite", "wb") as file:
        file.write(made(signature))
PYTHON
"$folder/litert/bin/python" -W ignore "$folder/make.py" "$folder"
told=""
for name in none batch row; do
    on_cpu=$("$folder/vela/bin/vela" "$folder/$name.tflite" --accelerator-config ethos-u55-128 --output-dir "$folder/out" 2>&1 |
        sed -n 's/^CPU operators = \([0-9]*\).*/\1/p')
    echo "$name: $on_cpu of 2 operators on the CPU"
    told="$told $on_cpu"
done
[ "$told" = " 0 0 2" ]
