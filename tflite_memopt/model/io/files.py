"""Files on disk: read with a clear message, write whole or not at all.

Files that people give in place of a .tflite model are recognized by their first bytes, with advice how to convert them.
"""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType

from ...errors import ErrorKind, OutputError, UsageError

Source = bytes | str | os.PathLike[str]
"""A model, or where it lies."""
_MOST_BYTES = 2**31 - 1


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Bytes of a file. Raises UsageError when it cannot be read, or is larger than any model for a microcontroller."""
    refuse_folder(Path(path))
    try:
        if Path(path).is_char_device() or Path(path).is_block_device():
            raise UsageError(f"'{os.fspath(path)}' is a device; give a .tflite file", ErrorKind.NOT_A_FILE)
        if Path(path).stat().st_size > _MOST_BYTES:
            raise UsageError(
                f"'{os.fspath(path)}' is over 2 GB: not a model for a microcontroller", ErrorKind.TOO_LARGE
            )
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{os.fspath(path)}': {error.strerror or error}", ErrorKind.NOT_A_FILE) from error


def load(source: Source) -> tuple[bytes, str | None]:
    """Return the bytes, and the name of the file that they come from. Raises as :func:`read_file`."""
    return (source, None) if isinstance(source, bytes) else (read_file(source), Path(source).name)


def check_target(path: Path, sources: tuple[Path, ...], force: bool) -> None:
    """Raise UsageError early when writing ``path`` would fail or destroy something.

    ``sources`` are the files being read; they and existing files are replaced only with ``force``.
    """
    shown = f"output '{path}'"
    if not path.parent.is_dir():
        raise UsageError(f"{shown}: the folder '{path.parent}' does not exist; create it first", ErrorKind.NOT_WRITABLE)
    if path.exists() and not path.is_file():
        raise UsageError(f"{shown} is not a regular file; give a file name", ErrorKind.NOT_A_FILE)
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{shown}: the folder '{path.parent}' is not writable", ErrorKind.NOT_WRITABLE)
    if force:
        return
    if any(path.exists() and source.exists() and path.samefile(source) for source in sources):
        raise UsageError(
            f"{shown} is the input itself; give another name, or --force to replace it", ErrorKind.IS_INPUT
        )
    if path.exists():
        raise UsageError(f"{shown} exists; give another name, or --force to replace it", ErrorKind.EXISTS)


def check_targets(targets: Sequence[Path], sources: Sequence[Path], force: bool, result: Path | None = None) -> None:
    """Raise UsageError early when writing files would fail or destroy something.

    ``sources`` are the files being read. No target replaces one, but for ``result``, the new model: with ``force`` it
    may replace the first. Other files that exist are replaced with ``force``. Each target is another file.
    """
    check_apart(targets, sources, result)
    for target in targets:
        check_target(target, tuple(sources[:1]) if target == result else (), force)


def check_apart(targets: Iterable[Path], sources: Sequence[Path], result: Path | None = None) -> None:
    """Raise UsageError when a target is a source, or two targets are one file, by whatever names and links.

    ``result``: the target that may be the first source.
    """
    read, written = {_file_of(source): source for source in sources}, dict[object, Path]()
    for target in targets:
        file = _file_of(target)
        if file in read and not (target == result and file == _file_of(sources[0])):
            raise UsageError(f"output '{target}' is the input '{read[file]}'; give another name", ErrorKind.IS_INPUT)
        if file in written:
            raise UsageError(
                f"outputs '{written[file]}' and '{target}' are one file; give another name", ErrorKind.NAME
            )
        written[file] = target


def _file_of(path: Path) -> object:
    """Return what all names of a file have in common, be it there or not."""
    try:
        found = path.stat()
    except OSError:
        return os.path.normcase(os.path.realpath(path))
    return found.st_dev, found.st_ino


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write files whole or not at all: temporary files beside them first, then renames.

    A symbolic link stays one: what it points to is written.
    Raises OutputError; then no temporary file is left, and no file has changed unless a rename itself failed.
    """
    temporary: dict[Path, str] = {}
    target: Path | str = ""
    try:
        for target, data in files.items():
            written_to = target.resolve() if target.is_symlink() else target
            temporary[written_to] = _write_beside(written_to, data)
        for target, written in temporary.items():
            os.replace(written, target)
    except OSError as error:
        raise OutputError(f"cannot write '{target}': {error.strerror or error}") from error
    finally:
        for written in temporary.values():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(written)


