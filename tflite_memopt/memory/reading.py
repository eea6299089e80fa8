"""A file as the model that its plan makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..analysis.npu_places import mark_npu_places
from ..analysis.placeholders import mark_placeholders
from ..errors import ModelFormatError, UnsupportedModelError
from ..io import offline_plan
from ..io.reader import read_model
from ..ir.check import check_model
from ..ir.model import Model


def read_planned(data: bytes, name: str | None = None) -> Model:
    """The model of a file, checked, with the variables marked that its plan lets a loop's result grow in.

    Whoever reads a file to plan it anew needs these marks: without them such a variable has a first value to keep.
    What an NPU's commands have addresses of is fixed where the plan has it. ``name``: of the file, for messages.
    Raises ModelFormatError for a bad file, UnsupportedModelError where the NPU's places are not said.
    """
    with naming(name):
        model = read_model(data)
        check_model(model)  # loops are followed next: their subgraphs must be there
        planned = offline_plan.decode(model) or {}
        mark_placeholders(model, planned)
        mark_npu_places(model, planned)
    return model


@contextmanager
def naming(name: str | None) -> Iterator[None]:
    """Name the file in the errors that it causes; None where it has no name."""
    try:
        yield
    except (ModelFormatError, UnsupportedModelError) as error:
        if name is None:
            raise
        raise type(error)(f"'{name}': {error}") from error
