"""What TFLM makes of a file as it came, whatever library it links: it runs it, computes something else, or cannot run
it.

Every command asks here first. Faults of a library other than TFLM's own are faults of a target (``faults.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import printable
from ..model.ir.model import Model, Operator, Tensor
from ..model.ir.tensors import values, zero_of
from ..operators.control import variable_of
from .faults import TFLM, faults_of
from .profile import KernelProfile
from .profiles import PROFILES
from .since import PRESENT, TflmBuild
from .support import RUNS, OperatorName, TflmSupport, said_of, support_of

Makes = Literal["runs", "computes otherwise", "cannot run"]
_REFERENCE = PROFILES["reference"]


@dataclass(frozen=True)
class WrongOperator(OperatorName):
    """An operator that every TFLM computes wrongly."""

    fault: str
    """Name of the fault (docs/kernel_faults.md)."""
    condition: str
    """Operators of this kind that have it."""

    def __str__(self) -> str:
        where = "" if self.subgraph == 0 else f" of subgraph {self.subgraph}"
        name = self.output.partition(";")[0]
        return f"operator {self.index} {self.operator} '{name}'{where} ({self.condition}: {self.fault})"


@dataclass(frozen=True)
class AsItCame:
    """What TFLM makes of a file, and why."""

    makes: Makes
    """ "runs"; "computes otherwise": it loads and runs the file, and its outputs are not those of the file; "cannot
    run"."""
    support: TflmSupport = RUNS
    """What keeps TFLM from loading it, or from running it."""
    constants_behind: int = 0
    """Constants behind the flatbuffer, where TFLM does not look: it takes them for activations."""
    wrong: tuple[WrongOperator, ...] = ()
    """Operators that every TFLM computes wrongly."""
    foreign_plan: str | None = None
    """Why TFLM refuses the memory plan in the file, which is of another graph; null without such a plan."""

    @property
    def has_size(self) -> bool:
        """Return whether the RAM that TFLM takes for the file as it came is that of the model."""
        return self.support.runs and not self.constants_behind and self.foreign_plan is None


RUNS_AS_IT_CAME = AsItCame("runs")


def as_it_came(model: Model, profile: KernelProfile = _REFERENCE, build: TflmBuild = PRESENT) -> AsItCame:
    """Return what a build of TFLM makes of a file. ``profile``: whose TFLM counts by its day."""
    support = support_of(model, build)
    wrong, behind = tuple(wrong_operators(model, profile)), len(model.constants_behind)
    if not support.runs:
        return AsItCame("cannot run", support, behind, wrong)
    return AsItCame("computes otherwise" if wrong or behind else "runs", support, behind, wrong)


def with_plan(found: AsItCame, foreign: str | None) -> AsItCame:
    """Return the same of a file with a memory plan of another graph, given why TFLM refuses that; None without one."""
    return found if foreign is None else replace(found, makes="cannot run", foreign_plan=foreign)


def wrong_operators(model: Model, profile: KernelProfile = _REFERENCE) -> Iterator[WrongOperator]:
    """Yield the operators that meet a fault of TFLM itself, in any of its libraries."""
    for number, index, operator in model.located_operators:
        for met in faults_of(operator, profile):
            if met.fault.library == TFLM and met.fault.is_wrong:
                yield WrongOperator(number, index, met.operator, met.output, met.fault.name, met.fault.condition)
    yield from _read_too_early(model)


def _read_too_early(model: Model) -> Iterator[WrongOperator]:
    """Yield reads of variables before the CALL_ONCE that gives them their first value, where that value is lost.

    TFLM begins with zeros, and CALL_ONCE overwrites what the first inference has assigned; LiteRT refuses the read.
    """
    used: dict[object, list[tuple[int, Operator]]] = {}
    for index, operator in enumerate(model.main.operators):
        if operator.name in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            used.setdefault(variable_of(operator), []).append((index, operator))
        if operator.name != "CALL_ONCE":
            continue
        for assignment in model.graphs[int(operator.option("initSubgraphIndex"))].operators:
            uses = used.get(variable_of(assignment), []) if assignment.name == "ASSIGN_VARIABLE" else []
            if not uses or uses[0][1].name != "READ_VARIABLE":
                continue
            at, read = uses[0]
            if any(use.name == "ASSIGN_VARIABLE" for _, use in uses) or not _is_zeros(assignment.required(1)):
                yield WrongOperator(0, at, read.name, read.outputs[0].name, *_TOO_EARLY)


def _is_zeros(tensor: Tensor) -> bool:
    found = values(tensor)
    return found is not None and bool((found == zero_of(tensor)).all())


_TOO_EARLY = ("a lost first value", "before the CALL_ONCE that gives its variable the first value")
"""The fault and its condition."""


def said_of_file(found: AsItCame, mended: bool = False) -> str:
    """Return what TFLM makes of a file that it does not run rightly, and the cure; empty for another one.

    ``mended``: rewrites are the cure, which the caller says.
    """
    faults = []
    if found.foreign_plan is not None:
        faults.append(f"TFLM refuses the file for its memory plan: {found.foreign_plan}; LiteRT ignores it")
    if not found.support.runs:
        faults.append(said_of(found.support, "TFLM cannot load this file as it is" if mended else None))
    if found.constants_behind:
        faults.append(said_of_behind(found.constants_behind, mended))
    if found.wrong and found.support.runs:
        faults.append(f"TFLM computes this file otherwise: {said_of_wrong(found.wrong, mended)}")
    return printable("; ".join(faults))


def said_of_behind(constants: int, mended: bool = False) -> str:
    """Say what TFLM does with weights that it does not see."""
    cure = "" if mended else "; optimize writes them inline"
    return (
        "TFLM does not read weights behind the flatbuffer, where litert-quantizer writes them from 256 KiB of "
        f"constants on: it computes this file without its {constants} constants{cure}"
    )


def said_of_wrong(wrong: tuple[WrongOperator, ...], mended: bool = False) -> str:
    """Name the operators that TFLM computes wrongly, the first and how many there are, and what to do."""
    first, *others = wrong
    more = f" and {len(others)} more" if others else ""
    cure = _CURES.get(first.operator) or _CURES.get(first.fault, "replace the layer")
    return f"{first}{more}" if mended else f"{first}{more}; {cure}"


_CURES: Mapping[str, str] = {
    "BATCH_MATMUL": "quantize it with one scale per tensor, or let optimize --allow-approximate write it as a "
    "FULLY_CONNECTED, which is right on both runtimes",
    "DEQUANTIZE": "optimize folds constants; for another tensor, quantize it with one scale",
    "RELU6": "optimize writes it as a RELU, which rescales",
    "READ_VARIABLE": "put CALL_ONCE first, which Vela moves behind the reads",
    "SPACE_TO_BATCH_ND": "optimize pads before it, where the padding is constant",
    "ADD": "write the activation as an operator of its own",
    "DIV": "multiply by the reciprocal, or keep this layer in float",
    "TANH": "give its output the scale 1/128 and the zero point 0",
    "bias of another width": "give it a bias of 32 bits for int8, of 64 for int16",
    "weights off zero": "quantize these weights symmetrically",
}
"""By the kind of operator, or by the name of the fault."""
