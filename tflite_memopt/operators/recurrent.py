"""Kinds with a state of their own: UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF.

Source of requests: tflite-micro commit 90b983c2b3f1, kernels unidirectional_sequence_lstm.cc, lstm_eval.cc,
lstm_eval_common.cc, svdf_common.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.ir.model import DType, Operator
from .kind import TO_8, TO_16, OperatorKind, Tflm
from .requests import IN0, IN1, IN2, INT, OUT0, Abi, Asks, Size, Slot, inputs, needed

HIDDEN_STATE, CELL_STATE = Slot("input", 18), Slot("input", 19)
"""Of the LSTM."""


def _gates(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for four buffers of the cell state's type, one per gate, of batch x state elements."""
    batch = needed(operator, IN0).shape[1 if operator.option("timeMajor", False) else 0]
    state = needed(operator, HIDDEN_STATE).shape[1]
    return (batch * state * needed(operator, CELL_STATE).dtype.arena_bytes,) * 4


def _products(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for the filters' dot products and, in integer models, for the units' sums."""
    activation = needed(operator, IN0)
    batch, filters = activation.shape[0], needed(operator, IN1).shape[0]
    units = (filters // int(operator.option("rank", 1)),) if activation.dtype is DType.INT8 else ()
    return tuple(batch * count * INT for count in (filters, *units))


def _macs_of_gates(operator: Operator) -> int:
    # Slots 1 to 8 are the input and recurrent weights of the four gates; each is used at every time step.
    x = needed(operator, IN0)
    steps = x.elements // max(x.shape[-1], 1)
    return steps * sum(t.elements for t in operator.inputs[1:9] if t is not None)


def _macs(operator: Operator) -> int:
    x = needed(operator, IN0)
    return (x.shape[0] if x.shape else 1) * (needed(operator, IN1).elements + needed(operator, IN2).elements)


_SVDF = Asks(Size(12, short=8), 36, (*inputs(5), OUT0), scratch=_products)  # OpDataSvdf
_LSTM = Asks(16, 688, (*inputs(24), OUT0), scratch=_gates)  # OpDataLSTM
KINDS: Mapping[str, OperatorKind] = {
    **dict.fromkeys(
        ("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"),
        OperatorKind(
            instead="unroll it (unroll=True), or call one step at a time with its states as inputs and outputs"
        ),
    ),
    "SVDF": OperatorKind(Tflm(TO_8, weights=1), _SVDF, "products", macs=_macs),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OperatorKind(Tflm(TO_16, weights=1), _LSTM, "products", macs=_macs_of_gates),
}
