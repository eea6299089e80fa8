"""Exit codes of the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..report.answer import Answer

DONE = 0
NOT_EQUAL = 1
BAD_INPUT = 2
OVER_BUDGET = 3
INTERNAL_ERROR = 4
CONTRADICTED = 5
INTERRUPTED = 130


EXIT_CODES: Mapping[int, str] = {
    DONE: "done",
    NOT_EQUAL: "the models are not equal, the runner has no verdict, or a file computes wrongly with the target's "
    "kernels; no model is written. batch: a model has no result",
    BAD_INPUT: "bad input: a file, an option, or a model that TFLM cannot run; nothing is written, except for models "
    "with uint8 activations, which old versions of TFLM run",
    OVER_BUDGET: "over budget (the model is written all the same), or larger than the baseline",
    INTERNAL_ERROR: "internal error: please report it; nothing is written",
    CONTRADICTED: "verify: a runtime differs where the proof says equal: please report both files",
    INTERRUPTED: "interrupted; nothing is written, except by batch, which continues with the same command",
}
"""Their meanings, for ``--help``."""


def code_of(answer: Answer) -> int:
    """Return the code that every command ends with for this answer."""
    if answer.judgement != "right":
        return BAD_INPUT if answer.judgement == "cannot run" else NOT_EQUAL
    is_missed = answer.fit is not None and answer.fit.is_budget and not answer.fit.fits
    return OVER_BUDGET if is_missed else DONE


def exit_code_table() -> str:
    """Return the table of the help."""
    return "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
