#!/usr/bin/env bash
# The metadata populator of tflite-support moves constants off the multiples of 16 at which they were.
#
# The schema asks for 16 (force_align). The populator packs the whole file again with Python, which keeps 4 at most.
# Versions: tflite-support 0.4.4 (wheels for Python 3.8 to 3.11), ai-edge-litert 2.3.0; seen on 2026-11-29.
# Source: eight constants of int8 at multiples of 16, and metadata that holds a name alone
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for each in litert support; do python3 -m venv "$folder/$each"; done
install="-m pip install --quiet --disable-pip-version-check"
# shellcheck disable=SC2086
"$folder/litert/bin/python" $install ai-edge-litert==2.3.0
# shellcheck disable=SC2086
"$folder/support/bin/python" $install --no-deps tflite-support==0.4.4 flatbuffers==25.12.19 "numpy<2" pybind11 \
    libusb-package==1.0.26.3 importlib-resources
cat > "$folder/make.py" << 'PYTHON'
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as s


def packed(self, builder):
    """As BufferT.Pack does, but with the data at a multiple of 16."""
    data = None
    if self.data is not None:
        builder.StartVector(1, len(self.data), 16)
        builder.head -= len(self.data)
        builder.Bytes[builder.head : builder.head + len(self.data)] = bytes(self.data)
        data = builder.EndVector()
    s.BufferStart(builder)
    if data is not None:
        s.BufferAddData(builder, data)
    return s.BufferEnd(builder)


s.BufferT.Pack = packed


def tensor(name, buffer=0):
    t = s.TensorT()
    t.name, t.shape, t.type, t.buffer = name, [1, 20], s.TensorType.INT8, buffer
    t.quantization = s.QuantizationParametersT()
    t.quantization.scale, t.quantization.zeroPoint = [1.0], [0]
    return t


m, g, code = s.ModelT(), s.SubGraphT(), s.OperatorCodeT()
code.builtinCode, code.version = s.BuiltinOperator.ADD, 2
m.version, m.subgraphs, m.operatorCodes, m.buffers = 3, [g], [code], [s.BufferT()]
g.tensors, g.inputs, g.outputs, g.operators = [tensor("x")], [0], [], []
before = 0
for at in range(8):
    buffer, op = s.BufferT(), s.OperatorT()
    buffer.data = np.random.default_rng(at).integers(0, 9, 20).astype(np.uint8)
    m.buffers.append(buffer)
    g.tensors += [tensor(f"c{at}", len(m.buffers) - 1), tensor(f"y{at}")]
    op.opcodeIndex, op.inputs, op.outputs = 0, [before, len(g.tensors) - 2], [len(g.tensors) - 1]
    op.builtinOptionsType, op.builtinOptions = s.BuiltinOptions.AddOptions, s.AddOptionsT()
    g.operators.append(op)
    before = len(g.tensors) - 1
g.outputs = [before]
builder = flatbuffers.Builder(1024)
builder.Finish(m.Pack(builder), b"TFL3")
with open(sys.argv[1], "wb") as file:
    file.write(builder.Output())
PYTHON
cat > "$folder/populate.py" << 'PYTHON'
import ctypes
import sys

import libusb_package

ctypes.CDLL(str(libusb_package.get_library_path()), ctypes.RTLD_GLOBAL)
import flatbuffers
from tensorflow_lite_support.metadata import metadata_schema_py_generated as schema
from tensorflow_lite_support.metadata.python.metadata import MetadataPopulator

described = schema.ModelMetadataT()
described.name = "sums"
described.subgraphMetadata = [schema.SubGraphMetadataT()]
described.subgraphMetadata[0].inputTensorMetadata = [schema.TensorMetadataT()]
described.subgraphMetadata[0].outputTensorMetadata = [schema.TensorMetadataT()]
builder = flatbuffers.Builder(0)
builder.Finish(described.Pack(builder), MetadataPopulator.METADATA_FILE_IDENTIFIER)
populator = MetadataPopulator.with_model_file(sys.argv[1])
populator.load_metadata_buffer(bytes(builder.Output()))
populator.populate()
PYTHON
cat > "$folder/show.py" << 'PYTHON'
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

with open(sys.argv[1], "rb") as file:
    data = file.read()
places = [data.find(np.random.default_rng(at).integers(0, 9, 20).astype(np.uint8).tobytes()) for at in range(8)]
runner = Interpreter(model_content=data)
runner.allocate_tensors()
runner.set_tensor(runner.get_input_details()[0]["index"], np.zeros((1, 20), np.int8))
runner.invoke()
total = int(runner.get_tensor(runner.get_output_details()[0]["index"]).sum())
print(len(data), "bytes, constants beyond a multiple of 16 by", [each % 16 for each in places], "sum", total)
sys.exit(not any(each % 16 for each in places))
PYTHON
"$folder/litert/bin/python" -W ignore "$folder/make.py" "$folder/sums.tflite"
before=no after=no
"$folder/litert/bin/python" -W ignore "$folder/show.py" "$folder/sums.tflite" 2> "$folder/log" && before=off
"$folder/support/bin/python" -W ignore "$folder/populate.py" "$folder/sums.tflite" > "$folder/log" 2>&1
"$folder/litert/bin/python" -W ignore "$folder/show.py" "$folder/sums.tflite" 2> "$folder/log" && after=off
[ "$before $after" = "no off" ]
