"""Associated files: the zip archive that tflite-support appends to a model (label lists, vocabularies)."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable

from ...errors import ErrorKind, ModelFormatError, UnsupportedModelError
from ..ir.model import AssociatedFile, Bytes

# A local file header: signature, version needed, flags, method (stored or deflated), any time, then sizes.
_LOCAL_HEADER = re.compile(rb"PK\x03\x04[\x0a-\x3f]\x00..[\x00\x08]\x00", re.DOTALL)
# Exceptions of zipfile on a damaged archive, besides BadZipFile; NotImplementedError is a RuntimeError.
_DAMAGE = (zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError, MemoryError)
_END_SIGNATURE, _END_BYTES = b"PK\x05\x06", 22
"""The record that ends an archive; the last two bytes of it are the length of the comment behind it."""
_TELLING_BYTES = 64
"""Of an entry: its header, and some of its name and content."""
_LONGEST_END = _END_BYTES + (1 << 16)
_MOST_BYTES = 1 << 26
"""Of all files, unpacked: labels and vocabularies take far less, and a compressed one may claim anything."""
_UNREADABLE = "the associated files behind the model cannot be read"


def split(data: bytes, claimed: Callable[[], int]) -> tuple[bytes, tuple[AssociatedFile, ...]]:
    """Part a file into the model's bytes and the associated files behind it.

    Only an archive that ends where the file ends is one, and none that lies in what the model claims: ``claimed`` tells
    the end of its last buffer, and is asked only if there is an archive. Raises ModelFormatError when the archive is
    damaged, or begins in a buffer and ends behind it, UnsupportedModelError for files out of all proportion.
    """
    if not _ends_with_archive(data):
        return data, ()
    end = claimed()
    if end >= len(data):
        return data, ()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(sum(info.file_size for info in archive.infolist()))
            files = tuple(_file(archive, info) for info in archive.infolist())
            start = min((info.header_offset for info in archive.infolist()), default=archive.start_dir)
    except (zipfile.BadZipFile, *_DAMAGE) as error:
        raise ModelFormatError(f"{_UNREADABLE}: {error}", ErrorKind.DAMAGED) from error
    if start < end:
        raise ModelFormatError(f"{_UNREADABLE}: they begin at byte {start}, in a buffer", ErrorKind.DAMAGED)
    return data[:start], files


def _check_size(nbytes: int) -> None:
    if nbytes > _MOST_BYTES:
        raise UnsupportedModelError(
            f"the associated files behind the model take {nbytes:,} bytes; over {_MOST_BYTES:,} are not copied: "
            "remove them, and append them to the result",
            ErrorKind.TOO_LARGE,
        )


def refuse_cut_archive(data: bytes, buffers: Iterable[Bytes]) -> None:
    """Raise ModelFormatError when an archive begins outside all ``buffers`` of the model: its end is missing."""
    starts = (each.start() for each in _LOCAL_HEADER.finditer(data))
    start = next((at for at in starts if not _is_within(data[at : at + _TELLING_BYTES], buffers)), None)
    if start is not None:
        raise ModelFormatError(
            f"associated files begin at byte {start} but their directory is missing: "
            "the file is truncated; fetch it again",
            ErrorKind.DAMAGED,
        )


def _is_within(header: bytes, buffers: Iterable[Bytes]) -> bool:
    return any(header in buffer.tobytes() for buffer in buffers)


def _ends_with_archive(data: bytes) -> bool:
    """Tell whether the last record of an archive ends where the file ends, its comment included."""
    tail = data[-_LONGEST_END:]
    at = tail.rfind(_END_SIGNATURE)
    while at >= 0:
        if len(tail) - at >= _END_BYTES:
            comment = int.from_bytes(tail[at + _END_BYTES - 2 : at + _END_BYTES], "little")
            if at + _END_BYTES + comment == len(tail):
                return True
        at = tail.rfind(_END_SIGNATURE, 0, at)
    return False


def append(model: bytes, files: tuple[AssociatedFile, ...]) -> bytes:
    """Append associated files to a flatbuffer in the way that tflite-support reads."""
    if not files:
        return model
    stream = io.BytesIO(model)
    stream.seek(0, io.SEEK_END)
    # Mode "a" would take a zip within the model's last buffer for the archive, and write over the model.
    with zipfile.ZipFile(stream, "w") as archive:
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
