"""The report of a run: its data, sentences, console, plots, and pages."""

DOOR = (
    "answer",
    "build",
    "console",
    "explanation",
    "exploration",
    "extras",
    "model",
    "node_data",
    "pictures/front",
    "pictures/pages",
    "receipt",
    "repository",
    "schema",
    "summary",
    "targets",
    "warnings",
    "words",
)
"""Modules that other folders may import."""
