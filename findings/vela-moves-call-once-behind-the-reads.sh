#!/usr/bin/env bash
# Vela orders a model with variables so that READ_VARIABLE comes before the CALL_ONCE that gives it its first value.
#
# LiteRT then fails; TFLM runs, and the first run reads zeros. All operators are left to the CPU here.
# Versions: ethos-u-vela 5.2.0, ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a running sum in a variable of int8 that begins with 50
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
    m, g, init = s.ModelT(), s.SubGraphT(), s.SubGraphT()
    b, o = s.BuiltinOperator, s.BuiltinOptions
    m.version, m.subgraphs, m.buffers, m.operatorCodes = 3, [g, init], [s.BufferT(), s.BufferT()], []
    m.buffers[1].data = np.full(4, 50, np.int8).view(np.uint8)

    def op(builtin, number, ins, outs, kind=0, options=None):
        code, each = s.OperatorCodeT(), s.OperatorT()
        code.builtinCode, code.version = builtin, number
        code.deprecatedBuiltinCode = min(builtin, 127)
        each.opcodeIndex, each.inputs, each.outputs = len(m.operatorCodes), ins, outs
        each.builtinOptionsType, each.builtinOptions = kind, options
        m.operatorCodes.append(code)
        return each

    def handle():
        options = s.VarHandleOptionsT()
        options.container, options.sharedName = "", "total"
        return options

    once, add = s.CallOnceOptionsT(), s.AddOptionsT()
    once.initSubgraphIndex = 1
    g.tensors = [tensor("x", (1, 4), s.TensorType.INT8, scale=1), tensor("handle", (), s.TensorType.RESOURCE),
                 tensor("before", (1, 4), s.TensorType.INT8, scale=1), tensor("after", (1, 4), s.TensorType.INT8, scale=1)]
    g.inputs, g.outputs = [0], [3]
    g.operators = [op(b.CALL_ONCE, 1, [], [], o.CallOnceOptions, once),
                   op(b.VAR_HANDLE, 1, [], [1], o.VarHandleOptions, handle()),
                   op(b.READ_VARIABLE, 1, [1], [2], o.ReadVariableOptions, s.ReadVariableOptionsT()),
                   op(b.ADD, 2, [0, 2], [3], o.AddOptions, add),
                   op(b.ASSIGN_VARIABLE, 1, [1, 3], [], o.AssignVariableOptions, s.AssignVariableOptionsT())]
    init.tensors = [tensor("handle", (), s.TensorType.RESOURCE), tensor("first", (1, 4), s.TensorType.INT8, 1, scale=1)]
    init.inputs, init.outputs = [], []
    init.operators = [op(b.VAR_HANDLE, 1, [], [0], o.VarHandleOptions, handle()),
                      op(b.ASSIGN_VARIABLE, 1, [0, 1], [], o.AssignVariableOptions, s.AssignVariableOptionsT())]
    builder = flatbuffers.Builder(1024)
    builder.Finish(m.Pack(builder), b"TFL3")
    return bytes(builder.Output())


with open(f"{sys.argv[1]}/sum.tflite", "wb") as file:
    file.write(made())
PYTHON
cat > "$folder/run.py" << 'PYTHON'
import sys

import numpy as np
from ai_edge_litert import schema_py_generated as s
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro import runtime

with open(sys.argv[1], "rb") as file:
    data = file.read()
root = s.ModelT.InitFromObj(s.Model.GetRootAsModel(data, 0))
names = {code: name for name, code in vars(s.BuiltinOperator).items()}
print(*(names[root.operatorCodes[each.opcodeIndex].builtinCode] for each in root.subgraphs[0].operators), end=": ")
ones, told = np.ones((1, 4), np.int8), []
try:
    one = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    one.allocate_tensors()
    for _ in range(2):
        one.set_tensor(one.get_input_details()[0]["index"], ones)
        one.invoke()
        told.append(int(one.get_tensor(one.get_output_details()[0]["index"]).ravel()[0]))
except RuntimeError:
    told.append("fails")
other = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
for _ in range(2):
    other.set_input(ones, 0)
    other.invoke()
    told.append(int(other.get_output(0).ravel()[0]))
print("sums", *told)
PYTHON
"$folder/litert/bin/python" -W ignore "$folder/make.py" "$folder"
"$folder/vela/bin/vela" "$folder/sum.tflite" --accelerator-config ethos-u55-128 --output-dir "$folder/out" \
    --ignore-ops CALL_ONCE,VAR_HANDLE,READ_VARIABLE,ASSIGN_VARIABLE,ADD > /dev/null 2>&1
told=""
for each in "$folder/sum.tflite" "$folder/out/sum_vela.tflite"; do
    answer=$("$folder/litert/bin/python" -W ignore "$folder/run.py" "$each" 2> /dev/null | tail -1)
    echo "$answer"
    told="$told ${answer##*sums}"
done
[ "$told" = "  51 52 51 52  fails 1 51" ]
