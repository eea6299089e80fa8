"""Files that are made to waste time, and files that are unlucky."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import tflite_memopt
from tests.deep import pack, tree
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import branches, dense_model, irregular_model, mobile_chain, that_nothing_runs
from tflite_memopt import ModelFormatError, Options, UnsupportedModelError, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io import reader
from tflite_memopt.model.io.associated_files import append
from tflite_memopt.model.io.files import read_file
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import AssociatedFile, Buffer, DType, Model
from tflite_memopt.run.candidate import Cache
from tflite_memopt.run.pipeline import optimize

_OFFSET_SLOT = 6
"""``Buffer.offset`` is the second field, and a vtable begins with two 16-bit sizes."""
CONTROL = "model_control_dependencies"


def repeated(times: int) -> bytes:
    """One tensor named ``times`` times by one subgraph that the model names as often."""
    b = flatbuffers.Builder(1024)
    schema.TensorStart(b)
    tensor = schema.TensorEnd(b)
    schema.SubGraphStartTensorsVector(b, times)
    for _ in range(times):
        b.PrependUOffsetTRelative(tensor)
    tensors = b.EndVector()
    schema.SubGraphStart(b)
    schema.SubGraphAddTensors(b, tensors)
    graph = schema.SubGraphEnd(b)
    schema.ModelStartSubgraphsVector(b, times)
    for _ in range(times):
        b.PrependUOffsetTRelative(graph)
    graphs = b.EndVector()
    schema.ModelStart(b)
    schema.ModelAddSubgraphs(b, graphs)
    b.Finish(schema.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def with_metadata(model: Model, name: str, data: bytes) -> Model:
    buffer = Buffer(np.frombuffer(data, np.uint8))
    model.buffers.append(buffer)
    model.metadata.append((name, buffer))
    return model


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    return stream.getvalue()


def test_tables_named_again_and_again_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: object) -> None:
        raise AssertionError("unpacked")

    monkeypatch.setattr(schema.ModelT, "InitFromObj", never)
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        read_model(repeated(200))
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        read_model(repeated(20_000))


def test_an_honest_model_is_within_the_budget() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 4))
    for _ in range(300):
        y = b.add(y, y)
    assert len(read_model(write_model(b.finish(y))).main.operators) == 300


def test_a_zip_within_a_buffer_is_no_archive_behind_the_model() -> None:
    data = write_model(with_metadata(dense_model(), "TFLITE_METADATA", zipped()))
    model = read_model(data)
    assert model.associated_files == ()
    assert dict(model.metadata)["TFLITE_METADATA"].data is not None
    both = append(data, (AssociatedFile("more.txt", b"more"),))
    assert [file.name for file in read_model(both).associated_files] == ["more.txt"]


def behind(data: bytes, name: str) -> bytes:
    """The file with the content of a metadata entry moved behind the flatbuffer, where it ends the file."""
    root = tree(data)
    buffer = root.buffers[next(each.buffer for each in root.metadata if each.name == name.encode())]
    content, buffer.data, buffer.size = bytes(buffer.data), None, len(buffer.data)
    buffer.offset = 1 << 20  # any: the number is part of the length
    buffer.offset = len(pack(root))
    return pack(root) + content


def test_a_zip_in_the_last_buffer_behind_the_flatbuffer_belongs_to_the_model() -> None:
    data = behind(write_model(with_metadata(dense_model(), "M", zipped())), "M")
    assert data.endswith(zipped())
    model = read_model(data)
    assert model.associated_files == ()
    assert dict(model.metadata)["M"].data.tobytes() == zipped()  # type: ignore[union-attr]
    assert dict(read_model(write_model(model)).metadata)["M"].data.tobytes() == zipped()  # type: ignore[union-attr]
    both = append(data, (AssociatedFile("more.txt", b"more"),))
    again = read_model(both)
    assert [file.name for file in again.associated_files] == ["more.txt"]
    assert dict(again.metadata)["M"].data.tobytes() == zipped()  # type: ignore[union-attr]
    with raises(ModelFormatError, None, "outside the file"):
        read_model(data[:-1])


def test_a_zip_in_a_buffer_that_ends_the_flatbuffer_belongs_to_the_model() -> None:
    """A writer may lay the bytes of a buffer last."""
    data = behind(write_model(with_metadata(dense_model(), "M", zipped())), "M")
    start = len(data) - len(zipped())
    within = bytearray(data[:start] + bytes(-start % 4) + len(zipped()).to_bytes(4, "little") + zipped())
    model = schema.Model.GetRootAs(within, 0)
    (table,) = (each._tab for each in map(model.Buffers, range(model.BuffersLength())) if each.Size())
    # Its offset of 8 bytes becomes the first field: a reference to the vector, and the rest is left unread.
    at = table.Pos + table.Offset(_OFFSET_SLOT)
    within[at : at + 4] = (start + -start % 4 - at).to_bytes(4, "little")
    vtable = table.Pos - int.from_bytes(within[table.Pos : table.Pos + 4], "little", signed=True)
    slots = range(vtable + 4, vtable + 10, 2)
    within[slots[0] : slots[0] + 2] = (at - table.Pos).to_bytes(2, "little")
    within[slots[1] : slots[2] + 2] = bytes(4)
    read = read_model(bytes(within))
    assert read.associated_files == ()
    assert dict(read.metadata)["M"].data.tobytes() == zipped()  # type: ignore[union-attr]


def test_an_archive_that_begins_in_a_buffer_and_ends_behind_it_is_damaged() -> None:
    data = behind(write_model(with_metadata(dense_model(), "M", zipped())), "M")
    root = tree(data)
    (buffer,) = (each for each in root.buffers if each.size)
    buffer.size -= 1
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        read_model(pack(root) + zipped())


def test_an_archive_that_lost_its_end_is_refused_all_the_same() -> None:
    data = append(write_model(with_metadata(dense_model(), "M", zipped())), (AssociatedFile("a.txt", b"some text"),))
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        read_model(data[:-10])


@pytest.mark.parametrize("extra", [1, 2, 3, 5])
def test_a_file_of_odd_length_is_read(extra: int) -> None:
    data = write_model(branches())
    assert write_model(read_model(data + bytes(extra))) == data


@pytest.mark.parametrize("dtype", [DType.INT4, DType.UINT4])
def test_inputs_of_packed_types_have_a_verdict_or_a_reason(dtype: DType) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 16), dtype), b.tensor("y", (1, 4, 4), dtype)
    shape = b.constant("shape", np.asarray([1, 4, 4], np.int32))
    b.operator("RESHAPE", (x, shape), (y,), "ReshapeOptions")
    data = write_model(b.finish(y))
    if dtype is DType.UINT4:
        with raises(UnsupportedModelError, ErrorKind.NO_SUCH_TYPE, "uint4"):
            tflite_memopt.optimize(data, Options(samples=2))
        return
    report = tflite_memopt.optimize(data, Options(samples=2)).report
    assert report.equivalence["litert"].equal
    verdict = report.equivalence["tflm"]  # the wheel takes no such arrays; a module takes bytes
    assert verdict.equal or verdict.reason


def test_over_2_gb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge.tflite"
    with path.open("wb") as file:
        os.ftruncate(file.fileno(), 2**31)  # sparse: takes no room
    with raises(UsageError, ErrorKind.TOO_LARGE, str(path)):
        read_file(path)
    monkeypatch.setattr(reader, "LARGEST_FILE", 100)
    with raises(UnsupportedModelError, ErrorKind.TOO_LARGE):
        read_model(write_model(dense_model()))


@pytest.mark.slow
def test_positions_of_operators_in_metadata_go_when_operators_move() -> None:
    data = write_model(with_metadata(irregular_model(), CONTROL, b"\x01\x01\x00\x02"))
    result = tflite_memopt.optimize(data, Options(samples=1))
    assert CONTROL not in dict(read_model(result.model).metadata)
    assert f"metadata '{CONTROL}' dropped: it refers to operators by their old positions" in result.report.warnings
    cache = Cache()
    again = [optimize(data, Options(verify=False), cache=cache) for _ in range(2)]
    assert again[0].report.warnings == again[1].report.warnings
    still = write_model(with_metadata(dense_model(), CONTROL, b"\x01\x01\x00\x02"))
    kept = tflite_memopt.optimize(still, Options(samples=1))
    assert CONTROL in dict(read_model(kept.model).metadata)


@pytest.mark.slow
def test_an_arena_that_metadata_states_is_named() -> None:
    data = write_model(with_metadata(mobile_chain(), "SL_PARAMSv1", b"runtime_memory_size"))
    result = tflite_memopt.optimize(data, Options(verify=False))
    assert "SL_PARAMSv1" in dict(read_model(result.model).metadata)
    assert any("runtime_memory_size" in warning for warning in result.report.warnings)


def said_sizes(name: str, operands: list[list[int]], table: str | None = None, **fields: int) -> Model:
    """One operator whose operands say something else than the file, which no runtime is to see."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 4), DType.FLOAT32), b.tensor("y", (1, 4, 4, 4), DType.FLOAT32)
    constants = [b.constant(f"c{at}", np.asarray(each, np.int32)) for at, each in enumerate(operands)]
    b.operator(name, (x, *constants), (y,), table, **fields)
    return that_nothing_runs(b.finish(y))


