"""The table of targets, and what a target changes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises, wrong_option
from tests.model_builder import ModelBuilder
from tests.models import concat_model
from tests.profiles import examples
from tflite_memopt import Options, optimize
from tflite_memopt.errors import ErrorKind, UsageError
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import OBJECTIVES, Objective
from tflite_memopt.report.targets import targets_json
from tflite_memopt.target.kernels import boards
from tflite_memopt.target.kernels.arena import arena_use, larger_structures
from tflite_memopt.target.kernels.boards import device_named
from tflite_memopt.target.kernels.chips import CHIPS, plain_name
from tflite_memopt.target.kernels.profiles import PROFILES
from tflite_memopt.target.kernels.requests import ILP32, ILP32_SHORT_ENUMS, LP64, WHEEL
from tflite_memopt.target.kernels.since import BUILDS, PRESENT, SINCE, build_named, has_operators, without_newer
from tflite_memopt.target.kernels.targets import TARGETS, profile_for, target_named


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
        "wheel",
    ]
    for target in TARGETS.values():
        assert target.kernels in PROFILES
        assert target.alignment == 16


def test_a_target_with_a_version_of_esp_nn() -> None:
    options = Options(target="ESP32-S3@esp-nn-1.1")
    assert (options.target, options.device) == ("esp32s3@esp-nn-1.1", "ESP32-S3")
    assert options.profile.name == "esp-nn-s3"
    assert options.profile.description.startswith("esp-nn 1.1 on ESP32-S3, ")
    assert profile_for(options.target, "reference").name == "reference"
    for wrong, kind, name in (
        ("cortex-m4@esp-nn-1.1", ErrorKind.EXCLUDED, "cmsis-nn-dsp"),
        ("esp32@esp-nn-1.1", ErrorKind.EXCLUDED, "esp-nn"),
        ("esp32s3@1.1", ErrorKind.UNKNOWN, "esp-nn-1.1"),
    ):
        with raises(UsageError, kind, name):
            target_named(wrong)


def test_a_version_of_esp_nn_changes_the_arena_and_stays_in_the_file() -> None:
    model = write_model(concat_model())
    needs = []
    for name in ("esp32s3@esp-nn-1.1", "esp32s3@esp-nn-1.2.3", "esp32s3"):
        result = optimize(model, Options(target=name, verify=False, cascade=False))
        label = plan_label.decode(read_model(result.model))
        assert label is not None
        assert label.target == name
        needs.append(result.report.after.required_bytes["target"])
    assert needs[0] < needs[1] == needs[2]


def test_what_was_not_run_says_so() -> None:
    for name, target in TARGETS.items():
        only_read = PROFILES[target.kernels].measured_at is None
        assert only_read == (name in ("esp32s3", "esp32p4")) == (target.measured == ())


def test_a_target_chooses_kernels_and_layout() -> None:
    found = profile_for("cortex-m7")
    assert (found.name, found.abi, found.target) == ("cmsis-nn-dsp", ILP32_SHORT_ENUMS, "cortex-m7")
    assert profile_for("cortex-m7", "reference").name == "reference"
    explicit = profile_for("cortex-m7", "portable")
    assert (explicit.name, explicit.abi, explicit.target) == ("portable", ILP32_SHORT_ENUMS, "cortex-m7")
    assert profile_for(None) == PROFILES["portable"]
    with raises(UsageError, ErrorKind.UNKNOWN, "z80", "cortex-m0"):
        target_named("z80")
    with wrong_option("target"):
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


@pytest.mark.slow
@examples(15)
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


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("Cortex-M4", "cortex-m4"),
        ("cortex_m4", "cortex-m4"),
        ("CORTEXM33", "cortex-m33"),
        ("cortex-m0plus", "cortex-m0"),
        ("rp2040", "cortex-m0"),
        ("RP2350", "cortex-m33"),
        ("stm32f4", "cortex-m4"),
        ("STM32F407VG", "cortex-m4"),
        ("stm32wb55", "cortex-m4"),
        ("stm32wba52", "cortex-m33"),
        ("nrf52840", "cortex-m4"),
        ("nRF5340", "cortex-m33"),
        ("samd51", "cortex-m4"),
        ("MIMXRT1062", "cortex-m7"),
        ("ESP32-S3", "esp32s3"),
        ("esp32-c6", "esp32c3"),
        ("ESP32", "esp32"),
    ],
)
def test_a_chip_is_a_target(name: str, target: str) -> None:
    assert target_named(name).name == target
    assert profile_for(name) == profile_for(target)
    assert Options(target=name) == Options(target=target)
    assert Options(target=name).target == target


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("cortex-m44", "cortex-m4"),
        ("hst", "host"),
        ("rp2400", "RP2040"),
        ("z80", None),
        ("", None),
    ],
)
def test_an_unknown_target_gets_the_closest_name(name: str, meant: str | None) -> None:
    with raises(UsageError, ErrorKind.UNKNOWN, repr(name), *(() if meant is None else (f" {meant}?",))):
        target_named(name)


def test_no_chip_is_of_two_families() -> None:
    chips = [plain_name(chip) for each in CHIPS.values() for chip in each]
    assert len(chips) == len(set(chips))
    for target, each in CHIPS.items():
        assert target in TARGETS
        assert [target_named(chip).name for chip in each] == [target] * len(each)


def test_a_program_gets_values() -> None:
    rows = {row["name"]: row for row in json.loads(targets_json())}
    assert list(rows) == list(TARGETS)
    assert rows["cortex-m4"]["enum_bytes"] == {"min": 1, "max": 4}
    assert rows["esp32"]["enum_bytes"] == {"min": 4, "max": 4}
    assert (rows["cortex-m3"]["read"], rows["esp32s3"]["measured"]) == (None, None)
    assert rows["esp32s3"]["read"][0] == "scratch"
    assert "STM32F4" in rows["cortex-m4"]["chips"]


@pytest.mark.parametrize(
    ("target", "kernels"),
    [
        ("cortex-m0", "cmsis-nn"),
        ("cortex-m3", "cmsis-nn"),
        ("cortex-m4", "cmsis-nn-dsp"),
        ("cortex-m7", "cmsis-nn-dsp"),
        ("cortex-m33", "cmsis-nn-dsp"),
        ("cortex-m55", "cmsis-nn-mve"),
        ("esp32s3", "esp-nn-s3"),
    ],
)
def test_a_core_has_the_kernels_of_its_instructions(target: str, kernels: str) -> None:
    assert profile_for(target).name == kernels


def test_a_tflm_of_the_day_has_the_operator_of_that_day() -> None:
    kinds, day = ("DYNAMIC_UPDATE_SLICE",), SINCE["DYNAMIC_UPDATE_SLICE"]
    assert has_operators(kinds, build_named(day.isoformat()))
    assert has_operators(kinds, PRESENT)
    before = build_named(without_newer(PRESENT, day))
    assert before.before == day - timedelta(days=1)
    assert not has_operators(kinds, before)


def test_a_build_is_named_by_its_package_its_day_or_both() -> None:
    zephyr = BUILDS["zephyr-4.2"]
    assert build_named("zephyr-4.2") is zephyr
    older = build_named("zephyr-4.2@2025-03-01")
    assert (older.before, older.is_static, older.libraries) == (date(2025, 3, 1), False, zephyr.libraries)
    assert build_named("2025-03-01").is_static
    assert build_named(without_newer(older, date(2024, 1, 2))).before == date(2024, 1, 1)
    for wrong in ("zephyr", "zephyr-4.2@", "2025", "@2025-03-01", "zephyr-4.2@soon"):
        with raises(UsageError, ErrorKind.UNKNOWN, wrong):
            build_named(wrong)


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_has_its_structures_and_libraries(name: str) -> None:
    build, model = BUILDS[name], concat_model()
    profile = profile_for("cortex-m4", build=build)
    assert profile.abi.is_static == build.is_static
    assert profile.abi.short_enums == (build.short_enums is not False)
    stock = profile_for("cortex-m4", build=replace(build, is_static=True))
    need, least = (arena_use(model, 4096, each.requests, each.abi).required for each in (profile, stock))
    assert need - least == (0 if build.is_static else larger_structures(model, profile.abi))
    anywhere = profile_for(None, build=build)
    assert [each.name for each in anywhere.libraries] == [
        each.name for each in PROFILES["portable"].libraries if not build.libraries or each.name in build.libraries
    ]
    assert {each.abi for each in anywhere.libraries} == {anywhere.abi}


@pytest.mark.parametrize("name", [*boards.BOARDS, *boards.CHIPS])
def test_a_board_is_a_target_with_its_ram(name: str) -> None:
    device = device_named(name)
    assert device is not None
    assert target_named(name).name == device.target
    assert 16 << 10 <= device.ram <= 1 << 20
    assert device.flash is None or device.flash >= 64 << 10
