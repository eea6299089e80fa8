"""Write schema/*.schema.json from the dataclasses: python -m scripts.makers.schemas"""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import DataclassSchema

from tflite_memopt.report.model import KINDS, SCHEMA_VERSION, schema_id
from tflite_memopt.run.parts.files import schema_text as program_schema_text

FOLDER = Path(__file__).parents[2] / "schema"
_COMMANDS = {
    "report": "optimize --report R.json",
    "analysis": "analyze --json",
    "comparison": "compare --json",
    "verification": "verify --json",
    "exploration": "explore --json",
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INFINITE = {"enum": ["inf", "-inf"], "type": "string"}
"""JSON has no infinity: a difference is infinite where shapes differ."""


def main() -> None:
    """Replace every schema."""
    for kind in KINDS:
        (FOLDER / f"{kind}.schema.json").write_text(schema_text(kind))
    (FOLDER / "program.schema.json").write_text(program_schema_text())


def schema_text(kind: str) -> str:
    """The text of the file in the folder ``schema``; ``kind`` is one of ``KINDS``."""
    made = _with_infinity(_described(KINDS[kind]))
    extra = {
        "$schema": {"const": schema_id(kind), "description": "Which schema this is.", "type": "string"},
        "schema_version": {"description": "Grows after the dot with new fields.", "type": "string"},
    }
    made["properties"] = extra | made["properties"]
    made["required"] = [*extra, *made["required"]]
    head = {
        "$schema": _DIALECT,
        "$id": schema_id(kind),
        "title": f"tflite-memopt {_COMMANDS[kind]}",
        "$comment": f"version {SCHEMA_VERSION}; made by scripts/makers/schemas.py",
    }
    rest = {key: value for key, value in made.items() if key != "title"}
    return json.dumps(head | rest, indent=2) + "\n"


class _Inheriting(GenerateJsonSchema):
    """Pydantic describes a field by the string below it, but not in classes that inherit the field."""

    def dataclass_schema(self, schema: DataclassSchema) -> dict[str, Any]:
        made = super().dataclass_schema(schema)
        for base in filter(is_dataclass, schema["cls"].__mro__[1:]):
            for name, field in _described(base)["properties"].items():
                made["properties"][name].setdefault("description", field["description"])
        for name, field in made["properties"].items():
            if "description" not in field:
                raise ValueError(f"write a text below the field {schema['cls'].__name__}.{name}")
            field["description"] = " ".join(field["description"].split())
        return made


def _described(owner: type) -> dict[str, Any]:
    # Only a type without a configuration of its own takes one.
    adapter = TypeAdapter(tuple[owner], config=ConfigDict(use_attribute_docstrings=True))  # type: ignore[valid-type]
    classes = adapter.json_schema(schema_generator=_Inheriting, mode="serialization")["$defs"]
    made: dict[str, Any] = classes.pop(owner.__name__)
    return {"$defs": classes} | made if classes else made


def _with_infinity(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_infinity(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        rest = {key: value for key, value in schema.items() if key != "type"}
        return rest | {"anyOf": [{"type": "number"}, _INFINITE]}
    return {key: _with_infinity(value) for key, value in schema.items()}


if __name__ == "__main__":
    main()
