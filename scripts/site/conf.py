"""The documentation site, built by scripts/docs."""

from __future__ import annotations

from tflite_memopt.version import __version__

project = "tflite-memopt"
release = __version__
extensions = ["myst_parser", "sphinx_click"]
html_theme = "furo"
html_title = f"tflite-memopt {__version__}"
# Headings of three levels can be linked to.
exclude_patterns = ["*.ipynb"]
myst_heading_anchors = 3
# Code blocks that name no language are commands, output or drawings.
highlight_language = "none"
