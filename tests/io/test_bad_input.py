"""Every wrong or unusable file is refused in one line that says what is wrong and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.deep import edited
from tests.models import branches, dense_model, if_model, split_model, streaming_model, that_nothing_runs
from tests.profiles import examples
from tflite_memopt.errors import MemoptError, ModelFormatError, UnsupportedModelError
from tflite_memopt.model.io.associated_files import append
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import AssociatedFile, Model

DENSE = write_model(dense_model())
_LABELS = AssociatedFile("labels.txt", b"cat\ndog\n" * 20, compressed=True)
FLIPPED = (DENSE, *map(write_model, (if_model(), streaming_model(), split_model())), append(DENSE, (_LABELS,)))
slow = examples(300, suppress_health_check=[HealthCheck.too_slow])


def refusal(data: bytes) -> str:
    """The message of the error that refuses a file."""
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        check_model(read_model(data))
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def test_an_empty_file_is_called_empty() -> None:
    assert "empty" in refusal(b"")


@pytest.mark.parametrize("data", [b"\x1c", b"TFL3", b"\x1c\x00\x00\x00TFL"])
def test_a_short_file_is_refused(data: bytes) -> None:
    assert "not a .tflite model" in refusal(data)


def test_another_format_is_refused_by_its_identifier() -> None:
    assert "TFL2" in refusal(DENSE[:4] + b"TFL2" + DENSE[8:])


@slow
@given(st.binary(max_size=300), st.integers(0, 400))
def test_random_bytes_behind_the_identifier_never_crash(body: bytes, root: int) -> None:
    data = root.to_bytes(4, "little") + b"TFL3" + body
    data += bytes(-len(data) % 4)
    accepted = True
    try:
        check_model(read_model(data))
    except MemoptError:
        accepted = False
    assert not accepted or root + 4 <= len(data)


def test_a_truncated_file_is_refused_or_only_lost_padding() -> None:
    whole = write_model(read_model(DENSE))
    read_anyway = 0
    for length in range(len(DENSE)):
        try:
            model = read_model(DENSE[:length])
            check_model(model)
        except (ModelFormatError, UnsupportedModelError):
            continue
        read_anyway += 1
        assert write_model(model) == whole, f"cut to {length} bytes, it reads as another model"
    assert read_anyway < 16


@slow
@given(st.sampled_from(FLIPPED), st.data())
def test_flipped_bytes_never_crash(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    places = st.tuples(st.integers(0, len(data) - 1), st.integers(1, 255))
    for position, bits in draw.draw(st.lists(places, min_size=1, max_size=4)):
        damaged[position] ^= bits
    try:
        model = read_model(bytes(damaged))
        check_model(model)
    except MemoptError:
        return
    assert write_model(model)[4:8] == b"TFL3"


def _tensor(index: int, **fields: Any) -> Callable[[Any], None]:
    def edit(root: Any) -> None:
        vars(root.subgraphs[0].tensors[index]).update(fields)

    return edit


def _operator(index: int, **fields: Any) -> Callable[[Any], None]:
    def edit(root: Any) -> None:
        vars(root.subgraphs[0].operators[index]).update(fields)

    return edit


def _graph(**fields: Any) -> Callable[[Any], None]:
    return lambda root: vars(root.subgraphs[0]).update(fields)


def _model(**fields: Any) -> Callable[[Any], None]:
    return lambda root: vars(root).update(fields)


def _code(**fields: Any) -> Callable[[Any], None]:
    return lambda root: vars(root.operatorCodes[0]).update(fields)


def _signature(**fields: Any) -> Callable[[Any], None]:
    return lambda root: vars(root.signatureDefs[0]).update(fields)


def _calls(**fields: Any) -> Callable[[Any], None]:
    return lambda root: vars(root.subgraphs[0].operators[0].builtinOptions).update(fields)


def _swapped(root: Any) -> None:
    operators = root.subgraphs[0].operators
    operators[1], operators[2] = operators[2], operators[1]


def _short_weights(root: Any) -> None:
    buffer = root.buffers[root.subgraphs[0].tensors[2].buffer]
    buffer.data = buffer.data[:3]


def _outside(root: Any) -> None:
    root.buffers[1].data, root.buffers[1].offset, root.buffers[1].size = None, 1 << 30, 8


FORMAT: tuple[tuple[str, Callable[[], Model], Callable[[Any], object], tuple[str, ...]], ...] = (
    ("buffer_index", dense_model, _tensor(1, buffer=99), ("subgraph 0, tensor 1", "buffer index 99")),
    ("metadata_buffer", dense_model, _model(metadata=[schema.MetadataT(b"m", 44)]), ("metadata", "buffer index 44")),
    ("legacy_metadata", dense_model, _model(metadataBuffer=[-3]), ("metadata_buffer", "buffer index -3")),
    ("buffer_outside", dense_model, _outside, ("buffer 1", "outside the file")),
    ("input_index", dense_model, _operator(0, inputs=[0, 77, 3]), ("operator 0 (FULLY_CONNECTED)", "index 77")),
    ("negative_input", dense_model, _operator(0, inputs=[0, 2, -2]), ("operator 0 (FULLY_CONNECTED)", "index -2")),
    ("output_index", dense_model, _operator(0, outputs=[-1]), ("outputs", "tensor index -1")),
    ("graph_output", dense_model, _graph(outputs=[50]), ("subgraph 0, outputs", "tensor index 50")),
    ("operator_code", dense_model, _operator(0, opcodeIndex=9), ("operator 0", "operator code index 9")),
    ("signature_graph", dense_model, _signature(subgraphIndex=5), ("'serving_default'", "subgraph index 5")),
    (
        *("signature_tensor", dense_model, _signature(inputs=[schema.TensorMapT(b"x", 12)])),
        ("'serving_default'", "tensor index 12"),
    ),
    ("no_subgraph", dense_model, _model(subgraphs=[]), ("no subgraph",)),
    ("cycle", branches, _operator(0, inputs=[10, 2, 3]), ("operator 0 (CONV_2D, 'conv0')", "a cycle of operators")),
    ("order", branches, _swapped, ("operator 1 (DEPTHWISE_CONV_2D", "'conv1'", "operators out of order")),
    ("own_output", branches, _operator(3, inputs=[1, 10]), ("operator 3 (ADD, 'add3')", "a cycle of operators")),
    ("two_producers", branches, _operator(1, outputs=[1]), ("operator 1 (CONV_2D)", "'conv0' is written more")),
    ("twice_by_one", split_model, _operator(0, outputs=[2, 2, 4]), ("operator 0 (SPLIT)", "written more")),
    ("writes_constant", branches, _operator(1, outputs=[2]), ("operator 1", "'conv0/weights', which is a constant")),
    ("writes_input", dense_model, _operator(0, outputs=[0]), ("subgraph 0", "input 'x' is written")),
    ("reads_unwritten", branches, _graph(inputs=[]), ("operator 0", "'x', which nothing writes")),
    ("negative_shape", dense_model, _tensor(0, shape=[1, -2]), ("tensor 0 'x'", "negative")),
    ("short_constant", dense_model, _short_weights, ("tensor 2 'dense0/weights'", "holds 3 bytes", "needs 128")),
    ("called_subgraph", if_model, _calls(thenSubgraphIndex=7), ("operator 0 (IF, 'y')", "calls subgraph 7")),
    (
        "called_negative",
        lambda: that_nothing_runs(if_model()),
        _calls(elseSubgraphIndex=-1),
        ("operator 0 (IF, 'y')", "calls subgraph -1"),
    ),
)
UNSUPPORTED: tuple[tuple[str, Callable[[], Model], Callable[[Any], object], tuple[str, ...]], ...] = (
    ("unknown_builtin", dense_model, _code(builtinCode=9999), ("operator code 0", "number 9999")),
    ("unknown_type", dense_model, _tensor(1, type=120), ("subgraph 0, tensor 1", "type 120")),
    ("unknown_options", dense_model, _operator(0, builtinOptionsType=1, builtinOptions=None), ("operator 0", "kind 1")),
    ("dynamic_shape", dense_model, _tensor(0, shape=[-1, 16]), ("tensor 0 'x'", "[-1, 16] is dynamic")),
    ("huge_shape", dense_model, _tensor(1, shape=[46341, 46341]), ("tensor 1 'dense0'", "bytes, more than")),
    ("string_activation", dense_model, _tensor(1, type=schema.TensorType.STRING), ("tensor 1 'dense0'", "string")),
    ("self_recursion", if_model, _calls(thenSubgraphIndex=0), ("subgraph 0 calls itself",)),
    ("no_such_kernel", if_model, _code(builtinCode=schema.BuiltinOperator.STABLEHLO_CASE), ("(STABLEHLO_CASE, 'y')",)),
)


@pytest.mark.parametrize(("build", "edit", "words"), [row[1:] for row in FORMAT], ids=[row[0] for row in FORMAT])
def test_a_wrong_file_is_refused(
    build: Callable[[], Model], edit: Callable[[Any], object], words: tuple[str, ...]
) -> None:
    data = edited(write_model(build()), edit)
    message = refusal(data)
    for word in words:
        assert word in message
    with pytest.raises(ModelFormatError):
        check_model(read_model(data))


@pytest.mark.parametrize(
    ("build", "edit", "words"), [row[1:] for row in UNSUPPORTED], ids=[row[0] for row in UNSUPPORTED]
)
def test_a_file_that_cannot_be_planned_is_refused(
    build: Callable[[], Model], edit: Callable[[Any], object], words: tuple[str, ...]
) -> None:
    data = edited(write_model(build()), edit)
    message = refusal(data)
    for word in words:
        assert word in message
    with pytest.raises(UnsupportedModelError):
        check_model(read_model(data))


def test_a_constant_of_the_exact_size_is_accepted() -> None:
    def trim(root: Any) -> None:
        buffer = root.buffers[root.subgraphs[0].tensors[2].buffer]
        assert buffer.data.size == 128
        buffer.data = np.append(buffer.data, np.uint8(0))

    check_model(read_model(edited(DENSE, trim)))


def test_subgraphs_called_from_many_places_are_checked_once() -> None:
    """Each of 40 subgraphs calls the next from both branches: 2**40 paths."""

    def chain(root: Any) -> None:
        template = root.subgraphs[0]
        links = []
        for index in range(1, 41):
            options = schema.IfOptionsT(thenSubgraphIndex=index, elseSubgraphIndex=index)
            operator = schema.OperatorT(
                **(vars(template.operators[0]) | {"builtinOptions": options, "debugMetadataIndex": -1})
            )
            links.append(schema.SubGraphT(**(vars(template) | {"operators": [operator]})))
        root.subgraphs = [*links, root.subgraphs[1]]

    check_model(read_model(edited(write_model(if_model()), chain)))
