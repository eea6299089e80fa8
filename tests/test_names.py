"""What comments, docstrings, and messages of the package name is there: files, options of the command line, fields."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import click

from tflite_memopt import Options
from tflite_memopt.cli import cli

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tflite_memopt"
FILES = sorted(path for suffix in ("py", "jinja", "pxd") for path in PACKAGE.rglob(f"*.{suffix}"))
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("schema/*.md")))
FOREIGN_FILES = {"create_tflm_tree.py", "idf.py", "node_data_builder.py"}
"""Of TFLM, of ESP-IDF, and of Model Explorer."""
FOREIGN_OPTIONS = {"--directory", "--gc-sections", "--its", "--options", "--verify"}
"""Of a linker, of git, of the commands of west and idf.py, and a line of a drawing."""
_FILE = re.compile(r"(?<![\w/.])((?:\w+/)*\w+\.py)\b")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]\b(?!-)")
_FIELD = re.compile(r"``options\.(\w+)")


def options_of_commands() -> set[str]:
    context = click.Context(cli)
    commands = [cli, *(cli.get_command(context, name) for name in cli.list_commands(context))]
    params = [param for command in commands if command is not None for param in command.get_params(context)]
    return {name for param in params for name in (*param.opts, *param.secondary_opts)}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files_that_are_named_exist() -> None:
    there = {f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*.py") if ".venv" not in path.as_posix()}
    missing = [
        f"{name_of(path)} names {name}"
        for path in (*FILES, *PAGES)
        for name in sorted(set(_FILE.findall(path.read_text())) - FOREIGN_FILES)
        if "NAME" not in name and not any(each.endswith(f"/{name}") for each in there)
    ]
    assert missing == []


def test_options_that_are_named_exist() -> None:
    known = options_of_commands() | FOREIGN_OPTIONS
    texts = {name_of(path): path.read_text() for path in FILES if path.suffix == ".py"}
    assert [(name, gone) for name, text in texts.items() if (gone := set(_OPTION.findall(text)) - known)] == []


def test_fields_of_options_that_are_named_exist() -> None:
    known = {each.name for each in fields(Options)} | set(dir(Options))
    texts = {name_of(path): path.read_text() for path in FILES if path.suffix == ".py"}
    assert [(name, gone) for name, text in texts.items() if (gone := set(_FIELD.findall(text)) - known)] == []


def test_public_classes_have_names_of_their_own() -> None:
    modules = [path for path in FILES if path.suffix == ".py"]
    names = [name for path in modules for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE)]
    assert sorted({name for name in names if names.count(name) > 1}) == []
