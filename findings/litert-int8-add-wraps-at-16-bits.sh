#!/usr/bin/env bash
# Behavior: LiteRT's default int8 ADD takes the sum, in steps of the output, for a number of 16 bits: where the output's
#   scale is so small that the sum needs more, it wraps around before it is clamped. The reference kernels clamp.
# Versions: ai-edge-litert 2.3.0, numpy 2.2.6, flatbuffers 25.9.23, Python 3.11 on x86-64 Linux, without delegates.
# Date: 2026-11-29.
# Source: random networks, every tensor of which was held against an interval that interval arithmetic derives; read then
#   in LiteRT's optimized ADD of integers, which narrows its vectors to 16 bits.
# Exits with 1 if both sorts of kernels have come to agree, or the values have changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ai-edge-litert==2.3.0 numpy==2.2.6 flatbuffers==25.9.23

cat > "$folder/add.py" <<'PYTHON'
"""Add a tensor of negative numbers to itself: the output can hold none of them, and clamps to its least value."""
from importlib.metadata import version

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

SHAPE = [1, 64]


def tensor(name, scale, zero_point):
    made = schema.TensorT()
    made.name, made.shape, made.type, made.buffer = name, SHAPE, schema.TensorType.INT8, 0
    made.quantization = schema.QuantizationParametersT()
    made.quantization.scale, made.quantization.zeroPoint = [scale], [zero_point]
    return made


def model():
    code, graph, operator, whole = schema.OperatorCodeT(), schema.SubGraphT(), schema.OperatorT(), schema.ModelT()
    code.builtinCode, code.deprecatedBuiltinCode = schema.BuiltinOperator.ADD, schema.BuiltinOperator.ADD
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0, 0], [1]
    operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.AddOptions, schema.AddOptionsT()
    graph.tensors = [tensor("x", 0.014, 127), tensor("y", 3e-5, -128)]
    graph.inputs, graph.outputs, graph.operators = [0], [1], [operator]
    whole.version, whole.operatorCodes, whole.subgraphs, whole.buffers = 3, [code], [graph], [schema.BufferT()]
    builder = flatbuffers.Builder(1024)
    builder.Finish(whole.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def run(kernels):
    interpreter = Interpreter(model_content=model(), experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(-128, 128, 4, dtype=np.int8).reshape(SHAPE))
    interpreter.invoke()
    return interpreter.get_tensor(1).ravel()


print("ai-edge-litert", version("ai-edge-litert"), "numpy", version("numpy"))
reference, default = run(OpResolverType.BUILTIN_REF), run(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
print("reference kernels:", reference.min(), "to", reference.max())
print("default kernels:  ", default.min(), "to", default.max(), "- other values at", int((reference != default).sum()), "of 64")
raise SystemExit(0 if set(reference.tolist()) == {-128} and default.max() == 127 else 1)
PYTHON
"$folder/venv/bin/python" "$folder/add.py" 2> "$folder/log" || { cat "$folder/log" >&2; exit 1; }
