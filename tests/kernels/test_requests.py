"""Rows of the request tables against what TFLM was seen to allocate.

The expected figures were read from allocation logs of tflite-micro 90b983c2b3f1 running the same operator
(64: x86-64; 32: Cortex-M), from sizeof with 4-byte enums for the parser's structures on 32 bits, and, where tensor
compression makes the wheel's structures larger, from the tail that the wheel 0.dev20261023 reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.faults import raises
from tflite_memopt.errors import ErrorKind, ModelFormatError, UnsupportedModelError
from tflite_memopt.kernels.requests import requests_in, requests_of
from tflite_memopt.model.ir.model import (
    Buffer,
    DType,
    Graph,
    Model,
    OpCode,
    Operator,
    OperatorOptions,
    Quantization,
    Tensor,
)
from tflite_memopt.operators.requests import ILP32, WHEEL, Abi, Requests
from tflite_memopt.operators.table import REFERENCE

ABIS: tuple[Abi, Abi] = (ILP32, WHEEL)


def tensor(shape: tuple[int, ...], dtype: DType = DType.INT8, scales: int = 1, zero_point: int = 0) -> Tensor:
    quantization = Quantization(np.ones(scales, np.float32), np.full(scales, zero_point, np.int64))
    return Tensor("t", shape, dtype, Buffer(), quantization)


def constant(data: bytes) -> Tensor:
    return Tensor("c", (len(data),), DType.UINT8, Buffer(np.frombuffer(data, np.uint8)))


def operator(
    name: str, inputs: tuple[Tensor | None, ...], *outputs: Tensor, options: Mapping[str, Any] | None = None
) -> Operator:
    return Operator(OpCode(name), inputs, outputs, OperatorOptions(name, options or {}))


def custom(code: str, inputs: tuple[Tensor, ...], *outputs: Tensor, options: Mapping[str, Any]) -> Operator:
    packed = np.frombuffer(flexbuffers.Dumps(dict(options)), np.uint8)
    return Operator(OpCode("CUSTOM", custom_code=code), inputs, outputs, custom_options=packed)


def both(op: Operator) -> tuple[Requests, Requests]:
    return requests_of(op, ILP32), requests_of(op, WHEEL)


def expect(op: Operator, **fields: Any) -> None:
    """Check fields on both words; the value of ``field_by_word`` is a pair, for 32 and for 64."""
    for position, found in enumerate(both(op)):
        assert found.known
        for field, value in fields.items():
            name = field.removesuffix("_by_word")
            assert getattr(found, name) == (value if name == field else value[position]), (name, ABIS[position])


CONV = (tensor((1, 4, 4, 2)), tensor((3, 2, 2, 2), scales=3), tensor((3,), DType.INT32, scales=3))


def test_convolution_keeps_a_multiplier_and_a_shift_per_channel_and_looks_twice() -> None:
    activation, filter_, bias = CONV
    output = tensor((1, 3, 3, 3))
    expect(
        operator("CONV_2D", CONV, output),
        params=28,
        params_alignment=4,
        init_by_word=((56,), (80,)),
        prepare=(12, 12),
        scratch=(),
        temporaries=(output, activation, filter_, activation, filter_, bias, output),
    )


def test_convolution_without_bias_holds_one_temporary_less() -> None:
    assert len(requests_of(operator("CONV_2D", CONV[:2], tensor((1, 3, 3, 3))), WHEEL).temporaries) == 6
    assert len(requests_of(operator("CONV_2D", (*CONV[:2], None), tensor((1, 3, 3, 3))), WHEEL).temporaries) == 6


def test_a_4_bit_filter_is_unpacked_to_scratch() -> None:
    filter_ = tensor((1, 2, 2, 2), DType.INT4, scales=2)
    op = operator("DEPTHWISE_CONV_2D", (CONV[0], filter_, tensor((2,), DType.INT32, scales=2)), tensor((1, 3, 3, 2)))
    expect(op, prepare=(8, 8), scratch=(8,))


@pytest.mark.parametrize(
    ("dtype", "bias", "scratch", "held"),
    [
        (DType.FLOAT32, DType.FLOAT32, (), 3),
        (DType.INT8, DType.INT32, (192,), 7),
        (DType.INT16, DType.INT64, (384,), 7),
        (DType.INT16, DType.INT16, (384, 24), 7),
    ],
)
def test_transpose_convolution_accumulates_in_scratch(
    dtype: DType, bias: DType, scratch: tuple[int, ...], held: int
) -> None:
    filter_ = tensor((3, 2, 2, 2), DType.FLOAT32 if dtype is DType.FLOAT32 else DType.INT8, scales=3)
    inputs = (tensor((4,), DType.INT32), filter_, tensor((1, 2, 2, 2), dtype), tensor((3,), bias, scales=3))
    op = operator("TRANSPOSE_CONV", inputs, tensor((1, 4, 4, 3), dtype))
    expect(op, params=20, init_by_word=((72,), (88,)), prepare=(12, 12), scratch=scratch)
    assert [len(found.temporaries) for found in both(op)] == [held, held]


@pytest.mark.parametrize(("scales", "prepare"), [(1, ()), (3, (12, 12))])
def test_fully_connected_needs_arrays_only_per_channel(scales: int, prepare: tuple[int, ...]) -> None:
    op = operator("FULLY_CONNECTED", (tensor((1, 4)), tensor((3, 4), scales=scales), None), tensor((1, 3)))
    expect(op, params_by_word=(16, 32), init_by_word=((48,), (72,)), prepare=prepare, scratch=())


def test_batch_matmul_keeps_a_transposed_copy_of_the_right_side() -> None:
    op = operator("BATCH_MATMUL", (tensor((1, 3, 4)), tensor((1, 4, 5))), tensor((1, 3, 5)))
    expect(op, params=3, params_alignment=1, init_by_word=((16,), (32,)))
    expect(op, prepare_by_word=((28, 12, 16, 20, 16), (28, 24, 16, 20, 16)))


@pytest.mark.parametrize("time_major", [False, True])
def test_lstm_has_four_gate_buffers(time_major: bool) -> None:
    state, gate = tensor((2, 3), DType.FLOAT32), tensor((3, 3), DType.FLOAT32)
    inputs = (tensor((5, 2, 4) if time_major else (2, 5, 4), DType.FLOAT32), *[gate] * 8, *[None] * 3, *[gate] * 4)
    output = tensor((5, 2, 3) if time_major else (2, 5, 3), DType.FLOAT32)
    options = {"timeMajor": time_major}
    op = operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", (*inputs, None, None, state, state, *[None] * 4), output, options=options
    )
    expect(op, params=16, init=(688,), prepare=(), scratch=(24, 24, 24, 24))
    assert len(requests_of(op, ILP32).temporaries) == 16


def test_svdf_scratch_depends_on_the_type() -> None:
    def svdf(dtype: DType) -> Operator:
        shapes = ((2, 4), (6, 4), (6, 5), (3,), (2, 30))
        inputs = tuple(tensor(shape, dtype) for shape in shapes)
        return operator("SVDF", inputs, tensor((2, 3), dtype), options={"rank": 2})

    expect(svdf(DType.INT8), params=12, init=(36,), scratch=(48, 24))
    expect(svdf(DType.FLOAT32), params=12, init=(36,), scratch=(48,))


@pytest.mark.parametrize(("dtype", "tables"), [(DType.FLOAT32, ()), (DType.INT8, ()), (DType.INT16, (1026, 1026))])
def test_softmax_tables(dtype: DType, tables: tuple[int, ...]) -> None:
    op = operator("SOFTMAX", (tensor((1, 4), dtype),), tensor((1, 4), dtype))
    expect(op, params=4, init_by_word=((56,), (80,)), prepare=tables)


@pytest.mark.parametrize(
    ("name", "dtype", "scratch", "held"),
    [
        ("MEAN", DType.INT8, (16, 16, 8), 6),
        ("SUM", DType.INT16, (16, 16, 8), 5),
        ("MEAN", DType.FLOAT32, (16, 8), 5),
        ("REDUCE_MAX", DType.INT8, (16, 8), 6),
    ],
)
def test_reductions(name: str, dtype: DType, scratch: tuple[int, ...], held: int) -> None:
    op = operator(name, (tensor((1, 6, 5, 4), dtype), tensor((2,), DType.INT32)), tensor((1, 4), dtype))
    expect(op, params=1, params_alignment=1, init=(44,), scratch=scratch)
    assert len(requests_of(op, WHEEL).temporaries) == held


def test_reshape_only_looks() -> None:
    source, result = tensor((1, 4)), tensor((4,))
    op = operator("RESHAPE", (source, tensor((1,), DType.INT32)), result)
    expect(op, params=36, init=(), prepare=(), scratch=(), temporaries=(source, result))


def test_an_operator_without_prepare_takes_only_its_parameters() -> None:
    op = operator("PACK", (tensor((4,)), tensor((4,))), tensor((2, 4)))
    assert both(op) == (Requests(params=8), Requests(params=8))


def test_signal_state_follows_the_custom_options() -> None:
    samples = tensor((2, 16), DType.INT16)
    framer = {"frame_size": 20, "frame_step": 8, "prefill": True}
    op = custom("SignalFramer", (samples,), tensor((2, 2, 20), DType.INT16), tensor((), DType.BOOL), options=framer)
    expect(op, params=0, init_by_word=((28,), (40,)), prepare_by_word=((8, 8, 120, 120), (16, 16, 136, 136)))
    spectrum = tensor((1, 34), DType.INT16)
    op = custom("SignalRfft", (tensor((1, 10), DType.INT16),), spectrum, options={"T": 7, "fft_length": 32})
    expect(op, init_by_word=((32, 436), (48, 448)), scratch=(64,))


@pytest.mark.parametrize("damaged", [b"", b"\x00\x01\x02", flexbuffers.Dumps({"other": 1}), flexbuffers.Dumps([1])])
def test_unusable_custom_options_are_refused(damaged: bytes) -> None:
    op = custom("SignalDelay", (tensor((1, 4)),), tensor((1, 4)), options={})
    op.custom_options = np.frombuffer(damaged, np.uint8)
    with raises(ModelFormatError, ErrorKind.OPERAND, "SignalDelay"):
        requests_of(op, ILP32)


def test_decoders_are_chosen_by_the_ancillary_tensor() -> None:
    def decode(kind: int, output: Tensor) -> Operator:
        return custom("TFLM_DECODE", (constant(bytes(4)), constant(bytes([kind, 1]))), output, options={})

    expect(decode(0, tensor((16,))), init=(), prepare_by_word=((4, 36), (8, 72)))
    expect(decode(2, tensor((4, 4), scales=4, zero_point=3)), prepare_by_word=((4, 40, 4), (8, 80, 4)))
    expect(decode(2, tensor((4, 4), zero_point=3)), prepare_by_word=((4, 40), (8, 80)))
    with pytest.raises(UnsupportedModelError):
        requests_of(decode(9, tensor((16,))), ILP32)


def test_only_the_first_assignment_to_a_variable_takes_its_bytes() -> None:
    def assigning(graph: Graph) -> Operator:
        handle = graph.add_tensor(Tensor("handle", (1,), DType.RESOURCE, Buffer()))
        graph.add_operator(operator("VAR_HANDLE", (), handle, options={"sharedName": b"state"}))
        return graph.add_operator(operator("ASSIGN_VARIABLE", (handle, tensor((1, 1, 1, 80)))))

    main, initial = Graph("main"), Graph("initial")
    first, second = assigning(main), assigning(initial)
    found = requests_in(Model(3, None, [main, initial], [], []), WHEEL)
    assert (found[first].prepare, found[second].prepare) == ((80,), ())
    assert found[main.operators[0]] == Requests(params=16, init=(4,), params_alignment=8)


def test_an_operator_without_a_row_is_a_guess() -> None:
    source, result = tensor((1, 4)), tensor((1, 4))
    for op in (operator("BETAINC", (source, None), result), custom("Mystery", (source,), result, options={})):
        for found in both(op):
            assert not found.known
            assert found.temporaries == (source, result)
            assert sum(found.init) > 0


def test_a_missing_tensor_is_refused() -> None:
    with raises(ModelFormatError, ErrorKind.OPERAND, "CONV_2D", "input 1"):
        requests_of(operator("CONV_2D", (tensor((1, 4, 4, 2)),), tensor((1, 3, 3, 3))), ILP32)


def test_the_table_covers_the_python_resolver() -> None:
    # The resolver registers 118 operators; Ethos-U has no reference kernel, its row is read from the chip's.
    assert len(REFERENCE) == 118
