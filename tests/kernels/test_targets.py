"""The table of targets, and what a target changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import concat_model
from tflite_memopt import Options, optimize
from tflite_memopt.errors import UsageError
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.arena import arena_use
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.kernels.requests.model import ILP32, ILP32_SHORT_ENUMS, LP64, WHEEL
from tflite_memopt.kernels.targets import TARGETS, profile_for, target_named
from tflite_memopt.options import OBJECTIVES, Objective


def test_every_target_has_known_kernels() -> None:
    assert list(TARGETS) == [
        "cortex-m0",
        "cortex-m3",
        "cortex-m4",
        "cortex-m7",
        "cortex-m33",
        "cortex-m55",
        "cortex-m85",
        "esp32",
        "esp32c3",
        "esp32s3",
        "esp32p4",
        "riscv32",
        "host",
    ]
    for target in TARGETS.values():
        assert target.kernels in PROFILES
        assert target.alignment == 16


def test_what_was_not_run_says_so() -> None:
    for name, target in TARGETS.items():
        only_read = PROFILES[target.kernels].measured_at is None
        assert only_read == (name in ("esp32s3", "esp32p4")) == (target.measured == "nothing")


def test_a_target_chooses_kernels_and_layout() -> None:
    found = profile_for("cortex-m7")
    assert (found.name, found.abi, found.target) == ("cmsis-nn-dsp", ILP32_SHORT_ENUMS, "cortex-m7")
    assert profile_for("cortex-m7", "reference").name == "reference"
    explicit = profile_for("cortex-m7", "portable")
    assert (explicit.name, explicit.abi, explicit.target) == ("portable", ILP32_SHORT_ENUMS, "cortex-m7")
    assert profile_for(None) == PROFILES["portable"]
    with pytest.raises(UsageError, match="unknown target 'z80'; choose one of cortex-m0"):
        target_named("z80")
    with pytest.raises(UsageError, match="option target='z80'"):
        Options(target="z80")


def test_narrower_layouts_never_need_more() -> None:
    model = concat_model()
    for each in PROFILES.values():
        needs = [arena_use(model, 4096, each.requests, abi) for abi in (ILP32_SHORT_ENUMS, ILP32, LP64, WHEEL)]
        assert [use.required for use in needs] == sorted(use.required for use in needs)
        assert [use.tail for use in needs] == sorted(use.tail for use in needs)


def test_the_report_counts_for_the_target() -> None:
    data = write_model(concat_model())
    plain = optimize(data, Options(verify=False, kernels="cmsis-nn-dsp")).report
    report = optimize(data, Options(verify=False, target="cortex-m7")).report
    assert (report.target, report.kernels, plain.target) == ("cortex-m7", "cmsis-nn-dsp", None)
    assert report.after.required_bytes["target"] < report.after.required_bytes["32"] == plain.after.required_bytes["32"]
    assert "target" not in plain.after.required_bytes
    assert report.after.required_for_target == report.after.required_bytes["target"]
    assert list(report.libraries["after"]) == ["cmsis-nn-dsp"]
    assert report.libraries["after"]["cmsis-nn-dsp"].required == report.after.required_bytes["target"]


@st.composite
def networks(draw: st.DrawFn) -> Model:
    """A few layers whose scratch differs between libraries, one of them read twice."""
    b = ModelBuilder()
    channels = draw(st.sampled_from([4, 8, 16]))
    first = x = b.input("x", (1, 8, 8, channels))
    for seed in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["1x1", "3x3", "depthwise", "5x5 depthwise"]))
        if "depthwise" in kind:
            x = b.depthwise(x, kernel=5 if "5" in kind else 3, seed=seed)
        else:
            x = b.conv(x, channels, kernel=int(kind[0]), seed=seed)
    return b.finish(b.dense(b.reshape(b.add(x, first), (1, 64 * channels)), 10))


@settings(max_examples=15, deadline=None)
@given(networks(), st.sampled_from(OBJECTIVES))
def test_a_portable_plan_makes_no_librarys_arena_larger(model: Model, objective: Objective) -> None:
    options = Options(verify=False, objective=objective)
    report = optimize(write_model(model), options).report
    assert len(report.libraries["after"]) == 7
    for name, need in report.libraries["after"].items():
        before = report.libraries["before"][name]
        assert need.head <= before.head
        assert need.required <= before.required or objective == "head" or not need.measured
    assert not any("needs more" in warning for warning in report.warnings)
