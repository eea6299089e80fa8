"""Exit codes of the command."""

from __future__ import annotations

NO = 1
"""The answer is no: not equal, or over budget."""
BAD_INPUT = 2
INTERRUPTED = 130
