"""Options check themselves, and name the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tflite_memopt.errors import UsageError
from tflite_memopt.options import Options

WRONG: list[tuple[str, Any]] = [
    ("kernels", "arm"),
    ("scheduler", "fastest"),
    ("planner", "smallest"),
    ("objective", "ram"),
    ("io", "float"),
    ("runtimes", ()),
    ("runtimes", ("tflm", "onnx")),
    ("runtimes", "tflm"),
    ("halos", ()),
    ("halos", ("keep",)),
    ("time_limit", -1.0),
    ("time_limit", float("nan")),
    ("time_limit", float("inf")),
    ("seed", -1),
    ("samples", 0),
    ("jobs", 0),
    ("budget", 0),
    ("budget", -64),
    ("max_extra_operators", -1),
    ("max_extra_macs", 10),
    ("max_extra_macs", -0.1),
    ("max_extra_macs", float("nan")),
    ("max_extra_work", 1.5),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=lambda each: str(each))
def test_a_wrong_value_is_named(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"option {field}="):
        Options(**{field: value})


def test_the_limits_themselves_are_allowed() -> None:
    Options(time_limit=0, seed=0, samples=1, budget=1, max_extra_operators=0, max_extra_macs=1, max_extra_work=0)
