#!/usr/bin/env bash
# Vela drops the files, such as labels, that are appended to a model.
#
# tflite-support keeps them in a zip behind the flatbuffer, and apps read their labels there. Nothing is said.
# Versions: ethos-u-vela 5.2.0, ai-edge-litert 2.3.0; seen on 2026-11-29.
# Source: two CONV_2D of int8 with a zip of one file behind them
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

def made():
    tensors = [tensor("x", (1, 8, 8, 4), s.TensorType.INT8, scale=0.05),
               tensor("w", (4, 1, 1, 4), s.TensorType.INT8, 1, scale=[0.01] * 4),
               tensor("b", (4,), s.TensorType.INT32, 2, scale=[0.0005] * 4),
               tensor("y", (1, 8, 8, 4), s.TensorType.INT8, scale=0.1),
               tensor("z", (1, 8, 8, 4), s.TensorType.INT8, scale=0.1)]
    options = s.Conv2DOptionsT()
    options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
    kind = s.BuiltinOptions.Conv2DOptions
    operators = [(s.BuiltinOperator.CONV_2D, 3, [0, 1, 2], [3], kind, options),
                 (s.BuiltinOperator.CONV_2D, 3, [3, 1, 2], [4], kind, options)]
    constants = [np.random.default_rng(0).integers(-100, 100, (4, 1, 1, 4)).astype(np.int8), np.zeros(4, np.int32)]
    return model(tensors, [0], [4], operators, constants)

import zipfile

path = f"{sys.argv[1]}/labeled.tflite"
with open(path, "wb") as file:
    file.write(made())
with zipfile.ZipFile(path, "a") as archive:
    archive.writestr("labels.txt", "cat\ndog\n")
PYTHON
"$folder/litert/bin/python" -W ignore "$folder/make.py" "$folder"
"$folder/vela/bin/vela" "$folder/labeled.tflite" --accelerator-config ethos-u55-128 --output-dir "$folder/out" > "$folder/log" 2>&1
told=""
for each in "$folder/labeled.tflite" "$folder/out/labeled_vela.tflite"; do
    answer=$("$folder/litert/bin/python" -c 'import sys, zipfile; print(zipfile.is_zipfile(sys.argv[1]))' "$each")
    echo "$(basename "$each") has associated files: $answer"
    told="$told $answer"
done

[ "$told" = " True False" ]
