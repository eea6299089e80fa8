"""What people give in place of a .tflite model is called what it is, with the file's name."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

import tflite_memopt
from tests.command import run
from tests.faults import raises
from tests.models import dense_model
from tflite_memopt import ModelFormatError, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.associated_files import append
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import AssociatedFile

DENSE = write_model(dense_model())


def archive(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as written:
        for name in names:
            written.writestr(name, b"content")
    return stream.getvalue()


FILES = {
    "keras": (archive("metadata.json", "config.json", "model.weights.h5"), "a Keras model (.keras)"),
    "h5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "an HDF5 file (.h5)"),
    "pytorch": (archive("net/data.pkl", "net/version"), "a PyTorch file"),
    "pickle": (b"\x80\x02}q\x00.", "a PyTorch file"),
    "saved_model": (b"\x08\x01\x12\x80\x20" + bytes(100), "a TensorFlow SavedModel"),
    "packed_saved_model": (archive("net/saved_model.pb"), "a packed TensorFlow SavedModel"),
    "onnx": (b"\x08\x08\x12\x07pytorch" + bytes(100), "an ONNX model"),
    "zip": (archive("model.tflite"), "a zip archive: unpack it"),
    "cut_zip": (archive("model.tflite")[:60], "a zip archive: unpack it"),
    "gzip": (gzip.compress(DENSE), "a gzip archive"),
    "source": (b"unsigned char model_tflite[] = {0x1c, 0x00};\n", "C source text"),
    "source_of_tinymlgen": (b"\n#ifdef __has_attribute\n#define HAVE_ATTRIBUTE(x) 0\n", "C source text"),
    "static_source": (b"static const unsigned char model[] = {0x1c, 0x00};\n", "C source text"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_format_is_called_what_it_is(name: str) -> None:
    data, said = FILES[name]
    with raises(ModelFormatError, ErrorKind.FORMAT, said):
        read_model(data)


def test_a_model_with_files_behind_it_is_still_a_model() -> None:
    assert read_model(append(DENSE, (AssociatedFile("config.json", b"{}"),))).associated_files


@pytest.mark.parametrize("command", ["analyze", "optimize", "verify", "compare", "codegen", "explore"])
def test_errors_name_the_file(command: str, tmp_path: Path) -> None:
    good, wrong = tmp_path / "good.tflite", tmp_path / "net.keras"
    good.write_bytes(DENSE)
    wrong.write_bytes(FILES["keras"][0])
    output = ("-o", tmp_path / "output") if command in ("optimize", "codegen") else ()
    sources = (good, wrong) if command == "verify" else (wrong,)
    done = run(command, *sources, *output)
    assert done.returncode == 2
    assert done.stderr.startswith("tflite-memopt: 'net.keras': not a .tflite model but a Keras model (.keras): convert")
    assert done.stderr.count("\n") == 1


def test_a_folder_is_called_one(tmp_path: Path) -> None:
    with raises(UsageError, ErrorKind.NOT_A_FILE, str(tmp_path)):
        tflite_memopt.analyze(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with raises(UsageError, ErrorKind.NOT_A_FILE, "SavedModel"):
        tflite_memopt.analyze(tmp_path)
