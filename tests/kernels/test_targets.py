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
from tflite_memopt import Options, analyze, optimize
from tflite_memopt.errors import ErrorKind, UsageError
from tflite_memopt.kernels.arena import larger_structures
from tflite_memopt.kernels.boards import BOARDS, device_named, usual_tflm
from tflite_memopt.kernels.chips import CHIPS, FAMILIES, MEMORIES, chip_named, names_of_target, plain_name
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.kernels.since import BUILDS, PRESENT, SINCE, build_named, has_operators, without_newer
from tflite_memopt.kernels.targets import TARGETS, profile_for, target_named
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.operators.requests import ILP32, ILP32_SHORT_ENUMS, LP64, WHEEL
from tflite_memopt.options import OBJECTIVES, Objective, as_labeled
from tflite_memopt.report.targets import targets_json


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


def test_a_chip_whose_row_has_no_such_target_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = next(iter(CHIPS.values()))
    monkeypatch.setitem(CHIPS, chip.name, replace(chip, target="cortex-m9"))
    with raises(UsageError, ErrorKind.UNKNOWN, chip.name, "cortex-m9"):
        target_named(chip.name)


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
        needs = [reserve(model, 4096, each, abi=abi) for abi in (ILP32_SHORT_ENUMS, ILP32, LP64, WHEEL)]
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
    families = [plain_name(family) for each in FAMILIES.values() for family in each]
    assert len(families) == len(set(families))
    for target, each in FAMILIES.items():
        assert target in TARGETS
        assert [target_named(family).name for family in each] == [target] * len(each)
    for chip in CHIPS.values():
        begins = [family for family in families if plain_name(chip.name).startswith(family)]
        assert not begins or target_named(max(begins, key=len)).name == chip.target


ALIKE = {
    frozenset({"ESP32", "ESP32-S2"}),  # 320 KB: what ESP-IDF leaves of one, and all of the other
    frozenset({"ESP32-C3", "ESP32-C5"}),  # 384 KB: what the cache leaves of one, and all of the other
    frozenset({"nRF52833", "STM32F407VG", "STM32F411RE", "STM32F446RE", "STM32G474RE"}),
    frozenset({"nRF54L15", "nRF9160", "STM32L552ZE"}),
    frozenset({"SAMD51J19", "STM32WB55RG", "MK64FN1M0"}),
    frozenset({"STM32F103C8", "STM32F103RB"}),
    frozenset({"STM32F401RE", "STM32L475VG", "STM32L476RG"}),
    frozenset({"STM32F767ZI", "STM32H743ZI", "STM32H747XI", "i.MX RT1062"}),
    frozenset({"STM32U575ZI", "STM32U585AI"}),
}
"""Chips of one core that have as much RAM for data, as their data sheets say."""


def test_every_chip_has_a_row_of_its_own() -> None:
    """A name must not lead to another chip's RAM: kernels may be the same where memories are not."""
    assert len({plain_name(name) for name in CHIPS}) == len(CHIPS)
    assert [chip.name for chip in CHIPS.values() if not chip.source or chip.target not in TARGETS] == []
    by_figures: dict[tuple[str, int], set[str]] = {}
    for chip in CHIPS.values():
        assert (chip.left is None) == (chip.left_by is None)
        assert chip.left is None or 0 < chip.left < chip.ram
        by_figures.setdefault((chip.target, chip.left or chip.ram), set()).add(chip.name)
    assert {frozenset(names) for names in by_figures.values() if len(names) > 1} == ALIKE, (
        "equal RAM by their data sheets? then ALIKE has them"
    )


@pytest.mark.parametrize(
    ("name", "chip", "kbytes", "left"),
    [
        ("esp32", "ESP32", 520, 320),
        ("esp32s2", "ESP32-S2", 320, None),
        ("esp32c2", "ESP32-C2", 272, 256),
        ("ESP32-C3-MINI-1", "ESP32-C3", 400, 384),
        ("esp32-c5", "ESP32-C5", 384, None),
        ("esp32c6", "ESP32-C6", 512, None),
        ("ESP32-H2", "ESP32-H2", 320, 304),
        ("esp32-s2-wrover", "ESP32-S2", 320, None),
        ("rp2350b", "RP2350", 520, None),
        ("STM32F103C8T6", "STM32F103C8", 20, None),
    ],
)
def test_a_chip_has_its_own_ram(name: str, chip: str, kbytes: int, left: int | None) -> None:
    found, options = chip_named(name), Options(target=name)
    assert found is not None
    assert (found.name, found.ram) == (chip, kbytes << 10)
    assert found.left == (None if left is None else left << 10)
    assert options.device == chip
    # The target is a core, which may have the name of another chip: the options once more are of the same chip.
    assert replace(options, seed=1).device == chip
    assert replace(options, target="cortex-m7").device is None


