"""The import rule: imports never climb and never form a circle, and start-up stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tflite_memopt"
LEVELS = (
    ("errors", "solvers/graph", "version"),
    ("model/ir", "solvers/plan", "solvers/schedule"),
    ("operators",),
    ("model/analysis",),
    ("evidence/proof", "model/io", "kernels"),
    ("values",),
    ("options",),
    ("evidence/equivalence", "memory"),
    ("firmware", "report", "search/cascade", "search/rewrite"),
    ("published", "run/candidate"),
    ("run/attempts", "run/streamed"),
    ("run/checking", "run/given"),
    ("run/pipeline",),
    ("costs",),
    ("batch", "run/parts", "serve"),
    ("api", "run/explore"),
    ("cli",),
    ("__init__", "__main__"),
)
"""The parts of the package, lowest first. A part imports from lower levels only."""
ROOMS = ("evidence", "model", "run", "search", "solvers")
"""Folders of parts."""
LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}
SOLVERS = ("solvers/graph", "solvers/plan", "solvers/schedule")
FOLDERS = sorted(part for part in LEVEL_OF if (PACKAGE / part).is_dir() and part != "cli")
"""Each has a door; nobody enters the command line."""
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse(FILES[file].read_text())


@cache
def nodes_of(file: str) -> tuple[ast.AST, ...]:
    """Those that tests look at: imports and calls."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    return tuple(node for node in ast.walk(tree_of(file)) if isinstance(node, kinds))


@cache
def imported(file: str) -> tuple[str, ...]:
    """Files of the package that a file imports from, wherever in it, whether relatively or by name."""
    return tuple(_imported(file, nodes_of(file)))


def imported_to_run(file: str) -> Iterator[str]:
    """The same without what only types need."""

    def is_for_types(node: ast.stmt) -> bool:
        return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"

    body = [node for node in tree_of(file).body if not is_for_types(node)]
    yield from _imported(file, ast.walk(ast.Module(body, [])))


def _imported(file: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level == 0:
            top, *place = (node.module or "").split(".")
            if top != PACKAGE.name:
                continue
        else:
            parents = file.split("/")[: -node.level]
            place = [*parents, *(node.module.split(".") if node.module else [])]
        for alias in node.names:
            for parts in ([*place, alias.name], place):
                found = {f"{'/'.join(parts)}.py", "/".join([*parts, "__init__.py"])} & FILES.keys()
                if found:
                    yield found.pop()
                    break


def part_of(file: str) -> str:
    first, _, rest = file.partition("/")
    parts = (first, rest.partition("/")[0]) if first in ROOMS else (first,)
    return "/".join(parts).removesuffix(".py")


def parts_below() -> Mapping[str, set[str]]:
    """The other parts that each file imports from."""
    return {file: {part_of(other) for other in imported(file)} - {part_of(file)} for file in FILES}


def test_every_part_has_a_level() -> None:
    assert {part_of(file) for file in FILES} - {f"{room}/__init__" for room in ROOMS} == set(LEVEL_OF)


def test_imports_never_climb() -> None:
    climbing = [
        f"{file} imports {other}"
        for file, others in parts_below().items()
        for other in sorted(others)
        if part_of(file) in LEVEL_OF and LEVEL_OF[other] >= LEVEL_OF[part_of(file)]
    ]
    assert climbing == []


def test_imports_form_no_circle() -> None:
    needs = {file: set(imported_to_run(file)) - {file, "__init__.py"} for file in FILES if file != "__init__.py"}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(error.args[1])}") from None


def door_of(part: str) -> set[str]:
    """The modules that a folder's ``__init__`` names as those that others may import."""
    for node in tree_of(f"{part}/__init__.py").body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "DOOR":
            return set(ast.literal_eval(node.value).split())
    raise AssertionError(f"{part}/__init__.py has no DOOR")


@pytest.mark.parametrize("part", FOLDERS)
def test_a_folder_is_entered_by_its_door_alone(part: str) -> None:
    """A module in the door that nobody enters by is private, too."""
    entered = {
        other.removeprefix(f"{part}/").removesuffix(".py")
        for file in FILES
        if part_of(file) != part
        for other in imported(file)
        if part_of(other) == part
    }
    assert entered - {"__init__"} == door_of(part)


def test_solvers_see_only_integers() -> None:
    seen = {
        file: others - {"errors", "solvers/graph"} for file, others in parts_below().items() if part_of(file) in SOLVERS
    }
    assert {file: others for file, others in seen.items() if others} == {}


def test_a_proof_sees_only_models() -> None:
    """What judges a result must not share code with what made it, nor read files."""
    seen = {
        file: others - {"errors", "model/ir"}
        for file, others in parts_below().items()
        if part_of(file) == "evidence/proof"
    }
    # The one exception is a veto: what rewrites know of ranges can only make the proof say less.
    assert {file: others for file, others in seen.items() if others} == {"evidence/proof/run.py": {"model/analysis"}}
    for file in (file for file in FILES if part_of(file) == "evidence/proof"):
        names = [node for node in nodes_of(file) if isinstance(node, (ast.Import, ast.ImportFrom))]
        outside = {(n.module or "") for n in names if isinstance(n, ast.ImportFrom) and n.level == 0}
        outside |= {alias.name for node in names if isinstance(node, ast.Import) for alias in node.names}
        allowed = {
            "__future__",
            "collections",
            "dataclasses",
            "enum",
            "functools",
            "hashlib",
            "itertools",
            "math",
            "numpy",
            "secrets",
        }
        assert {name.partition(".")[0] for name in outside} <= {*allowed, "typing"}, file


def test_only_the_command_line_prints() -> None:
    for file in FILES:
        calls = [node for node in nodes_of(file) if isinstance(node, ast.Call)]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert "print" not in names, file


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


@pytest.mark.parametrize("arguments", [("--version",), ("optimise",)])
def test_the_version_and_a_mistake_are_told_at_once(arguments: tuple[str, ...]) -> None:
    """In a quarter of a second, most of which is Python's own start: neither loads a command, numpy or rich."""
    code = f"""
import sys
from tflite_memopt import cli
sys.argv = ["tflite-memopt", *{arguments}]
try:
    cli.main()
except SystemExit:
    pass
heavy = {{"numpy", "flatbuffers", "rich", "tflite_memopt.options"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
