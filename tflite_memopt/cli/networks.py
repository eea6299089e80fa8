"""The option for a kind of network: a table in the help of ``optimize`` and in docs/reference.md."""

from __future__ import annotations

NETWORKS: tuple[tuple[str, str], ...] = (
    ("a window that moves along a signal", "--slide HOP"),
    ("recurrent, over a whole sequence", "--step"),
    ("streaming already, its state an input", "--tie OUT:IN"),
    ("for an image that a camera delivers row by row", "--feed auto"),
    ("from PyTorch, with channels first", "--io channels-last"),
    ("one of several on the board", "codegen A.tflite B.tflite"),
    ("larger than the fastest of two memories", "codegen --memory"),
)
"""What follows "my network is", and the option of ``optimize``, or the command."""


def network_table() -> str:
    """Return the table of the help."""
    width = max(len(kind) for kind, _ in NETWORKS)
    return "\n".join(f"  {kind:{width}}  {option}" for kind, option in NETWORKS)
