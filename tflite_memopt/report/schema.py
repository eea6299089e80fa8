"""JSON Schemas of what commands print, made from the dataclasses, and reports read back into them.

Needs pydantic, which comes with ``pip install tflite-memopt[report]``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from .descriptions import FIELDS
from .extras import need
from .model import SCHEMA_VERSION, Analysis, Comparison, Exploration, Record, Report, Verification, schema_id

KINDS: Mapping[str, type[Any]] = {
    "report": Report,
    "analysis": Analysis,
    "comparison": Comparison,
    "verification": Verification,
    "exploration": Exploration,
}
_COMMANDS = {
    "report": "optimize --report R.json and optimize --json",
    "analysis": "analyze --json",
    "comparison": "compare --json",
    "verification": "verify --json",
    "exploration": "explore --json",
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INFINITE = {"enum": ["inf", "-inf"], "type": "string"}
"""JSON has no infinity: a difference is infinite where shapes differ."""


def schema_of(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of output: one of ``KINDS``."""
    adapter = need("pydantic").TypeAdapter(KINDS[kind])
    made: dict[str, Any] = _with_infinity(adapter.json_schema(mode="serialization"))
    for name, described in {KINDS[kind].__name__: made, **made.get("$defs", {})}.items():
        _describe(name, described)
    extra = {
        "$schema": {"const": schema_id(kind), "description": "Which schema this is.", "type": "string"},
        "schema_version": {"description": "Grows after the dot with new fields.", "type": "string"},
    }
    made["properties"] = extra | made["properties"]
    made["required"] = [*extra, *made["required"]]
    head = {"$schema": _DIALECT, "$id": schema_id(kind), "title": f"tflite-memopt {_COMMANDS[kind]}"}
    return (
        head
        | {"$comment": f"version {SCHEMA_VERSION}; made by scripts/makers/schemas.py"}
        | {key: value for key, value in made.items() if key != "title"}
    )


def _describe(name: str, schema: dict[str, Any]) -> None:
    """Give every property of a dataclass its description."""
    for field, value in schema.get("properties", {}).items():
        value["description"] = FIELDS[name][field]


def schema_text(kind: str) -> str:
    """The text of the file in the folder ``schema``."""
    return json.dumps(schema_of(kind), indent=2) + "\n"


def from_json(text: str | bytes) -> Record:
    """The typed object that :func:`tflite_memopt.report.model.to_json` wrote.

    Fields that this version does not know are ignored. Raises UsageError when the text is no such record, or is one of
    another major version.
    """
    pydantic = need("pydantic")
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise UsageError(f"this is no report of tflite-memopt: it is not JSON ({error})") from error
    named = fields.get("$schema") if isinstance(fields, dict) else None
    kind = next((kind for kind in KINDS if schema_id(kind) == named), None)
    if kind is None:
        known = ", ".join(map(schema_id, KINDS))
        raise UsageError(f"this is no report that this version reads: its $schema is {named!r}, and not one of {known}")
    try:
        made: Record = pydantic.TypeAdapter(KINDS[kind]).validate_python(fields)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"the {kind} is damaged at {where or 'its start'}: {first['msg']}") from error
    return made


def _with_infinity(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_infinity(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        rest = {key: value for key, value in schema.items() if key != "type"}
        return rest | {"anyOf": [{"type": "number"}, _INFINITE]}
    return {key: _with_infinity(value) for key, value in schema.items()}
