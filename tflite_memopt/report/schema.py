"""Read the JSON of the commands back into the dataclasses.

Needs pydantic, which comes with ``pip install tflite-memopt[report]``.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import ErrorKind, UsageError, imported
from .model import KINDS, Record, schema_id


def need_pydantic() -> Any:
    """Return pydantic. Raises UsageError where it is not installed."""
    return imported(
        "pydantic",
        "this needs the package 'pydantic', which is not installed: run pip install 'tflite-memopt[report]'",
    )


def from_json(text: str | bytes) -> Record:
    """Return the typed object that :func:`tflite_memopt.report.model.to_json` wrote.

    Fields that this version does not know are ignored. Raises UsageError when the text is no such record, or is one of
    another major version.
    """
    pydantic = need_pydantic()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"this is not a report of tflite-memopt: it is not JSON ({error})", ErrorKind.FORMAT
        ) from error
    named = fields.get("$schema") if isinstance(fields, dict) else None
    kind = next((kind for kind in KINDS if schema_id(kind) == named), None)
    if kind is None:
        known = ", ".join(map(schema_id, KINDS))
        raise UsageError(
            f"this version cannot read the report: its $schema is {named!r}, not one of {known}", ErrorKind.FORMAT
        )
    try:
        made: Record = pydantic.TypeAdapter(KINDS[kind]).validate_python(fields)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"the {kind} is damaged at {where or 'its start'}: {first['msg']}", ErrorKind.FORMAT
        ) from error
    return made
