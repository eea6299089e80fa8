"""The archive behind a model: kept whole, or refused when damaged."""

from __future__ import annotations

import io
import zipfile

import pytest

from tests.faults import raises
from tests.models import dense_model
from tflite_memopt.errors import ErrorKind, ModelFormatError, UnsupportedModelError
from tflite_memopt.model.io import associated_files
from tflite_memopt.model.io.associated_files import append
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import AssociatedFile

MODEL = write_model(dense_model())
STORED = AssociatedFile("labels.txt", b"cat\ndog\n", (2024, 2, 29, 13, 30, 58))
DEFLATED = AssociatedFile("vocabulary/words.txt", b"the same word again " * 50, compressed=True)
UNICODE = AssociatedFile("libell\u00e9s.txt", b"")


def split(data: bytes) -> tuple[bytes, tuple[AssociatedFile, ...]]:
    """The two parts of a file whose buffers end somewhere in the model."""
    return associated_files.split(data, lambda: 0)


@pytest.mark.parametrize(
    "files", [(STORED,), (DEFLATED,), (STORED, DEFLATED, UNICODE)], ids=["stored", "deflated", "both"]
)
def test_files_and_model_come_back_unchanged(files: tuple[AssociatedFile, ...]) -> None:
    assert split(append(MODEL, files)) == (MODEL, files)


def test_other_readers_see_the_archive_and_its_methods() -> None:
    with zipfile.ZipFile(io.BytesIO(append(MODEL, (STORED, DEFLATED)))) as archive:
        methods = {info.filename: info.compress_type for info in archive.infolist()}
        assert archive.testzip() is None
    assert methods == {STORED.name: zipfile.ZIP_STORED, DEFLATED.name: zipfile.ZIP_DEFLATED}


def test_a_model_without_files_has_nothing_appended() -> None:
    assert append(MODEL, ()) == MODEL
    assert split(MODEL) == (MODEL, ())


def test_files_travel_with_the_model() -> None:
    data = append(MODEL, (STORED, DEFLATED))
    model = read_model(data)
    assert model.associated_files == (STORED, DEFLATED)
    assert read_model(write_model(model)).associated_files == (STORED, DEFLATED)
    assert len(write_model(model)) == len(data)


@pytest.mark.parametrize("file", [STORED, DEFLATED], ids=["stored", "deflated"])
def test_an_archive_cut_anywhere_is_refused(file: AssociatedFile) -> None:
    data = append(MODEL, (file,))
    header = 30  # bytes of a local file header; a shorter rest is no archive yet, only a torn file
    for length in range(len(MODEL) + header, len(data)):
        with raises(ModelFormatError, ErrorKind.DAMAGED):
            read_model(data[:length])


def test_files_out_of_all_proportion_are_refused_before_they_are_unpacked() -> None:
    """A hundred megabytes of zeros are a hundred kilobytes in the file."""
    stream = io.BytesIO(MODEL)
    stream.seek(0, io.SEEK_END)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("labels.txt", "w") as member:
        for _ in range(100):
            member.write(bytes(1 << 20))
    with raises(UnsupportedModelError, ErrorKind.TOO_LARGE, "104,857,600"):
        split(stream.getvalue())


def test_a_damaged_entry_is_refused() -> None:
    for file in (STORED, DEFLATED):
        data = bytearray(append(MODEL, (file,)))
        start = len(MODEL) + 30 + len(file.name)
        for position in range(start, start + 4):
            damaged = data.copy()
            damaged[position] ^= 0xFF
            with raises(ModelFormatError, ErrorKind.DAMAGED):
                split(bytes(damaged))


def test_a_name_that_is_not_text_is_refused() -> None:
    data = append(MODEL, (UNICODE,))
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        split(data.replace(UNICODE.name.encode(), b"\xff" * len(UNICODE.name.encode())))
