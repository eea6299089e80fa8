#!/usr/bin/env bash
# Model Explorer, by way of MLIR, shows two calls beside each WHILE that the file does not have.
#
# The file has one operator in its main graph. The direct reader shows it alone, the one by way of MLIR with two
# func.call, and without the names of the WHILE's two outputs, by which values for it (custom node data) would be found.
# Versions: ai-edge-model-explorer-adapter 0.2.1, ai-edge-litert 2.3.0; seen on 2026-11-29.
# Source: a WHILE that counts to 5 and carries a second value
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ai-edge-model-explorer-adapter==0.2.1 \
    ai-edge-litert==2.3.0
"$folder/venv/bin/python" -W ignore - "$folder/loop.tflite" 2> "$folder/log" << 'PYTHON'
import json
import sys
from importlib.metadata import version

import ai_edge_model_explorer_adapter as adapter
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as s
from ai_edge_litert.interpreter import Interpreter

B, O = s.BuiltinOperator, s.BuiltinOptions


def tensor(name, kind, buffer=0):
    t = s.TensorT()
    t.name, t.shape, t.type, t.buffer = name, [1], kind, buffer
    return t


def graph(name, tensors, inputs, outputs, code, ins, outs, kind, options):
    g, op = s.SubGraphT(), s.OperatorT()
    op.opcodeIndex, op.inputs, op.outputs, op.builtinOptionsType, op.builtinOptions = code, ins, outs, kind, options
    g.name, g.tensors, g.inputs, g.outputs, g.operators = name, tensors, inputs, outputs, [op]
    return g


def made():
    m, loop = s.ModelT(), s.WhileOptionsT()
    loop.condSubgraphIndex, loop.bodySubgraphIndex = 1, 2
    m.version, m.operatorCodes, m.buffers = 3, [], [s.BufferT() for _ in range(3)]
    for builtin in (B.WHILE, B.LESS, B.ADD):
        code = s.OperatorCodeT()
        code.builtinCode, code.version = builtin, 1
        code.deprecatedBuiltinCode = min(builtin, 127)
        m.operatorCodes.append(code)
    for at, value in ((1, 5), (2, 1)):
        m.buffers[at].data = np.asarray([value], np.int32).view(np.uint8)
    i, truth = s.TensorType.INT32, s.TensorType.BOOL
    m.subgraphs = [
        graph("main", [tensor(each, i) for each in ("x", "a", "y", "b")], [0, 1], [2, 3], 0, [0, 1], [2, 3],
              O.WhileOptions, loop),
        graph("condition", [tensor("n", i), tensor("a", i), tensor("five", i, 1), tensor("more", truth)], [0, 1], [3],
              1, [0, 2], [3], O.LessOptions, s.LessOptionsT()),
        graph("body", [tensor("n", i), tensor("a", i), tensor("one", i, 2), tensor("next", i)], [0, 1], [3, 1],
              2, [0, 2], [3], O.AddOptions, s.AddOptionsT()),
    ]
    builder = flatbuffers.Builder(1024)
    builder.Finish(m.Pack(builder), b"TFL3")
    return bytes(builder.Output())


with open(sys.argv[1], "wb") as file:
    file.write(made())
runner = Interpreter(sys.argv[1])
runner.allocate_tensors()
for each in runner.get_input_details():
    runner.set_tensor(each["index"], np.zeros(1, np.int32))
runner.invoke()
print("LiteRT gives", *(int(runner.get_tensor(each["index"])[0]) for each in runner.get_output_details()))
print("ai-edge-model-explorer-adapter", version("ai-edge-model-explorer-adapter"))
shown = {}
for name in ("ConvertFlatbufferDirectlyToJson", "ConvertFlatbufferToJson"):
    found = json.loads(getattr(adapter, name)(adapter.VisualizeConfig(), sys.argv[1]))
    found = found if isinstance(found, list) else found["graphs"]
    main = next(g for each in found for g in each.get("subgraphs", [each]) if g["id"] == "main")
    loop = next(node for node in main["nodes"] if node["label"] == "while")
    attributes = [a for each in loop.get("outputsMetadata", []) for a in each["attrs"]]
    names = [a["value"] for a in attributes if a["key"] == "tensor_name"]
    shown[name] = (sum(node["label"] == "func.call" for node in main["nodes"]), names)
    print(name, [node["label"] for node in main["nodes"]], "the WHILE's outputs:", names)
sys.exit(shown != {"ConvertFlatbufferDirectlyToJson": (0, ["y", "b"]), "ConvertFlatbufferToJson": (2, [])})
PYTHON
