"""How the tool and its interpreter processes talk: one JSON header, then the bytes of arrays and models.

No pickling: what an interpreter process sends back cannot run code here.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
from collections.abc import Mapping
from io import BufferedIOBase
from typing import IO, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_LENGTH = struct.Struct("<Q")
_LARGE = 1 << 14
"""Bytes of an array from which on copies of the process may do without it."""


class Message(NamedTuple):
    """``head`` is what JSON can hold; ``arrays`` travel as they are."""

    head: dict[str, Any]
    arrays: dict[str, Array]


def send(stream: IO[bytes], head: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write one message."""
    listed = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    text = json.dumps({"head": head, "arrays": listed}).encode()
    stream.write(_LENGTH.pack(len(text)) + text)
    for array in arrays.values():
        stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes], is_private: bool = False) -> Message | None:
    """Read one message; None when the other side has gone before its end.

    ``is_private``: copies of this process do without its large arrays, and so start sooner (on Linux).
    """
    prefix = stream.read(_LENGTH.size)
    if len(prefix) < _LENGTH.size:
        return None
    text = stream.read(_LENGTH.unpack(prefix)[0])
    try:
        told = json.loads(text)
    except ValueError:
        return None
    arrays = {}
    for name, code, shape in told["arrays"]:
        dtype = np.dtype(code)
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        data = _private(size) if is_private and size >= _LARGE else np.empty(size, np.uint8)
        if _read_into(stream, data) < size:
            return None
        arrays[name] = np.frombuffer(data, dtype).reshape(shape)
    return Message(told["head"], arrays)


def _private(size: int) -> Array:
    """Room for so many bytes that copies of this process do not have: to read it there is a crash."""
    if sys.platform != "linux":
        return np.empty(size, np.uint8)
    try:
        room = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
        room.madvise(mmap.MADV_DONTFORK)
    except OSError:  # Linux gives a process only so many of them
        return np.empty(size, np.uint8)
    return np.frombuffer(room, np.uint8)


def _read_into(stream: IO[bytes], data: Array) -> int:
    """Fill an array of bytes, without a copy; how many there were."""
    done, view = 0, data.data
    while done < data.size and (read := cast(BufferedIOBase, stream).readinto(view[done:])):
        done += read
    return done
