"""The calls of TFLM's MicroMutableOpResolver by operator.

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/micro/micro_mutable_op_resolver.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import ErrorKind, UnsupportedModelError
from ..model.ir.model import Model, OpCode
from ..operators.table import REFERENCE

_IRREGULAR: Mapping[str, str] = {
    "BATCH_MATMUL": "AddBatchMatMul",
    "CUMSUM": "AddCumSum",
    "PADV2": "AddPadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "AddUnidirectionalSequenceLSTM",
}
"""Of the operators of the schema, those that are called in another way than ``builtin_method`` says."""
_SIGNAL = (
    "Delay Energy FftAutoScale FilterBank FilterBankLog FilterBankSpectralSubtraction FilterBankSquareRoot Framer "
    "Irfft OverlapAdd PCAN Rfft Stacker Window"
)
CUSTOM: Mapping[str, str] = {
    "CIRCULAR_BUFFER": "AddCircularBuffer",
    **{f"Signal{name}": f"Add{name}" for name in _SIGNAL.split()},
    "TFLM_DECODE": "AddDecode",
    "TFLite_Detection_PostProcess": "AddDetectionPostprocess",
    "ethos-u": "AddEthosU",
}
"""By the name of the custom operator in the file; TFLM has these itself."""


@dataclass(frozen=True)
class Registrations:
    """Methods of the resolver to call, and custom operators that the firmware brings itself, both sorted."""

    methods: tuple[str, ...]
    custom: tuple[str, ...]

    @property
    def count(self) -> int:
        """The template argument of MicroMutableOpResolver."""
        return len(self.methods) + len(self.custom)


def registrations(model: Model) -> Registrations:
    """Return the registrations of a resolver for exactly this model.

    Raises UnsupportedModelError for an operator of the schema that TFLM does not have.
    """
    used = {operator.opcode for operator in model.all_operators}
    return Registrations(tuple(sorted(set(_methods(used)))), tuple(sorted(_own(used))))


def every_builtin() -> tuple[str, ...]:
    """Return the methods for all operators of the schema that TFLM has, sorted."""
    return tuple(sorted(builtin_method(name) for name in REFERENCE if name not in CUSTOM))


def builtin_method(name: str) -> str:
    """Return the call for an operator of the schema: ``AddAveragePool2D`` for ``AVERAGE_POOL_2D``.

    Raises UnsupportedModelError for one that TFLM does not have.
    """
    if name not in REFERENCE or name in CUSTOM:
        raise UnsupportedModelError(f"operator {name}: TensorFlow Lite Micro has no kernel for it", ErrorKind.NO_KERNEL)
    return _IRREGULAR.get(name) or f"Add{name.title().replace('_', '')}"


def _methods(used: Iterable[OpCode]) -> Iterable[str]:
    for opcode in used:
        if opcode.name != "CUSTOM":
            yield builtin_method(opcode.label)
        elif opcode.label in CUSTOM:
            yield CUSTOM[opcode.label]


def _own(used: Iterable[OpCode]) -> Iterable[str]:
    return (opcode.label for opcode in used if opcode.name == "CUSTOM" and opcode.label not in CUSTOM)
