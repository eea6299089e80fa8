"""Reading and writing lose nothing, for whole models and for every odd corner of the format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from tests.deep import assert_same_tree, edited, misaligned_buffers, pack, tree
from tests.models import ALL, dense_model, if_model, mobile_chain, streaming_model
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.model.ir.tensors import per_tensor

NOT_UTF8 = b"caf\xe9 \xff\xfe"
builders = pytest.mark.parametrize("build", ALL.values(), ids=ALL.keys())


@builders
def test_a_model_survives_reading_and_writing(build: Callable[[], Model]) -> None:
    first = write_model(build())
    model = read_model(first)
    check_model(model)
    assert_same_tree(first, write_model(model))


@builders
def test_written_buffers_start_on_16_bytes(build: Callable[[], Model]) -> None:
    data = write_model(build())
    assert misaligned_buffers(data) == []
    assert misaligned_buffers(write_model(read_model(pack(tree(data))))) == []


def test_misaligned_buffers_are_seen_and_mended() -> None:
    plain = pack(tree(write_model(mobile_chain())))
    assert misaligned_buffers(plain) != []
    assert misaligned_buffers(write_model(read_model(plain))) == []


def _custom_operator(root: Any) -> None:
    code = root.operatorCodes[0]
    code.deprecatedBuiltinCode = code.builtinCode = schema.BuiltinOperator.CUSTOM
    code.customCode, code.version = NOT_UTF8, 7
    operator = root.subgraphs[0].operators[0]
    operator.builtinOptionsType, operator.builtinOptions = 0, None
    operator.customOptions = [0, 255, 3, 0]


def _old_operator_code(root: Any) -> None:
    root.operatorCodes[0].builtinCode = 0
    root.operatorCodes[0].deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED


def _second_options(root: Any) -> None:
    code = root.operatorCodes[0]
    code.deprecatedBuiltinCode, code.builtinCode = 127, schema.BuiltinOperator.STABLEHLO_CONCATENATE
    operator = root.subgraphs[0].operators[0]
    operator.builtinOptionsType, operator.builtinOptions = 0, None
    operator.builtinOptions2Type = schema.BuiltinOptions2.StablehloConcatenateOptions
    operator.builtinOptions2 = schema.StablehloConcatenateOptionsT(dimension=3)


def _names_that_are_not_utf8(root: Any) -> None:
    graph, signature = root.subgraphs[0], root.signatureDefs[0]
    graph.name = graph.tensors[0].name = root.description = NOT_UTF8
    signature.signatureKey = signature.inputs[0].name = NOT_UTF8
    root.metadata = [schema.MetadataT(name=NOT_UTF8, buffer=1)]


def _absent_parts(root: Any) -> None:
    graph = root.subgraphs[0]
    root.description = root.signatureDefs = root.metadata = root.metadataBuffer = graph.name = None
    graph.tensors[1].quantization = graph.tensors[1].name = graph.operators[0].intermediates = None
    graph.tensors[3].quantization.scale = graph.tensors[3].quantization.zeroPoint = None
    root.buffers[0].data = None


def _empty_parts(root: Any) -> None:
    graph = root.subgraphs[0]
    root.description = graph.name = graph.tensors[1].name = b""
    root.signatureDefs, root.metadata, root.metadataBuffer = [], [], []
    graph.operators[0].intermediates, graph.operators[0].customOptions = [], []
    graph.tensors[3].quantization.scale, graph.tensors[3].quantization.zeroPoint = [], []
    graph.tensors[3].quantization.min, graph.tensors[3].shapeSignature = [], []
    root.buffers[0].data = []


def _scalar_shapes(root: Any) -> None:
    root.subgraphs[0].tensors[0].shape, root.subgraphs[0].tensors[1].shape = None, []


def _quantization_extras(root: Any) -> None:
    quantization = root.subgraphs[0].tensors[2].quantization
    quantization.min, quantization.max, quantization.quantizedDimension = [-1.5], [float("inf")], 1
    quantization.detailsType = schema.QuantizationDetails.CustomQuantization
    quantization.details = schema.CustomQuantizationT(custom=[1, 2, 3])


def _tensor_extras(root: Any) -> None:
    weights = root.subgraphs[0].tensors[2]
    weights.shapeSignature, weights.hasRank = [-1, 16], True
    weights.sparsity = schema.SparsityParametersT(traversalOrder=[0, 1], blockMap=[], dimMetadata=[])
    root.subgraphs[0].tensors[1].variantTensors = [schema.VariantSubTypeT(shape=[2], type=2, hasRank=True)]


def _operator_extras(root: Any) -> None:
    operator = root.subgraphs[0].operators[0]
    operator.mutatingVariableInputs, operator.intermediates = [True, False, True], [3, 3]
    operator.debugMetadataIndex = root.subgraphs[0].debugMetadataIndex = 4


def _model_extras(root: Any) -> None:
    root.externalBufferGroups = [schema.ExternalBufferGroupT(name=b"group")]
    root.version = 9


def _metadata(root: Any) -> None:
    root.metadata = [schema.MetadataT(name=name, buffer=buffer) for name, buffer in ((b"b", 2), (b"a", 1), (b"b", 1))]
    root.metadataBuffer = [2, 0]
    root.buffers.append(schema.BufferT(data=[9]))


def _signatures(root: Any) -> None:
    second = schema.SignatureDefT(signatureKey=b"two", subgraphIndex=0)
    second.inputs = [schema.TensorMapT(name=b"z", tensorIndex=1), schema.TensorMapT(name=b"a", tensorIndex=0)]
    root.signatureDefs.append(second)


def _shared_buffer(root: Any) -> None:
    root.subgraphs[0].tensors[3].buffer = root.subgraphs[0].tensors[2].buffer


def _missing_optional_input(root: Any) -> None:
    root.subgraphs[0].operators[0].inputs = [0, 2, -1]


def _variable(root: Any) -> None:
    root.subgraphs[0].tensors[0].isVariable = True


def _unused_parts(root: Any) -> None:
    root.operatorCodes.insert(0, schema.OperatorCodeT(builtinCode=3, deprecatedBuiltinCode=3))
    root.subgraphs[0].operators[0].opcodeIndex = 1
    root.buffers += [schema.BufferT(), schema.BufferT(data=[1, 2, 3])]


CORNERS = (
    *(_custom_operator, _old_operator_code, _second_options, _names_that_are_not_utf8, _absent_parts, _empty_parts),
    *(_scalar_shapes, _quantization_extras, _tensor_extras, _operator_extras, _model_extras, _metadata, _signatures),
    *(_shared_buffer, _missing_optional_input, _variable, _unused_parts),
)


@pytest.mark.parametrize("edit", CORNERS, ids=lambda edit: edit.__name__.strip("_"))
def test_a_corner_of_the_format_survives(edit: Callable[[Any], None]) -> None:
    plain = write_model(dense_model())
    data = edited(plain, edit)
    with pytest.raises(AssertionError):
        assert_same_tree(plain, data)
    assert_same_tree(data, write_model(read_model(data)))


def test_tensors_that_share_a_buffer_go_on_sharing() -> None:
    tensors = read_model(edited(write_model(dense_model()), _shared_buffer)).main.tensors
    assert tensors[2].buffer is tensors[3].buffer
    assert tensors[0].buffer is not tensors[2].buffer


def test_a_missing_optional_input_is_none() -> None:
    model = read_model(edited(write_model(dense_model()), _missing_optional_input))
    assert model.main.operators[0].inputs == (model.main.tensors[0], model.main.tensors[2], None)
    assert tree(write_model(model)).subgraphs[0].operators[0].inputs.tolist() == [0, 2, -1]


def test_names_that_are_not_utf8_keep_their_bytes() -> None:
    model = read_model(edited(write_model(dense_model()), _names_that_are_not_utf8))
    assert tree(write_model(model)).subgraphs[0].tensors[0].name == NOT_UTF8


def test_signatures_name_the_tensors_of_their_graph() -> None:
    model = read_model(write_model(dense_model()))
    assert model.signatures is not None
    (signature,) = model.signatures
    assert signature.graph is model.main
    assert signature.inputs == (("x", model.main.inputs[0]),)
    assert signature.outputs == (("y", model.main.outputs[0]),)


def test_subgraph_calls_and_variables_are_kept() -> None:
    model = read_model(write_model(if_model()))
    assert [graph.name for graph in model.graphs] == ["main", "then", "else"]
    assert model.main.operators[0].option("elseSubgraphIndex") == 2
    handle = read_model(write_model(streaming_model())).main.operators[1]
    assert (handle.name, handle.option("sharedName")) == ("VAR_HANDLE", b"state")


def test_custom_options_keep_their_bytes() -> None:
    operator = read_model(edited(write_model(dense_model()), _custom_operator)).main.operators[0]
    assert operator.name == "CUSTOM"
    assert operator.custom_options is not None
    assert operator.custom_options.tobytes() == b"\x00\xff\x03\x00"


def test_quantization_can_be_given_to_a_tensor_that_had_none() -> None:
    model = read_model(edited(write_model(dense_model()), _absent_parts))
    tensor = model.main.tensors[1]
    assert tensor.quantization is None
    tensor.quantization = per_tensor(0.5, 3)
    again = read_model(write_model(model)).main.tensors[1].quantization
    assert again is not None
    assert (again.scale.tolist(), again.zero_point.tolist()) == ([0.5], [3])


def _with_data_behind(place: Callable[[Any, int], None], data: bytes) -> bytes:
    """A file whose tree points at ``data`` behind the flatbuffer; ``place`` sets the offset."""
    plain = write_model(dense_model())
    length = len(edited(plain, lambda root: place(root, 1 << 20)))
    body = edited(plain, lambda root: place(root, length))
    assert len(body) == length
    return body + data + bytes(-len(data) % 4)


def test_buffer_data_behind_the_flatbuffer_is_read_inline() -> None:
    weights = np.arange(128, dtype=np.uint8)

    def place(root: Any, offset: int) -> None:
        buffer = root.buffers[root.subgraphs[0].tensors[2].buffer]
        buffer.data, buffer.offset, buffer.size = None, offset, weights.size

    model = read_model(_with_data_behind(place, weights.tobytes()))
    check_model(model)
    data = model.main.tensors[2].buffer.data
    assert data is not None
    assert data.tobytes() == weights.tobytes()
    written = tree(write_model(model))
    buffer = written.buffers[written.subgraphs[0].tensors[2].buffer]
    assert (buffer.offset, buffer.size, buffer.data.tobytes()) == (0, 0, weights.tobytes())


def test_custom_options_behind_the_flatbuffer_are_read_inline() -> None:
    def place(root: Any, offset: int) -> None:
        _custom_operator(root)
        operator = root.subgraphs[0].operators[0]
        operator.customOptions = None
        operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize = offset, 5

    written = tree(write_model(read_model(_with_data_behind(place, b"hello"))))
    operator = written.subgraphs[0].operators[0]
    assert (operator.largeCustomOptionsOffset, operator.customOptions.tobytes()) == (0, b"hello")


def test_an_offset_of_custom_options_without_a_size_makes_none() -> None:
    """TFLM refuses a built-in operator with custom options, be they empty."""

    def place(root: Any) -> None:
        root.subgraphs[0].operators[0].largeCustomOptionsOffset = 255

    read = read_model(edited(write_model(dense_model()), place)).main.operators[0]
    assert read.custom_options is None
