"""Writes schema/*.schema.json from the dataclasses: python -m scripts.makers.schemas"""

from __future__ import annotations

from pathlib import Path

from tflite_memopt.program.files import schema_text as program_schema_text
from tflite_memopt.report.schema import KINDS, schema_text

FOLDER = Path(__file__).parents[2] / "schema"


def main() -> None:
    """Replace every schema."""
    for kind in KINDS:
        (FOLDER / f"{kind}.schema.json").write_text(schema_text(kind))
    (FOLDER / "program.schema.json").write_text(program_schema_text())


if __name__ == "__main__":
    main()
