"""Control flow and variables: CALL_ONCE, IF, WHILE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE.

Source: tflite-micro commit 90b983c2b3f1, kernels call_once.cc, if.cc, while.cc, var_handle.cc,
read_variable.cc, assign_variable.cc, and micro_resource_variable.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.model import Model, Operator
from .model import Abi, RequestRule, Requests, Size
from .plain import Plain
from .slots import IN0, IN1, held, needed

_VAR_HANDLE_PARAMS = Size(8, 16)  # TfLiteVarHandleParams
_VAR_HANDLE_DATA = Size(4, 4)  # OpData
_POINTER = Size(4, 8)
_ASSIGN_DATA = Size(0, 4, lp64=0)  # OpData, which only builds with tensor compression have

CONTROL: Mapping[str, RequestRule] = {
    "CALL_ONCE": Plain(Size(4, 4), Size(8, 8)),  # TfLiteCallOnceParams; OpData
    "IF": Plain(Size(8, 8), Size(8, 8), (IN0,)),  # TfLiteIfParams; OpData
    "READ_VARIABLE": Plain(holds=(IN0,)),
    "WHILE": Plain(Size(8, 8), Size(8, 8)),  # TfLiteWhileParams; OpData
}
"""Rows by the builtin's schema name."""


def var_handle(operator: Operator, abi: Abi) -> Requests:
    """VAR_HANDLE: its parameters are two pointers."""
    return Requests(
        params=_VAR_HANDLE_PARAMS.on(abi),
        init=(_VAR_HANDLE_DATA.on(abi),),
        params_alignment=_POINTER.on(abi),
    )


def assign_variable(operator: Operator, abi: Abi) -> Requests:
    """ASSIGN_VARIABLE: the variable's bytes, in Prepare.

    Only the first assignment to a variable takes them, see ``repeated_assignments``. A handle that is not made
    in the same subgraph is not known yet in Prepare, and then nothing is taken.
    """
    value = needed(operator, IN1)
    return Requests(
        init=(_ASSIGN_DATA.on(abi),) if _ASSIGN_DATA.on(abi) else (),
        prepare=() if _variable_of(operator) is None else (value.nbytes,),
        temporaries=held(operator, (IN1,)),
    )


def repeated_assignments(model: Model) -> Iterator[Operator]:
    """The ASSIGN_VARIABLE operators whose variable an earlier one, in file order, has allocated."""
    allocated: set[tuple[Any, Any]] = set()
    for operator in (operator for graph in model.graphs for operator in graph.operators):
        variable = _variable_of(operator) if operator.name == "ASSIGN_VARIABLE" else None
        if variable in allocated:
            yield operator
        elif variable is not None:
            allocated.add(variable)


def _variable_of(operator: Operator) -> tuple[Any, Any] | None:
    """Container and name of the variable of the first input; None when this subgraph does not make the handle."""
    handle = needed(operator, IN0).producer
    if handle is None or handle.name != "VAR_HANDLE":
        return None
    return handle.option("container"), handle.option("sharedName")