@pytest.mark.parametrize("name", ["esp32c61", "ESP32-H21", "esp32s31", "RP23501"])
def test_a_chip_with_more_digits_is_another_one(name: str) -> None:
    assert chip_named(name) is None
    with raises(UsageError, ErrorKind.UNKNOWN, repr(name)):
        target_named(name)


def test_the_memories_of_a_chip_are_those_of_its_row() -> None:
    for name, memories in MEMORIES.items():
        if name in CHIPS:
            assert CHIPS[name].ram in memories.values()


def test_a_target_lists_each_chip_once() -> None:
    listed = [name for target in TARGETS for name in names_of_target(target)]
    assert len(listed) == len(set(listed))
    assert {"ESP32-C2", "ESP32-C5", "ESP32-C6", "ESP32-H2"} == set(names_of_target("esp32c3"))
    assert "RP2350" in names_of_target("cortex-m33")
    assert not {"nRF52840", "STM32F407VG"} & set(listed)


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
    assert before.day == day - timedelta(days=1)
    assert not has_operators(kinds, before)


def test_a_build_is_named_by_its_package_its_day_or_both() -> None:
    zephyr = BUILDS["zephyr-4.2"]
    assert build_named("zephyr-4.2") is zephyr
    older = build_named("zephyr-4.2@2025-03-01")
    assert (older.day, older.is_static, older.libraries) == (date(2025, 3, 1), False, zephyr.libraries)
    assert build_named("2025-03-01").is_static
    assert build_named(without_newer(older, date(2024, 1, 2))).day == date(2024, 1, 1)
    for wrong in ("zephyr", "zephyr-4.2@", "2025", "@2025-03-01", "zephyr-4.2@soon", "2022-12-31"):
        with raises(UsageError, ErrorKind.UNKNOWN, wrong):
            build_named(wrong)


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_has_its_structures_and_libraries(name: str) -> None:
    build, model = BUILDS[name], concat_model()
    profile = profile_for("cortex-m4", build=build)
    assert profile.abi.is_static == build.is_static
    assert profile.abi.short_enums == (build.short_enums is not False)
    stock = profile_for("cortex-m4", build=replace(build, is_static=True))
    need, least = (reserve(model, 4096, each).required for each in (profile, stock))
    assert need - least == (0 if build.is_static else larger_structures(model, profile.abi))
    anywhere = profile_for(None, build=build)
    assert [each.name for each in anywhere.libraries] == [
        each.name for each in PROFILES["portable"].libraries if not build.libraries or each.name in build.libraries
    ]
    assert {each.abi for each in anywhere.libraries} == {anywhere.abi}


@pytest.mark.parametrize("name", [*BOARDS, *CHIPS])
def test_a_board_is_a_target_with_its_ram(name: str) -> None:
    device = device_named(name)
    assert device is not None
    assert target_named(name).name == device.target
    assert 16 << 10 <= device.chip.ram <= 1 << 20
    assert device.flash is None or device.flash >= 64 << 10


def test_an_arduino_board_implies_its_library() -> None:
    arduino = [name for name in BOARDS if name.startswith("arduino-")]
    assert arduino == [name for name in BOARDS if usual_tflm(name) is not None]
    for name in arduino:
        options = Options(target=name)
        assert (options.tflm, options.build) == ("arduino-2023", BUILDS["arduino-2023"])
        assert options.profile.is_portable  # its CMSIS-NN is older than the one that was measured
        assert replace(options, seed=1) == replace(Options(target=name, seed=1))
        assert Options(target=name, tflm="makefile").tflm == "makefile"
    nano, chip = Options(target="arduino-nano-33-ble"), Options(target="nrf52840")
    assert chip.tflm == PRESENT.name
    assert [each.name for each in nano.profile.libraries] == ["cmsis-nn-dsp"]
    model = concat_model()
    needs = [reserve(model, 4096, each).required for each in (nano.profile, chip.profile)]
    assert needs[0] - needs[1] == larger_structures(model, nano.profile.abi)


def test_the_file_of_a_board_says_which_tflm_it_is_for() -> None:
    """Analyze counts a file as optimize did, whether the build was implied or asked for."""
    data, board = write_model(concat_model()), "arduino-nano-33-ble"
    for tflm in (None, "makefile", "zephyr-4.2"):
        options = Options(target=board, tflm=tflm, verify=False, cascade=False)
        result = optimize(data, options)
        analysis = analyze(result.model)
        assert analysis.tflm_build == options.tflm == (tflm or "arduino-2023")
        assert analysis.answer.reserve == result.report.answer.reserve
        label = plan_label.decode(read_model(result.model))
        assert label is not None
        again = as_labeled(Options(), label)
        assert (again.tflm, again.device) == (options.tflm, board)
        says = [sum("arduino-2023" in each for each in made.warnings) for made in (result.report, analysis)]
        assert says == ([1, 1] if tflm is None else [0, 0])
    assert analyze(data, target=board).tflm_build == "arduino-2023"
    assert analyze(data, target=board, tflm="makefile").tflm_build == "makefile"
