"""The import rule: data flows one way, in few levels, and start-up stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tflite_memopt"
LEVELS = (
    ("errors", "field_types", "graph", "version"),
    ("ir", "plan", "schedule"),
    ("analysis", "io", "kernels", "operators"),
    ("options",),
    ("memory", "equivalence"),
    ("cascade", "firmware", "report", "rewrite"),
    ("batch", "oracle", "shaping"),
    ("pipeline",),
    ("exploring", "keras_model"),
    ("cli",),
    ("__init__", "__main__"),
)
"""The top of the package, lowest first. A part imports from lower levels, and always from the next one."""
LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}
SOLVERS = ("graph", "plan", "schedule")
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Top-level parts of the package that a file imports, whether relatively or by name."""
    depth = len(path.relative_to(PACKAGE).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level == depth:
            found.update([node.module.split(".")[0]] if node.module else [alias.name for alias in node.names])
        elif node.level == 0 and (node.module or "").startswith("tflite_memopt."):
            found.add((node.module or "").split(".")[1])
    return found


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(part: str) -> set[str]:
    return {other for path in FILES if part_of(path) == part for other in imported(path)} - {part}


def test_nothing_lies_loose_at_the_top() -> None:
    assert len(LEVELS) <= 11
    assert {part_of(path) for path in FILES} == set(LEVEL_OF)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    own = part_of(path)
    for other in imported(path) - {own}:
        assert LEVEL_OF[other] < LEVEL_OF[own], f"{path} must not import {other}"


@pytest.mark.parametrize("part", [part for part, level in LEVEL_OF.items() if level > 0 and part != "__init__"])
def test_no_part_stands_higher_than_it_must(part: str) -> None:
    below = max(LEVEL_OF[other] for other in imports_of(part)) if imports_of(part) else -1
    assert below == LEVEL_OF[part] - 1, f"{part} could stand one above level {below}"


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) in SOLVERS], ids=lambda path: path.name)
def test_solvers_see_only_integers(path: Path) -> None:
    assert imported(path) - {part_of(path)} <= {"errors", "graph"}


def test_no_class_has_the_name_of_another() -> None:
    where: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name.lstrip("_"), []).append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


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
