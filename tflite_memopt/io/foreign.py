"""Files that people give in place of a .tflite model: what they are, by their first bytes, and how to convert them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from ..errors import UsageError

_CONVERTER = "convert it with tf.lite.TFLiteConverter"
_KERAS = f"a Keras model (.keras): {_CONVERTER}.from_keras_model"
_HDF5 = f"an HDF5 file (.h5), as Keras writes its models: load it with Keras and {_CONVERTER}.from_keras_model"
_SAVED_MODEL = f"a TensorFlow SavedModel: {_CONVERTER}.from_saved_model"
_ONNX = "an ONNX model: convert it, for example with onnx2tf"
_PYTORCH = "a PyTorch file: convert the model, for example with litert-torch"
_SOURCE = "C source text: give the .tflite file that it was made of"
_STARTS = {
    b"\x89HDF\r\n\x1a\n": _HDF5,
    b"\x1f\x8b": "a file packed by gzip: unpack it first",
    b"\x08\x01\x12": _SAVED_MODEL,
    b"\x80\x02": _PYTORCH,
}
_ZIP = b"PK\x03\x04"
_BY_MEMBER = {
    "model.weights.h5": _KERAS,
    "config.json": _KERAS,
    "data.pkl": _PYTORCH,
    "saved_model.pb": f"a packed {_SAVED_MODEL.removeprefix('a ')}",
}
"""By the name of a file within an archive, whatever its folder."""
_ONNX_FIELDS = frozenset(b"\x12\x1a\x22\x2a\x32\x3a\x42")
"""What may follow the version with which an ONNX file begins: tags of its other fields."""
_NEWEST_ONNX = 32
_TEXT = (b"#include", b"#ifndef", b"#pragma", b"//", b"/*", b"unsigned char", b"const ", b"alignas")


def foreign_format(data: bytes) -> str | None:
    """What a file is that is no .tflite model, and what to do with it; None where its first bytes do not say."""
    if data.startswith(_ZIP):
        return _in_archive(data)
    if data.lstrip().startswith(_TEXT):
        return _SOURCE
    if len(data) > 2 and data[0] == 8 and 3 <= data[1] <= _NEWEST_ONNX and data[2] in _ONNX_FIELDS:
        return _ONNX
    return next((said for start, said in _STARTS.items() if data.startswith(start)), None)


def refuse_folder(path: Path) -> None:
    """Raise UsageError for a folder, with what it is if it holds a SavedModel."""
    if not path.is_dir():
        return
    if (path / "saved_model.pb").exists():
        raise UsageError(f"'{path}' is {_SAVED_MODEL}")
    raise UsageError(f"'{path}' is a folder; give a .tflite file")


def _in_archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        members = []
    names = {member.rpartition("/")[2] for member in members}
    known = next((said for name, said in _BY_MEMBER.items() if name in names), None)
    return known or "a zip archive: unpack it, and give the .tflite file in it"
