"""The documentation site, built by scripts/docs. Pages of commands and the API are made here, from their docstrings."""

from __future__ import annotations

from pathlib import Path

from tflite_memopt import __all__ as public
from tflite_memopt.cli import COMMANDS
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

_PAGE = "# {title}\n\n```{{eval-rst}}\n{directives}\n```\n"
_MADE = Path(__file__).parents[2] / "docs" / "_made"


def _write(name: str, title: str, directives: str) -> None:
    _MADE.mkdir(exist_ok=True)
    (_MADE / f"{name}.md").write_text(_PAGE.format(title=title, directives=directives))


for _name in COMMANDS:
    _write(_name, _name, f".. click:: tflite_memopt.cli.{_name}:{_name}\n   :prog: tflite-memopt {_name}")
_functions = [each for each in public if each[0].islower()]
_classes = [each for each in public if each[0].isupper()]
_directives = [f".. autofunction:: tflite_memopt.{each}" for each in _functions]
_directives += [f".. autoclass:: tflite_memopt.{each}\n   :members:" for each in _classes]
_write("api", "Python API", "\n\n".join(_directives))
