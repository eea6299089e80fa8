"""The documentation site, built by scripts/docs.

The navigation comes from the lists of links in docs/index.md. The page of commands is generated from their options, the
docstrings of the API, and the descriptions of the report's fields.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import rmtree

from sphinx.application import Sphinx

from tflite_memopt import __all__ as public
from tflite_memopt.cli import COMMANDS
from tflite_memopt.report.model import KINDS
from tflite_memopt.version import __version__

project = "tflite-memopt"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "sphinx_copybutton"]
html_theme = "furo"
html_title = f"tflite-memopt {__version__}"
# Headings of three levels can be linked to.
myst_heading_anchors = 3
# Code blocks that name no language are commands, output or drawings.
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "

_MADE = Path(__file__).parents[2] / "docs" / "_made"
_SECTION = re.compile(r"^### (.*)\n\n+((?:- \[.*\n(?: .*\n)*)+)", re.MULTILINE)
_PAGE = re.compile(r"^- \[.*?\]\((\w+)\.md\)", re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Register the hook that adds the navigation to the first page."""
    app.connect("source-read", _add_navigation)


def _add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Append a hidden table of contents for every section of links: on GitHub the page is plain Markdown."""
    if name != "index":
        return
    sections = {title: _PAGE.findall(links) for title, links in _SECTION.findall(source[0])}
    sections["Reference"].append("_made/commands")
    for title, pages in sections.items():
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) + "\n```\n"


def _commands() -> str:
    """Return the text of the page of commands."""
    parts = ["# Commands, Python, fields\n\n## Commands"]
    parts += [
        _directives(f".. click:: tflite_memopt.cli.{name}:{name}\n   :prog: tflite-memopt {name}") for name in COMMANDS
    ]
    functions = [f".. autofunction:: tflite_memopt.{name}" for name in public if name[0].islower()]
    classes = [f".. autoclass:: tflite_memopt.{name}\n   :members:" for name in public if name[0].isupper()]
    parts += ["## Python", _directives("\n\n".join(functions + classes)), "## Fields of the reports"]
    for owner, fields in _fields().items():
        rows = [f"| `{field}` | {each['description']} |" for field, each in fields.items()]
        parts.append("\n".join([f"### {owner}\n", "| field | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _fields() -> dict[str, dict[str, dict[str, str]]]:
    """Return the fields of every object in the schemas, by its name; titles are those of commands."""
    schemas = [json.loads((_MADE.parents[1] / f"schema/{kind}.schema.json").read_text()) for kind in KINDS]
    defined = {name: each for schema in schemas for name, each in schema["$defs"].items()}
    objects = {schema["title"]: schema for schema in schemas} | dict(sorted(defined.items()))
    return {name: each["properties"] for name, each in objects.items() if "properties" in each}


def _directives(text: str) -> str:
    return f"```{{eval-rst}}\n{text}\n```"


rmtree(_MADE, ignore_errors=True)  # an older version may have made other pages
_MADE.mkdir()
(_MADE / "commands.md").write_text(_commands())