def write_folder(
    folder: Path,
    files: Mapping[str, bytes],
    sources: Sequence[Path],
    force: bool,
    beside: Mapping[Path, bytes] = MappingProxyType({}),
) -> tuple[Path, ...]:
    """Write files, by their paths inside a folder that is made if needed; the paths as written.

    ``beside``: files elsewhere that are written with them. Raises as :func:`check_targets` and :func:`write_files`;
    then no new folder is left.
    """
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError(f"output '{folder}' is a file: give a folder", ErrorKind.NOT_WRITABLE)
    targets = {folder / path: data for path, data in files.items()}
    new = sorted({each for path in targets for each in path.parents if not os.path.exists(each)})
    try:
        _make_folders(new)
        check_targets([*targets, *beside], sources, force)
        write_files({**targets, **beside})
    except BaseException:
        for each in reversed(new):
            with contextlib.suppress(OSError):
                each.rmdir()
        raise
    return tuple(targets)


def _make_folders(new: Sequence[Path]) -> None:
    try:
        for each in new:
            each.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot create the folder '{error.filename}': {error.strerror or error}") from error


def _write_beside(target: Path, data: bytes) -> str:
    name = str(target.parent / f".{target.name}.{token_hex(8)}")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(target)
        raise
    return name


_CONVERTER = "convert it with tf.lite.TFLiteConverter"
_KERAS = f"a Keras model (.keras): {_CONVERTER}.from_keras_model"
_HDF5 = f"an HDF5 file (.h5), as Keras writes its models: load it with Keras and {_CONVERTER}.from_keras_model"
_SAVED_MODEL = f"a TensorFlow SavedModel: {_CONVERTER}.from_saved_model"
_ONNX = "an ONNX model: convert it, for example with onnx2tf"
_PYTORCH = "a PyTorch file: convert the model, for example with litert-torch"
_SOURCE = "C source text: give the .tflite file from which it was made"
_STARTS = {
    b"\x89HDF\r\n\x1a\n": _HDF5,
    b"\x1f\x8b": "a gzip archive: unpack it first",
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
"""Bytes that may follow the version with which an ONNX file begins: tags of its other fields."""
_NEWEST_ONNX = 32
_TEXT = (b"#include", b"#if", b"#pragma", b"//", b"/*", b"unsigned char", b"const ", b"static ", b"alignas")


def foreign_format(data: bytes) -> str | None:
    """Describe a file that is no .tflite model, with advice; None where its first bytes do not tell."""
    if data.startswith(_ZIP):
        return _in_archive(data)
    if data.lstrip().startswith(_TEXT):
        return _SOURCE
    if len(data) > 2 and data[0] == 8 and 3 <= data[1] <= _NEWEST_ONNX and data[2] in _ONNX_FIELDS:
        return _ONNX
    return next((said for start, said in _STARTS.items() if data.startswith(start)), None)


def refuse_folder(path: Path) -> None:
    """Raise UsageError for a folder, and name a SavedModel."""
    if not path.is_dir():
        return
    if (path / "saved_model.pb").exists():
        raise UsageError(f"'{path}' is {_SAVED_MODEL}", ErrorKind.NOT_A_FILE)
    raise UsageError(f"'{path}' is a folder; give a .tflite file", ErrorKind.NOT_A_FILE)


def _in_archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        members = []
    names = {member.rpartition("/")[2] for member in members}
    known = next((said for name, said in _BY_MEMBER.items() if name in names), None)
    return known or "a zip archive: unpack it, and give the .tflite file in it"
