#!/usr/bin/env bash
# Vela leaves the OfflineMemoryAllocation of its input in the file that it writes, in place of its own.
#
# Its graph has other tensors, so that TFLM refuses the file; for a file without a plan, Vela writes its own. All operators
# are left to the CPU here, so that stock TFLM can run both.
# Versions: ethos-u-vela 5.2.0, ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: two CONV_2D of int8, with a plan and without, and a constant that nothing reads and Vela drops
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for each in litert vela; do python3 -m venv "$folder/$each"; done
install="-m pip install --quiet --disable-pip-version-check"
# shellcheck disable=SC2086
"$folder/litert/bin/python" $install ai-edge-litert==2.3.0 tflite-micro==0.dev20261023182759
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


def model(tensors, inputs, outputs, operators, constants=(), names=()):
    """operators: (builtin, version, inputs, outputs, options type, options); constant k is buffer k + 1; names: of metadata, by buffer."""
    m, g = s.ModelT(), s.SubGraphT()
    m.version, m.subgraphs, m.operatorCodes, m.buffers = 3, [g], [], [s.BufferT()]
    for each in constants:
        b = s.BufferT()
        b.data = np.frombuffer(np.ascontiguousarray(each).tobytes(), np.uint8)
        m.buffers.append(b)
    g.tensors, g.inputs, g.outputs, g.operators = tensors, inputs, outputs, []
    for name, buffer in dict(names).items():
        entry = s.MetadataT()
        entry.name, entry.buffer = name, buffer
        m.metadata = [*(m.metadata or []), entry]
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


def made(is_planned):
    tensors = [tensor("x", (1, 8, 8, 4), s.TensorType.INT8, scale=0.05),
               tensor("w", (4, 1, 1, 4), s.TensorType.INT8, 1, scale=[0.01] * 4),
               tensor("b", (4,), s.TensorType.INT32, 2, scale=[0.0005] * 4),
               tensor("y", (1, 8, 8, 4), s.TensorType.INT8, scale=0.1),
               tensor("z", (1, 8, 8, 4), s.TensorType.INT8, scale=0.1)]
    tensors.append(tensor("unread", (4,), s.TensorType.INT32, 2, scale=[0.0005] * 4))
    options = s.Conv2DOptionsT()
    options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
    kind = s.BuiltinOptions.Conv2DOptions
    operators = [(s.BuiltinOperator.CONV_2D, 3, [0, 1, 2], [3], kind, options),
                 (s.BuiltinOperator.CONV_2D, 3, [3, 1, 2], [4], kind, options)]
    constants = [np.random.default_rng(0).integers(-100, 100, (4, 1, 1, 4)).astype(np.int8), np.zeros(4, np.int32)]
    plan = np.asarray([1, 1, 6, 0, -1, -1, 256, 512, -1], np.int32)
    names = {"OfflineMemoryAllocation": 3} if is_planned else {}
    return model(tensors, [0], [4], operators, [*constants, plan], names)


for name in ("plain", "planned"):
    with open(f"{sys.argv[1]}/{name}.tflite", "wb") as file:
        file.write(made(name == "planned"))
PYTHON
cat > "$folder/run.py" << 'PYTHON'
import sys

import numpy as np
from ai_edge_litert import schema_py_generated as s
from tflite_micro import runtime

with open(sys.argv[1], "rb") as file:
    data = file.read()
root = s.ModelT.InitFromObj(s.Model.GetRootAsModel(data, 0))
for each in root.metadata or []:
    if each.name == b"OfflineMemoryAllocation":
        print("a plan of", np.frombuffer(bytes(root.buffers[each.buffer].data), np.int32)[2], "tensors", end=", ")
print(len(root.subgraphs[0].tensors), "tensors", end=": ")
try:
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    interpreter.set_input(np.ones((1, 8, 8, 4), np.int8), 0)
    interpreter.invoke()
    print("TFLM runs")
except RuntimeError:
    print("TFLM refuses")
PYTHON
"$folder/litert/bin/python" -W ignore "$folder/make.py" "$folder"
told=""
for name in plain planned; do
    "$folder/vela/bin/vela" "$folder/$name.tflite" --accelerator-config ethos-u55-128 --ignore-ops CONV_2D \
        --output-dir "$folder/out" > /dev/null 2>&1
    for each in "$folder/$name.tflite" "$folder/out/${name}_vela.tflite"; do
        answer=$("$folder/litert/bin/python" -W ignore "$folder/run.py" "$each" 2> /dev/null | tail -1)
        echo "$(basename "$each"): $answer"
        told="$told ${answer##* }"
    done
done
[ "$told" = " runs runs runs refuses" ]
