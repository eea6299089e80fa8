"""The import rule: data flows one way, and start-up stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tflite_memopt"
# Lower may not import higher. Modules at the top level that bridge two layers stand with the higher one.
LEVELS = {
    "errors": 0,
    "budget": 0,
    "version": 0,
    "ir": 1,
    "analysis": 2,
    "kernels": 2,
    "io": 3,
    "rewrite": 3,
    "schedule": 3,
    "plan": 3,
    "equivalence": 3,
    "report": 3,
    "options": 3,
    "pins": 3,
    "sharing": 4,
    "atoms": 5,
    "problems": 6,
    "measure": 7,
    "proof": 7,
    "placing": 8,
    "evaluating": 9,
    "rewriting": 10,
    "warnings_for": 8,
    "striping": 10,
    "cascading": 11,
    "comparing": 8,
    "pipeline": 12,
    "cli": 13,
    "__init__": 13,
    "__main__": 14,
}
SOLVERS = ("schedule", "plan")
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Top-level parts of the package that a file imports, whether relatively or by name."""
    depth = len(path.relative_to(PACKAGE).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level == depth:
                names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
                found.update(names)
            elif node.level == 0 and (node.module or "").startswith("tflite_memopt."):
                found.add((node.module or "").split(".")[1])
    return found


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    own = part_of(path)
    for other in imported(path) - {own}:
        assert other in LEVELS, f"{path} imports {other}, which has no level here"
        assert LEVELS[other] <= LEVELS[own], f"{own} must not import {other}"
        assert LEVELS[other] < LEVELS[own] or {own, other} == {"analysis", "kernels"}, f"{own} and {other} are peers"


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) in SOLVERS], ids=lambda path: path.name)
def test_solvers_see_only_integers(path: Path) -> None:
    assert imported(path) - {part_of(path)} <= {"errors", "budget"}


def test_only_the_command_line_prints() -> None:
    for path in FILES:
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert "print" not in names, path


def test_importing_the_package_and_analysing_load_no_interpreter() -> None:
    code = """
import sys
import tflite_memopt
assert "numpy" not in sys.modules
tflite_memopt.analyze
heavy = {"tensorflow", "tflite_micro", "ai_edge_litert.interpreter", "rich.table"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
