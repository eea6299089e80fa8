"""UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF.

Source: tflite-micro commit 90b983c2b3f1, kernels unidirectional_sequence_lstm.cc, lstm_eval.cc,
lstm_eval_common.cc, svdf_common.cc.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator
from .model import Abi, Requests, Size
from .slots import IN0, IN1, OUT0, Slot, held, inputs, needed

_INT32 = 4
_LSTM_PARAMS = Size(16, 16)  # TfLiteUnidirectionalSequenceLSTMParams
_LSTM_DATA = Size(688, 688)  # OpDataLSTM
_LSTM_INPUTS = 24
_LSTM_BUFFERS = 4
_HIDDEN_STATE = Slot("input", 18)
_CELL_STATE = Slot("input", 19)
_SVDF_PARAMS = Size(12, 12, short=8)  # TfLiteSVDFParams
_SVDF_DATA = Size(36, 36)  # OpDataSvdf
_SVDF_INPUTS = 5


def unidirectional_sequence_lstm(operator: Operator, abi: Abi) -> Requests:
    """The LSTM: four scratch buffers of the cell state's type, one per gate, of batch x state elements."""
    activation = needed(operator, IN0)
    batch = activation.shape[1 if operator.option("timeMajor", False) else 0]
    state = needed(operator, _HIDDEN_STATE).shape[1]
    gate = batch * state * needed(operator, _CELL_STATE).dtype.arena_bytes
    return Requests(
        params=_LSTM_PARAMS.on(abi),
        init=(_LSTM_DATA.on(abi),),
        scratch=(gate,) * _LSTM_BUFFERS,
        temporaries=held(operator, (*inputs(_LSTM_INPUTS), OUT0)),
    )


def svdf(operator: Operator, abi: Abi) -> Requests:
    """SVDF: scratch for the filters' dot products and, in integer models, for the units' sums."""
    activation = needed(operator, IN0)
    batch, filters = activation.shape[0], needed(operator, IN1).shape[0]
    scratch: tuple[int, ...] = (batch * filters * _INT32,)
    if activation.dtype is DType.INT8:
        units = filters // int(operator.option("rank", 1))
        scratch += (batch * units * _INT32,)
    return Requests(
        params=_SVDF_PARAMS.on(abi),
        init=(_SVDF_DATA.on(abi),),
        scratch=scratch,
        temporaries=held(operator, (*inputs(_SVDF_INPUTS), OUT0)),
    )
