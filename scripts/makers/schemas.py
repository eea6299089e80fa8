"""Write schema/*.schema.json from the dataclasses: python -m scripts.makers.schemas"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic import TypeAdapter

from tflite_memopt.evidence.equivalence import verdict
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.ir import change
from tflite_memopt.report import answer, model
from tflite_memopt.report.model import SCHEMA_VERSION, schema_id
from tflite_memopt.report.schema import KINDS
from tflite_memopt.run.parts.files import schema_text as program_schema_text
from tflite_memopt.search.memory import figures, reserve
from tflite_memopt.target.kernels import support

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
    texts = _descriptions()
    made: dict[str, Any] = _with_infinity(TypeAdapter(KINDS[kind]).json_schema(mode="serialization"))
    for name, described in {KINDS[kind].__name__: made, **made.get("$defs", {})}.items():
        for field, value in described.get("properties", {}).items():
            value["description"] = texts[name][field]
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


def _descriptions() -> dict[str, Mapping[str, str]]:
    """Return the string below each field of the report's dataclasses, by the name of the class and of the field."""
    modules = (model, answer, reserve, figures, verdict, plan_label, change, support)
    there = {name: each for module in modules for name, each in vars(module).items() if isinstance(each, type)}
    return {name: _described(each) for name, each in there.items() if is_dataclass(each)}


def _described(owner: type) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for base in filter(is_dataclass, reversed(owner.__mro__)):
        (tree,) = ast.parse(dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


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
