#!/usr/bin/env bash
# Behavior: a FULLY_CONNECTED of int8 whose weights have a scale per channel, as TensorFlow writes it, runs on older
#   TensorFlow Lite Micro with the first scale for all channels, without an error; then it was refused; now it is right.
# Versions: tflite-micro 0.dev20240524170235 (first scale), 0.dev20240529040542 (refuses), 0.dev20241025232721 (right);
#   numpy 1.26.4, flatbuffers 24.3.25, tflite 2.18.0, Python 3.11 on x86-64 Linux.
# Date: 2026-11-29.
# Source: the history of tflite-micro, fully_connected_common.cc: commit 71fba59b5 of 2024-05-29 refuses, commit
#   47b545074 of 2024-09-27 adds the kernel. Arduino's TFLM library (2023), Edge Impulse's SDK (2023), and the kernels of
#   esp-tflite-micro up to 1.3.3 are older or take one scale as well.
# Exits with 1 if one of the three answers has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
pip="$folder/venv/bin/pip install --quiet --disable-pip-version-check --no-deps"
$pip numpy==1.26.4 flatbuffers==24.3.25 tflite==2.18.0 wrapt==1.16.0 bitarray==2.9.2
# tflite-micro imports two modules of TensorFlow, which are not needed to run a model in memory.
mkdir -p "$folder/stand_in/tensorflow/python/util" "$folder/stand_in/tensorflow/python/platform"
touch "$folder/stand_in/tensorflow/python/platform/gfile.py"
printf 'def remove_undocumented(*_):\n    pass\n' > "$folder/stand_in/tensorflow/python/util/all_util.py"

cat > "$folder/dense.py" <<'PYTHON'
"""Run one dense layer of four channels, all weights 10, scales 1/8, 1/16, 1/32, 1/4: of 8 ones 10, 5, 2.5, and 20."""
import flatbuffers
import numpy as np
import tflite
from tflite_micro import runtime

b = flatbuffers.Builder(1024)


def vector(start, items, prepend):
    start(b, len(items))
    for item in reversed(items):
        prepend(item)
    return b.EndVector()


def quantization(scales):
    scale = vector(tflite.QuantizationParametersStartScaleVector, scales, b.PrependFloat32)
    zero = vector(tflite.QuantizationParametersStartZeroPointVector, [0] * len(scales), b.PrependInt64)
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddScale(b, scale)
    tflite.QuantizationParametersAddZeroPoint(b, zero)
    return tflite.QuantizationParametersEnd(b)


def tensor(name, shape, dtype, buffer, scales):
    name, shape = b.CreateString(name), vector(tflite.TensorStartShapeVector, shape, b.PrependInt32)
    scales = quantization(scales)
    tflite.TensorStart(b)
    tflite.TensorAddName(b, name)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, dtype)
    tflite.TensorAddBuffer(b, buffer)
    tflite.TensorAddQuantization(b, scales)
    return tflite.TensorEnd(b)


def buffer(array=None):
    data = None if array is None else b.CreateNumpyVector(array.view(np.uint8).reshape(-1))
    tflite.BufferStart(b)
    if data is not None:
        tflite.BufferAddData(b, data)
    return tflite.BufferEnd(b)


INT8, INT32, SCALES = tflite.TensorType.INT8, tflite.TensorType.INT32, [1 / 8, 1 / 16, 1 / 32, 1 / 4]
buffers = [buffer(), buffer(np.full((4, 8), 10, np.int8)), buffer(np.zeros(4, np.int32))]
tensors = [
    tensor("x", (1, 8), INT8, 0, [1.0]),
    tensor("weights", (4, 8), INT8, 1, SCALES),
    tensor("bias", (4,), INT32, 2, SCALES),
    tensor("y", (1, 4), INT8, 0, [1.0]),
]
tflite.FullyConnectedOptionsStart(b)
options = tflite.FullyConnectedOptionsEnd(b)
inputs = vector(tflite.OperatorStartInputsVector, (0, 1, 2), b.PrependInt32)
outputs = vector(tflite.OperatorStartOutputsVector, (3,), b.PrependInt32)
tflite.OperatorStart(b)
tflite.OperatorAddInputs(b, inputs)
tflite.OperatorAddOutputs(b, outputs)
tflite.OperatorAddBuiltinOptionsType(b, tflite.BuiltinOptions.FullyConnectedOptions)
tflite.OperatorAddBuiltinOptions(b, options)
operator = tflite.OperatorEnd(b)
tensors = vector(tflite.SubGraphStartTensorsVector, tensors, b.PrependUOffsetTRelative)
operators = vector(tflite.SubGraphStartOperatorsVector, [operator], b.PrependUOffsetTRelative)
inputs = vector(tflite.SubGraphStartInputsVector, (0,), b.PrependInt32)
outputs = vector(tflite.SubGraphStartOutputsVector, (3,), b.PrependInt32)
tflite.SubGraphStart(b)
tflite.SubGraphAddTensors(b, tensors)
tflite.SubGraphAddInputs(b, inputs)
tflite.SubGraphAddOutputs(b, outputs)
tflite.SubGraphAddOperators(b, operators)
graph = tflite.SubGraphEnd(b)
tflite.OperatorCodeStart(b)
tflite.OperatorCodeAddBuiltinCode(b, tflite.BuiltinOperator.FULLY_CONNECTED)
tflite.OperatorCodeAddDeprecatedBuiltinCode(b, tflite.BuiltinOperator.FULLY_CONNECTED)
tflite.OperatorCodeAddVersion(b, 5)
code = tflite.OperatorCodeEnd(b)
graphs = vector(tflite.ModelStartSubgraphsVector, [graph], b.PrependUOffsetTRelative)
codes = vector(tflite.ModelStartOperatorCodesVector, [code], b.PrependUOffsetTRelative)
buffers = vector(tflite.ModelStartBuffersVector, buffers, b.PrependUOffsetTRelative)
tflite.ModelStart(b)
tflite.ModelAddVersion(b, 3)
tflite.ModelAddOperatorCodes(b, codes)
tflite.ModelAddSubgraphs(b, graphs)
tflite.ModelAddBuffers(b, buffers)
b.Finish(tflite.ModelEnd(b), b"TFL3")

try:
    interpreter = runtime.Interpreter.from_bytes(bytes(b.Output()), arena_size=1 << 16)
    interpreter.set_input(np.ones((1, 8), np.int8), 0)
    interpreter.invoke()
    print(*interpreter.get_output(0).ravel())
except RuntimeError:
    print("refused")
PYTHON

same=0
check() { # version, expected
    $pip --target "$folder/$1" "tflite-micro==$1"
    answer=$(PYTHONPATH="$folder/$1:$folder/stand_in" "$folder/venv/bin/python" "$folder/dense.py" 2> /dev/null | tail -1)
    echo "tflite-micro $1: $answer"
    [ "$answer" = "$2" ] || same=1
}
check 0.dev20240524170235 "10 10 10 10"
check 0.dev20240529040542 "refused"
check 0.dev20241025232721 "10 5 3 20"
exit $same
