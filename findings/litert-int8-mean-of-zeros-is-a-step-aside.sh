#!/usr/bin/env bash
# Behavior: LiteRT's default int8 MEAN over rows and columns that it keeps rounds the input's zero point at the output's
#   scale on its own. So the mean of an image that is zero everywhere may be one step beside the output's zero point.
#   The reference kernels give the zero point.
# Versions: ai-edge-litert 2.3.0, numpy 2.2.6, flatbuffers 25.9.23, Python 3.11 on x86-64 Linux, without delegates.
# Date: 2026-11-29.
# Source: random networks, every tensor of which was held against an interval that interval arithmetic derives; read then
#   in LiteRT's optimized MEAN of integers.
# Exits with 1 if both sorts of kernels have come to agree.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ai-edge-litert==2.3.0 numpy==2.2.6 flatbuffers==25.9.23

cat > "$folder/mean.py" <<'PYTHON'
"""Average an image of zeros, for several pairs of quantizations."""
from importlib.metadata import version

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

PAIRS = (((0.05, 127), (0.05, 0)), ((0.060892664, 127), (0.012505314, 0)), ((0.007384893, -128), (0.013224885, 127)))
AXES = ([1, 2], [-3, -2])


def tensor(name, shape, dtype, buffer, quantized=None):
    made = schema.TensorT()
    made.name, made.shape, made.type, made.buffer = name, shape, dtype, buffer
    if quantized is not None:
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale, made.quantization.zeroPoint = [quantized[0]], [quantized[1]]
    return made


def model(one, other, along):
    code, graph, operator, whole = schema.OperatorCodeT(), schema.SubGraphT(), schema.OperatorT(), schema.ModelT()
    code.builtinCode, code.deprecatedBuiltinCode = schema.BuiltinOperator.MEAN, schema.BuiltinOperator.MEAN
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0, 1], [2]
    operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.ReducerOptions, schema.ReducerOptionsT()
    operator.builtinOptions.keepDims = True
    axes = schema.BufferT()
    axes.data = np.frombuffer(np.asarray(along, "<i4").tobytes(), np.uint8)
    graph.tensors = [
        tensor("x", [1, 3, 4, 2], schema.TensorType.INT8, 0, one),
        tensor("axes", [2], schema.TensorType.INT32, 1),
        tensor("y", [1, 1, 1, 2], schema.TensorType.INT8, 0, other),
    ]
    graph.inputs, graph.outputs, graph.operators = [0], [2], [operator]
    whole.version, whole.operatorCodes, whole.subgraphs = 3, [code], [graph]
    whole.buffers = [schema.BufferT(), axes]
    builder = flatbuffers.Builder(1024)
    builder.Finish(whole.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def run(kernels, one, other, along):
    interpreter = Interpreter(model_content=model(one, other, along), experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.full((1, 3, 4, 2), one[1], np.int8))
    interpreter.invoke()
    return int(interpreter.get_tensor(2).ravel()[0])


print("ai-edge-litert", version("ai-edge-litert"), "numpy", version("numpy"))
found = {}
for one, other in PAIRS:
    for along in AXES:
        kernels = (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        steps = [run(each, one, other, along) - other[1] for each in kernels]
        found[one, other, along[0]] = steps
        print(f"zeros at (scale, zero point) {one} to {other} along {along}: reference {steps[0]:+d}, default {steps[1]:+d} steps")
raise SystemExit(0 if all(not a for a, _ in found.values()) and any(b for _, b in found.values()) else 1)
PYTHON
"$folder/venv/bin/python" "$folder/mean.py" 2> "$folder/log" || { cat "$folder/log" >&2; exit 1; }
