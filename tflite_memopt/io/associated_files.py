"""Associated files: the zip archive that tflite-support appends to a model (label lists, vocabularies)."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib

from ..errors import ModelFormatError
from ..ir.model import AssociatedFile

# A local file header: signature, version needed, flags, method (stored or deflated), any time, then sizes.
_LOCAL_HEADER = re.compile(rb"PK\x03\x04[\x0a-\x3f]\x00..[\x00\x08]\x00", re.DOTALL)
# What zipfile raises on a damaged archive, besides BadZipFile; NotImplementedError is a RuntimeError.
_DAMAGE = (zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError, MemoryError)
_UNREADABLE = "the associated files behind the model cannot be read"


def split(data: bytes) -> tuple[bytes, tuple[AssociatedFile, ...]]:
    """Part a file into the flatbuffer's bytes and the associated files behind it.

    Raises ModelFormatError when an archive begins but does not end, as in a truncated file.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        _refuse_cut_archive(data)
        return data, ()
    except _DAMAGE as error:
        raise ModelFormatError(f"{_UNREADABLE}: {error}") from error
    with archive:
        try:
            files = tuple(_file(archive, info) for info in archive.infolist())
        except (zipfile.BadZipFile, *_DAMAGE) as error:
            raise ModelFormatError(f"{_UNREADABLE}: {error}") from error
        start = min((info.header_offset for info in archive.infolist()), default=archive.start_dir)
    return data[:start], files


def append(model: bytes, files: tuple[AssociatedFile, ...]) -> bytes:
    """Append associated files to a flatbuffer in the way that tflite-support reads."""
    if not files:
        return model
    stream = io.BytesIO(model)
    stream.seek(0, io.SEEK_END)
    with zipfile.ZipFile(stream, "a") as archive:
        for file in files:
            info = zipfile.ZipInfo(file.name, file.date_time)
            info.compress_type = zipfile.ZIP_DEFLATED if file.compressed else zipfile.ZIP_STORED
            archive.writestr(info, file.data)
    return stream.getvalue()


def _file(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> AssociatedFile:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(f"'{info.filename}' is compressed by method {info.compress_type}")
    compressed = info.compress_type != zipfile.ZIP_STORED
    return AssociatedFile(info.filename, archive.read(info), info.date_time, compressed)


def _refuse_cut_archive(data: bytes) -> None:
    found = _LOCAL_HEADER.search(data)
    if found:
        raise ModelFormatError(
            f"associated files begin at byte {found.start()} but their directory is missing: "
            "the file is truncated; fetch it again"
        )
