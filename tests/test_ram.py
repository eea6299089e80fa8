"""The RAM of a model as one number."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cells import cell_network
from tests.dump import dump_model
from tests.faults import wrong_option
from tests.models import ALL, mobile_chain
from tflite_memopt import ModelFormatError, Options, analyze, optimize, ram_of
from tflite_memopt.model.io.writer import write_model

TARGETS = (None, "cortex-m4", "cortex-m55", "esp32s3", "riscv32")


@pytest.mark.parametrize("name", ALL)
def test_it_is_the_arena_that_analyze_reports(name: str) -> None:
    data = write_model(ALL[name]())
    for target in TARGETS:
        assert (
            ram_of(data, target)
            == analyze(data, "portable" if target is None else None, target).memory.required_for_target
        )
    assert ram_of(data, kernels="reference") == analyze(data, "reference").memory.required_for_target


def test_bytes_a_path_and_a_model_in_memory_have_the_same_answer(tmp_path: Path) -> None:
    model = mobile_chain()
    data, path, before = write_model(model), tmp_path / "m.tflite", dump_model(model)
    path.write_bytes(data)
    assert len({ram_of(each, "cortex-m4") for each in (data, path, str(path), model)}) == 1
    assert dump_model(model) == before


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(TARGETS))
@settings(max_examples=6, deadline=None)
def test_of_a_result_it_is_the_arena_that_optimize_reports(seed: int, target: str | None) -> None:
    data = write_model(cell_network(seed))
    result = optimize(data, Options(target=target, verify=False))
    assert result.report.after.required_for_target == ram_of(result.model, target) <= ram_of(data, target)


def test_wrong_models_and_targets_are_refused() -> None:
    with wrong_option("target"):
        ram_of(mobile_chain(), "cortex-m99")
    with pytest.raises(ModelFormatError):
        ram_of(b"no model")
