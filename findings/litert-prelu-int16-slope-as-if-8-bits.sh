#!/usr/bin/env bash
# LiteRT runs PRELU of int16 and returns nearly zero for negative inputs; TFLM refuses the file.
#
# No error and no warning: with a slope of 0.5, -20 becomes -0.02. The same operator in int8 is right on both.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: a lone PRELU of int16 and of int8 with a slope of 0.5, against real numbers
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


def litert(data, *samples):
    runner = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
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
def off_by(run, kind, numbers, scale):
    tensors = [tensor("x", (1, 4), kind, scale=scale), tensor("slope", (4,), kind, 1, scale=scale),
               tensor("y", (1, 4), kind, scale=scale)]
    slope = np.full(4, round(0.5 / scale), numbers)
    data = model(tensors, [0], [2], [(s.BuiltinOperator.PRELU, 1, [0, 1], [2], 0, None)], [slope])
    sample = np.asarray([[-2, -1.5, 0, 1.5]]) / scale
    try:
        got = run(data, np.rint(sample).astype(numbers))
    except RuntimeError:
        return "refused"
    return float(np.round(abs(got * scale - np.where(sample < 0, 0.5, 1) * sample * scale).max(), 2))


told = {(name, kind): off_by(run, getattr(s.TensorType, kind), numbers, scale)
        for name, run in (("LiteRT", litert), ("TFLM", tflm))
        for kind, numbers, scale in (("INT8", np.int8, 1 / 50), ("INT16", np.int16, 1 / 5000))}
for (name, kind), off in told.items():
    print(name, kind, "refused" if off == "refused" else f"off by {off} of 2")
is_right = all(isinstance(told[name, "INT8"], float) and told[name, "INT8"] < 0.05 for name in ("LiteRT", "TFLM"))
sys.exit(not (is_right and told["LiteRT", "INT16"] > 0.5 and told["TFLM", "INT16"] == "refused"))
PYTHON
