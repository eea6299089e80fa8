#!/usr/bin/env bash
# Vela ends with an error on a file with LESS or GREATER of int8.
#
# The message is of an operator And that the file does not have. A graph with a loop over rows is refused so as a whole.
# Versions: ethos-u-vela 5.2.0, ai-edge-litert 2.3.0; seen on 2026-11-29.
# Source: an ADD of int8, alone and beside LESS and GREATER
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


def made(kind):
    tensors = [*(tensor(name, (1, 8), s.TensorType.INT8, scale=0.05) for name in "ab"), tensor("y", (1, 8), s.TensorType.INT8, scale=0.1)]
    if kind:
        tensors.append(tensor("p", (1, 8), s.TensorType.BOOL))
    operators = [(s.BuiltinOperator.ADD, 2, [0, 1], [2], s.BuiltinOptions.AddOptions, s.AddOptionsT())]
    if kind:
        operators.append((getattr(s.BuiltinOperator, kind), 2, [0, 1], [3], 0, None))
    return model(tensors, [0, 1], [2, 3] if kind else [2], operators)


for kind in ("", "LESS", "GREATER"):
    with open(f"{sys.argv[1]}/file{kind}.tflite", "wb") as file:
        file.write(made(kind))
PYTHON
"$folder/litert/bin/python" -W ignore "$folder/make.py" "$folder"
told=""
for kind in "" LESS GREATER; do
    code=0
    "$folder/vela/bin/vela" "$folder/file$kind.tflite" --accelerator-config ethos-u55-128 --output-dir "$folder/out" \
        > "$folder/log" 2>&1 || code=$?
    echo "ADD${kind:+ and $kind}: exit $code, $(grep -E '^(CPU operators|RuntimeError)' "$folder/log" | tail -1)"
    told="$told $code"
done
[ "$told" = " 0 1 1" ]
