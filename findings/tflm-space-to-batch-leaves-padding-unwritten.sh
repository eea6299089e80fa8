#!/usr/bin/env bash
# TFLM's SPACE_TO_BATCH_ND leaves the padding of an int8 output as it finds it in the arena.
#
# LiteRT writes the zero point. A dilated convolution that is converted this way reads what another tensor left there.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759; seen on 2026-11-29.
# Source: SPACE_TO_BATCH_ND of int8 with padding, behind an operator that fills the arena
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
tensors = [tensor("x", (1, 2, 2, 1), s.TensorType.INT8, scale=0.1, zero=7),
           tensor("block", (2,), s.TensorType.INT32, 1), tensor("padding", (2, 2), s.TensorType.INT32, 2),
           tensor("y", (4, 2, 2, 1), s.TensorType.INT8, scale=0.1, zero=7)]
data = model(tensors, [0], [3], [(s.BuiltinOperator.SPACE_TO_BATCH_ND, 2, [0, 1, 2], [3], 0, None)],
             [np.asarray([2, 2], np.int32), np.asarray([[1, 1], [1, 1]], np.int32)])
sample = np.asarray([[[[20], [21]], [[22], [23]]]], np.int8)
right = [7, 7, 7, 23, 7, 7, 22, 7, 7, 21, 7, 7, 20, 7, 7, 7]
answers = [run(data, sample).ravel().tolist() for run in (litert, tflm)]
print("exact", right)
print("LiteRT", answers[0])
print("TFLM", answers[1])
is_copied = all(given == wanted for given, wanted in zip(answers[1], right) if wanted != 7)
sys.exit(not (answers[0] == right and answers[1] != right and is_copied))
PYTHON
