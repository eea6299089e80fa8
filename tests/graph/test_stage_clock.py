"""Seconds by stage."""

from __future__ import annotations

import pytest

from tflite_memopt.solvers.graph.limits import StageClock


def test_a_stage_that_fails_is_timed_too() -> None:
    clock = StageClock()
    with pytest.raises(ValueError, match="wrong"), clock.stage("read"):
        raise ValueError("wrong")
    assert set(clock.seconds()) == {"read", "total"}
    assert 0 <= clock.seconds()["read"] <= clock.seconds()["total"]
