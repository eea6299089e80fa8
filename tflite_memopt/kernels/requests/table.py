"""The index: one row per operator that tflite-micro's PythonOpsResolver registers.

Source: tflite-micro commit 90b983c2b3f1, python/tflite_micro/python_ops_resolver.cc and
tensorflow/lite/micro/micro_mutable_op_resolver.h. The Ethos-U operator has no reference kernel, hence no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.check import misfit
from ...ir.model import Model, Operator
from . import convolution, custom, dense, elementwise, moves, recurrent, reduction, signal
from .control import CONTROL, assign_variable, repeated_assignments, var_handle
from .model import Abi, RequestRule, Requests, Size
from .signal import SIGNAL
from .simple import SIMPLE

# For an operator without a row: as much as the largest structures of the tables, the LSTM's aside.
_GUESSED_PARAMS = Size(40, 40)
_GUESSED_DATA = Size(256, 256)

REFERENCE: Mapping[str, RequestRule] = {
    **SIMPLE,
    **CONTROL,
    **SIGNAL,
    "ADD_N": elementwise.add_n,
    "ASSIGN_VARIABLE": assign_variable,
    "BATCH_MATMUL": dense.batch_matmul,
    "CIRCULAR_BUFFER": custom.circular_buffer,
    "CONCATENATION": moves.concatenation,
    "CONV_2D": convolution.conv_2d,
    "CUMSUM": elementwise.cumsum,
    "DEPTHWISE_CONV_2D": convolution.depthwise_conv_2d,
    "EMBEDDING_LOOKUP": moves.embedding_lookup,
    "FULLY_CONNECTED": dense.fully_connected,
    "LOG_SOFTMAX": elementwise.log_softmax,
    "MEAN": reduction.mean_or_sum,
    "MIRROR_PAD": moves.mirror_pad,
    "REDUCE_ALL": reduction.reduce_all,
    "REDUCE_MAX": reduction.minimum_or_maximum,
    "REDUCE_MIN": reduction.minimum_or_maximum,
    "RESHAPE": moves.reshape,
    "SOFTMAX": elementwise.softmax,
    "SUM": reduction.mean_or_sum,
    "SVDF": recurrent.svdf,
    "SignalDelay": signal.delay,
    "SignalFilterBank": signal.filter_bank,
    "SignalFilterBankSpectralSubtraction": signal.spectral_subtraction,
    "SignalFramer": signal.framer,
    "SignalIrfft": signal.irfft,
    "SignalOverlapAdd": signal.overlap_add,
    "SignalRfft": signal.rfft,
    "SignalStacker": signal.stacker,
    "TFLM_DECODE": custom.decode,
    "TFLite_Detection_PostProcess": custom.detection_postprocess,
    "ethos-u": custom.ethos_u,
    "TRANSPOSE_CONV": convolution.transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": recurrent.unidirectional_sequence_lstm,
    "VAR_HANDLE": var_handle,
}
"""Rules by the builtin's schema name, or by custom code."""


def requests_of(operator: Operator, abi: Abi) -> Requests:
    """What the operator's reference kernel takes from the arena; a guess when it has no row."""
    rule = REFERENCE.get(operator.opcode.label)
    try:
        return _guess(operator, abi) if rule is None else rule(operator, abi)
    except IndexError as error:
        raise misfit(operator) from error


def requests_in(model: Model, abi: Abi, rule: RequestRule = requests_of) -> dict[Operator, Requests]:
    """The requests of every operator of a model, in the order in which TFLM prepares them.

    Differs from the rule in one point that a single operator cannot know: an ASSIGN_VARIABLE to a variable
    that an earlier one has allocated takes no buffer.
    """
    asked = {operator: rule(operator, abi) for graph in model.graphs for operator in graph.operators}
    for operator in repeated_assignments(model):
        asked[operator] = replace(asked[operator], prepare=())
    return asked


def _guess(operator: Operator, abi: Abi) -> Requests:
    return Requests(
        params=_GUESSED_PARAMS.on(abi),
        init=(_GUESSED_DATA.on(abi),),
        temporaries=(*operator.present_inputs(), *operator.outputs),
        known=False,
    )
