"""Object trees of whole .tflite files, through the schema bindings alone: to compare, to damage, to pack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

_DATA_SLOT = 4
"""``Buffer.data`` is the first field, and a vtable begins with two 16-bit sizes."""


def tree(data: bytes) -> Any:
    """The object tree of a file."""
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(data), 0))


def pack(root: Any) -> bytes:
    """Bytes of an object tree, right or wrong; nothing is checked or aligned."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(root.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def edited(data: bytes, edit: Callable[[Any], object]) -> bytes:
    """The file after ``edit`` has changed its object tree in place."""
    root = tree(data)
    edit(root)
    return pack(root)


def with_weights_behind(data: bytes) -> bytes:
    """The file with the values of all constants behind the flatbuffer, as litert-quantizer writes large ones."""
    held: list[tuple[int, bytes]] = []

    def place(root: Any, start: int) -> None:
        held.clear()
        for number in {tensor.buffer for graph in root.subgraphs for tensor in graph.tensors}:
            buffer = root.buffers[number]
            if buffer.data is not None and len(buffer.data):
                values = np.asarray(buffer.data, np.uint8).tobytes()
                buffer.data, buffer.offset, buffer.size = None, start, len(values)
                held.append((start, values))
                start += -(-len(values) // 16) * 16

    length = -(-len(edited(data, lambda root: place(root, 1 << 20))) // 16) * 16
    whole = bytearray(edited(data, lambda root: place(root, length)))
    for start, values in held:
        whole += bytes(start - len(whole)) + values
    return bytes(whole)


def assert_same_tree(a_bytes: bytes, b_bytes: bytes) -> None:
    """Fail, naming the first field that differs, unless two files hold the same object tree."""
    _assert_same(tree(a_bytes), tree(b_bytes), "model")


def misaligned_buffers(data: bytes) -> list[int]:
    """Indices of the buffers whose data does not start on a 16-byte boundary of the file."""
    model = schema.Model.GetRootAs(bytearray(data), 0)
    wrong = []
    for index in range(model.BuffersLength()):
        table = model.Buffers(index)._tab
        offset = table.Offset(_DATA_SLOT)
        if offset and table.Vector(offset) % 16:
            wrong.append(index)
    return wrong


def _assert_same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, (list, np.ndarray)) and isinstance(b, (list, np.ndarray)):
        assert len(a) == len(b), f"{where}: {len(a)} and {len(b)} elements"
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            assert a.dtype == b.dtype, f"{where}: {a.dtype} and {b.dtype}"
            assert a.tobytes() == b.tobytes(), f"{where}: the values differ"
            return
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            _assert_same(one, other, f"{where}[{index}]")
        return
    assert type(a) is type(b), f"{where}: {type(a).__name__} and {type(b).__name__}"
    if hasattr(a, "__dict__"):
        for name in vars(a):
            _assert_same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    else:
        assert a == b or (a != a and b != b), f"{where}: {a!r} and {b!r}"
