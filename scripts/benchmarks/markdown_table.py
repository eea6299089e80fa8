"""Markdown tables: the lines that the benchmarks write."""

from __future__ import annotations

from collections.abc import Iterator


def table(header: str) -> Iterator[str]:
    """The head of a table; columns are separated by " | "."""
    yield f"| {header} |"
    yield "|" + "---|" * (header.count("|") + 1)


def row(*cells: object) -> str:
    """A line of a table; whole numbers are grouped by thousands."""
    texts = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
