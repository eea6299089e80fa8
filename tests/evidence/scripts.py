"""Loads a module of scripts/ the way scripts/paper does: with that folder on the path."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str) -> ModuleType:
    """The module, with scripts/ on the path while it is imported."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(SCRIPTS))
