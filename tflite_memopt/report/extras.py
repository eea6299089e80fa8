"""Packages that only reports need: loaded on first use, with a clear message where they are not installed."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import ErrorKind, UsageError


def need(module: str) -> Any:
    """Return the module of an optional package. Raises UsageError when it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"this needs the package '{module.partition('.')[0]}', which is not installed: "
            "run pip install 'tflite-memopt[report]'",
            ErrorKind.NOT_INSTALLED,
        ) from error
