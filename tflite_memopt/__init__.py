"""Makes a .tflite model need less RAM on stock TensorFlow Lite Micro, and verifies that it computes the same.

from tflite_memopt import Options, optimize
result = optimize("model.tflite", Options(samples=20))
result.save("small.tflite")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .api import analyze, compare, ram_of, verify
    from .costs.cost import NetworkCost, cost
    from .errors import (
        EquivalenceError,
        InfeasibleError,
        MemoptError,
        ModelFormatError,
        OutputError,
        UnsupportedModelError,
        UsageError,
    )
    from .evidence.equivalence.verdict import Basis, Verdict
    from .options import Options
    from .report.model import Analysis, Comparison, Report
    from .report.schema import from_json
    from .run.explore import explore
    from .run.pipeline import Result, optimize

# Loaded on first use: `import tflite_memopt` itself stays free of numpy and flatbuffers.
_HOMES = {
    name: home
    for home, names in {
        "api": "analyze compare ram_of verify",
        "costs.cost": "NetworkCost cost",
        "errors": "EquivalenceError InfeasibleError MemoptError ModelFormatError OutputError UnsupportedModelError "
        "UsageError",
        "evidence.equivalence.verdict": "Basis Verdict",
        "options": "Options",
        "report.model": "Analysis Comparison Report",
        "report.schema": "from_json",
        "run.explore": "explore",
        "run.pipeline": "Result optimize",
    }.items()
    for name in names.split()
}
__all__ = ["__version__", "analyze", "compare", "cost", "explore", "from_json", "optimize", "ram_of", "verify"]
__all__ += ["Analysis", "Basis", "Comparison", "NetworkCost", "Options", "Report", "Result", "Verdict"]
__all__ += ["EquivalenceError", "InfeasibleError", "MemoptError", "ModelFormatError", "OutputError"]
__all__ += ["UnsupportedModelError", "UsageError"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tflite_memopt' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