_NO_PADS = [[0, 0], [0, 0]]
SIZES = {
    "a resize to nothing": ("RESIZE_BILINEAR", [[0, 8]], ModelFormatError, ErrorKind.OPERAND, ("0 x 8",)),
    "a resize to billions": (
        "RESIZE_NEAREST_NEIGHBOR",
        [[40_000, 40_000]],
        UnsupportedModelError,
        ErrorKind.TOO_LARGE,
        ("40000 x 40000",),
    ),
    "a padding of billions": (
        "PAD",
        [[[0, 0], [20_000] * 2, [20_000] * 2, [0, 0]]],
        UnsupportedModelError,
        ErrorKind.TOO_LARGE,
        ("40004",),
    ),
    "copies": ("TILE", [[1, 20_000, 20_000, 1]], UnsupportedModelError, ErrorKind.TOO_LARGE, ("80000",)),
    "a fill": ("BROADCAST_TO", [[40_000, 40_000]], UnsupportedModelError, ErrorKind.TOO_LARGE, ("40000",)),
    "a block of nothing": ("SPACE_TO_BATCH_ND", [[0, 2], _NO_PADS], ModelFormatError, ErrorKind.OPERAND, ("0",)),
    "a block of nothing, backwards": (
        "BATCH_TO_SPACE_ND",
        [[2, 0], _NO_PADS],
        ModelFormatError,
        ErrorKind.OPERAND,
        ("0",),
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_operands_say_are_looked_at_before_anything_is_made(name: str) -> None:
    operator, operands, error, kind, names = SIZES[name]
    data = write_model(said_sizes(operator, operands))  # type: ignore[arg-type]
    for call in (tflite_memopt.analyze, lambda data: tflite_memopt.optimize(data, Options(verify=False))):
        with raises(error, kind, *names):
            call(data)


@pytest.mark.parametrize("name", ["SPACE_TO_DEPTH", "DEPTH_TO_SPACE"])
def test_a_block_option_of_nothing_is_refused(name: str) -> None:
    table = "SpaceToDepthOptions" if name == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    with raises(ModelFormatError, ErrorKind.OPERAND, name):
        tflite_memopt.analyze(write_model(said_sizes(name, [], table, blockSize=0)))


def test_a_softmax_of_one_value_is_a_good_model() -> None:
    b = ModelBuilder()
    data = write_model(b.finish(b.softmax(b.input("x", (1,)))))
    assert tflite_memopt.analyze(data).libraries["esp-nn"].required > 0


def test_an_interface_keeps_its_shape_unproved_too() -> None:
    """Columns in and out, which would be rows inside."""
    b = ModelBuilder()
    y = b.depthwise(b.conv(b.input("x", (1, 33, 1, 4)), 8, seed=1), seed=2)
    data = write_model(b.finish(b.conv(y, 4, seed=3)))
    result = read_model(tflite_memopt.optimize(data, Options(target="cortex-m4", verify=False)).model)
    assert [each.shape for each in (*result.main.inputs, *result.main.outputs)] == [(1, 33, 1, 4)] * 2
