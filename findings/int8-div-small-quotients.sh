#!/usr/bin/env bash
# DIV of int8 gives values far from zero for quotients near zero, on LiteRT and TFLM.
#
# MultiplyByQuantizedMultiplierSmallerThanOneExp shifts right by more than 31 bits where the output's scale is coarse
# (here all three are 0.05), which C++ leaves undefined: on x86-64 results are off by up to the whole range. Cores of Arm
# give zero for such shifts, by reading, and were not run.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: kernels/internal/reference/div.h, DivElementwise; every pair of int8 against real numbers
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
top, bottom = np.arange(-128, 128), np.asarray([each for each in range(-128, 128) if each != -3])
a, b = (np.broadcast_to(each, (256, 255)).astype(np.int8) for each in (top[:, None], bottom[None]))
off = {}
for scale in (0.01, 0.05, 0.5):
    tensors = [tensor("a", a.shape, s.TensorType.INT8, scale=0.05, zero=-3),
               tensor("b", b.shape, s.TensorType.INT8, scale=0.05, zero=-3),
               tensor("y", a.shape, s.TensorType.INT8, scale=scale, zero=-3)]
    data = model(tensors, [0, 1], [2], [(s.BuiltinOperator.DIV, 2, [0, 1], [2], s.BuiltinOptions.DivOptions, s.DivOptionsT())])
    right = np.clip((a.astype(float) + 3) / (b.astype(float) + 3) / scale - 3, -128, 127)
    one = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    one.allocate_tensors()
    other = runtime.Interpreter.from_bytes(data, arena_size=1 << 20)
    for detail, number, values in zip(one.get_input_details(), (0, 1), (a, b)):
        one.set_tensor(detail["index"], values)
        other.set_input(values, number)
    one.invoke()
    other.invoke()
    for name, made in (("LiteRT", one.get_tensor(one.get_output_details()[0]["index"])), ("TFLM", other.get_output(0))):
        gap = abs(made - right)
        off[name, scale] = gap.max()
        print(f"output scale {scale}: {name} has {int((gap > 1).sum()):,} of {gap.size:,} quotients wrong, by up to {gap.max():.0f} steps")
is_wrong = all(off[name, scale] > 100 for name in ("LiteRT", "TFLM") for scale in (0.05, 0.5))
sys.exit(not (is_wrong and all(off[name, 0.01] <= 1 for name in ("LiteRT", "TFLM"))))
PYTHON
