"""Kinds that call subgraphs or keep variables.

Source of requests: tflite-micro commit 90b983c2b3f1, kernels call_once.cc, if.cc, while.cc, var_handle.cc,
read_variable.cc, assign_variable.cc, and micro_resource_variable.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model.ir.model import Model, Operator
from .kind import OperatorKind
from .requests import IN0, IN1, POINTER, Abi, Asks, Size, needed


def _bytes_of_variable(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for the variable's bytes.

    Only the first assignment to a variable takes them, see ``repeated_assignments``. A handle that is not made
    in the same subgraph is not known yet in Prepare, and then nothing is taken.
    """
    value = needed(operator, IN1)
    return () if variable_of(operator) is None else (value.nbytes,)


def repeated_assignments(model: Model) -> Iterator[Operator]:
    """Yield the ASSIGN_VARIABLE operators whose variable an earlier one, in file order, has allocated."""
    allocated: set[tuple[Any, Any]] = set()
    for operator in model.all_operators:
        variable = variable_of(operator) if operator.name == "ASSIGN_VARIABLE" else None
        if variable in allocated:
            yield operator
        elif variable is not None:
            allocated.add(variable)


def variable_of(operator: Operator) -> tuple[Any, Any] | None:
    """Container and name of the variable of the first input; None when this subgraph does not make the handle."""
    handle = needed(operator, IN0).producer
    if handle is None or handle.name != "VAR_HANDLE":
        return None
    return handle.option("container"), handle.option("sharedName")


def shared_names(model: Model) -> set[Any]:
    """Return the names of a model's variables, which TFLM tells apart by nothing else."""
    return {operator.option("sharedName") for operator in model.all_operators if operator.name == "VAR_HANDLE"}


KINDS: Mapping[str, OperatorKind] = {
    # OpData, which only builds with tensor compression have
    "ASSIGN_VARIABLE": OperatorKind(asks=Asks(0, Size(0, 4, lp64=0), (IN1,), _bytes_of_variable)),
    "CALL_ONCE": OperatorKind(asks=Asks(4, 8), price="free"),
    "IF": OperatorKind(asks=Asks(8, 8, (IN0,)), price="free"),
    "READ_VARIABLE": OperatorKind(asks=Asks(holds=(IN0,))),
    "VAR_HANDLE": OperatorKind(asks=Asks(Size(8, 16), 4, alignment=POINTER), price="free"),
    "WHILE": OperatorKind(asks=Asks(8, 8), price="free", flash=976),
}
