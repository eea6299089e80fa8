"""Since when TFLM has an operator or a type of one, and what is made of a model that the firmware's TFLM lacks."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.command import run
from tests.faults import raises
from tests.kernels.one_operator import MAKERS, alone
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, analyze, optimize
from tflite_memopt.errors import ErrorKind, UnsupportedModelError
from tflite_memopt.kernels.faults import faults_in
from tflite_memopt.kernels.profile import READ_AT
from tflite_memopt.kernels.since import (
    ARRIVALS,
    BUILDS,
    FIRST_DAY,
    PRESENT,
    TflmBuild,
    build_named,
    lacking,
    newest_of,
    runs_on,
)
from tflite_memopt.kernels.support import support_of
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.operators.table import OPERATORS, REFERENCE
from tflite_memopt.search.rewrite.loadable import mended

DAY = timedelta(days=1)
TRIED = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL)


def on(day: date) -> TflmBuild:
    return replace(PRESENT, name=day.isoformat(), day=day)


def every_operator() -> dict[tuple[str, DType], Model]:
    """One model for each operator and type that the present TFLM runs."""
    models = {(name, dtype): alone(name, dtype) for name in MAKERS for dtype in TRIED}
    return {case: model for case, model in models.items() if support_of(model).runs}


def test_the_table_says_what_came_after_the_oldest_build() -> None:
    assert [each.day for each in ARRIVALS] == sorted(each.day for each in ARRIVALS)
    assert all(FIRST_DAY < each.day <= READ_AT for each in ARRIVALS)
    assert len({str(each) for each in ARRIVALS}) == len(ARRIVALS)
    assert all(each.operator in REFERENCE and len(each.commit) == 9 for each in ARRIVALS)
    days = [build.day for build in BUILDS.values() if build.day is not None]
    assert min(days) == FIRST_DAY
    assert max(days) <= READ_AT


def test_every_build_has_a_source_and_names_what_is_in_the_table() -> None:
    known = {str(each) for each in ARRIVALS}
    for build in BUILDS.values():
        assert build.source
        assert set(build.has) | set(build.without) <= known
        assert not any(build.lacks(each) for each in ARRIVALS if str(each) in build.has)
        assert all(build.lacks(each) for each in ARRIVALS if str(each) in build.without)
        for each in ARRIVALS:
            if build.day is not None and str(each) not in (*build.has, *build.without) and not each.had_by:
                assert build.lacks(each) == (build.day < each.day), (build.name, str(each))


def test_a_model_runs_from_the_day_of_its_last_operator_on() -> None:
    late = {}
    for case, model in every_operator().items():
        day = newest_of(model)
        if day is None:
            assert support_of(model, on(FIRST_DAY)).runs, case
            continue
        late[case] = day
        assert support_of(model, on(day)).runs, case
        (reason,) = support_of(model, on(day - DAY)).reasons
        assert (reason.kind, reason.operator) == ("newer", case[0])
        assert day.isoformat() in str(reason.since)
        assert not runs_on(model, on(day - DAY))
    assert late["RELU6", DType.INT16] == date(2024, 9, 26)
    assert late["RELU", DType.INT16] == date(2025, 3, 21)
    assert {dtype for name, dtype in late if name == "REVERSE_V2"} == {
        dtype for dtype in TRIED if OPERATORS["REVERSE_V2"].tflm.takes(dtype)
    }
    assert ("RELU", DType.INT8) not in late
    # PRELU of 16 bits takes slopes of 8 bits, which the model of one operator does not have.
    met = {name for name, _ in late}
    assert {each.operator for each in ARRIVALS if each.operator in MAKERS} == {*met, "PRELU"}


def test_a_layer_with_a_scale_per_channel_is_newer_than_one_with_one_scale() -> None:
    model = alone("FULLY_CONNECTED", DType.INT8)
    (reason,) = support_of(model, BUILDS["arduino-2023"]).reasons
    assert reason.cure is not None
    assert "per_channel" in reason.cure
    # Espressif's own kernel took one scale until 1.3.4, whatever its TFLM did.
    esp = {name: support_of(model, build).runs for name, build in BUILDS.items() if name.startswith("esp")}
    assert [name for name, runs in esp.items() if not runs] == ["esphome"] + [
        f"esp-tflite-micro-1.3{patch}" for patch in ("", ".1", ".2", ".3")
    ]
    (layer,) = model.main.operators
    weights = layer.required(1)
    assert weights.quantization is not None
    weights.quantization = replace(weights.quantization, scale=weights.quantization.scale[:1])
    assert support_of(model, BUILDS["arduino-2023"]).runs


def test_a_library_that_had_its_own_kernel_is_not_asked_for_tflms() -> None:
    model = alone("DEPTHWISE_CONV_2D", DType.INT16)
    assert support_of(model, BUILDS["arduino-2023"]).runs
    assert not support_of(model, replace(BUILDS["arduino-2023"], libraries=("reference", "cmsis-nn-dsp"))).runs
    assert not support_of(model, build_named("2023-07-31")).runs


@pytest.mark.parametrize(
    ("operator", "dtype", "tflm", "runs"),
    [
        ("REVERSE_V2", DType.INT8, "arduino-2023", False),
        ("REVERSE_V2", DType.INT8, "zephyr-4.2", False),  # of July 2025, with a TFLM of February
        ("RELU6", DType.INT16, "zephyr-3.7", False),
        ("RELU6", DType.INT16, "zephyr-4.1", True),
        ("RELU", DType.INT16, "zephyr-4.1", False),
        ("RELU", DType.INT16, "zephyr-4.4", True),
        ("REDUCE_MIN", DType.INT8, "simplicity-sdk-2024.6", False),
        ("REDUCE_MIN", DType.INT8, "edge-impulse", True),  # which has added it
        ("MAXIMUM", DType.INT16, "openmv-4.8", False),
    ],
)
def test_every_command_asks_the_build(operator: str, dtype: DType, tflm: str, runs: bool, tmp_path: Path) -> None:
    source, made = tmp_path / "in.tflite", tmp_path / "made.tflite"
    source.write_bytes(write_model(alone(operator, dtype)))
    flags = (source, "--tflm", tflm)
    for words in (("optimize", *flags, "-o", made, "--no-verify"), ("analyze", *flags), ("check", *flags)):
        done = run(*words)
        assert done.returncode == (0 if runs else 2), done.stderr
        said = " ".join((done.stdout + done.stderr).split())
        assert (f"lacks {operator}" in said) == (not runs)
    assert made.exists() == runs
    analysis = analyze(source, tflm=tflm)
    assert (analysis.tflm.runs, analysis.tflm_build) == (runs, tflm)
    assert [each.kind for each in analysis.tflm.reasons] == ([] if runs else ["newer"])


def test_a_day_alone_is_asked_as_well() -> None:
    data = write_model(alone("REVERSE_V2", DType.INT8))
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "2025-07-09", "41a9c8a6c"):
        optimize(data, Options(tflm="2025-07-09", verify=False))
    assert optimize(data, Options(tflm="2025-07-10", verify=False)).report.tflm.runs


@pytest.mark.parametrize("operator", ["EXPAND_DIMS", "UNPACK"])
def test_a_rewrite_stands_for_a_type_that_the_build_lacks(operator: str) -> None:
    model, build = alone(operator, DType.INT16), BUILDS["arduino-2023"]
    assert not mended(copy_model(model)).uses
    found = mended(copy_model(model), build)
    assert found.after.runs
    assert runs_on(found.model, build)
    report = optimize(write_model(model), Options(tflm=build.name)).report
    assert not report.as_it_came.support.runs
    assert [each.kind for each in report.as_it_came.support.reasons] == ["newer"]
    assert all(verdict.equal for verdict in report.equivalence.values())
    assert analyze(write_model(model), tflm=build.name).mends


def added_axis() -> Model:
    """A RESHAPE of 16 bits between layers, which adds an axis: an EXPAND_DIMS takes fewer bytes, if there is one."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 4), DType.INT16)
    middle, longer, y = (b.tensor(name, shape, DType.INT16) for name, shape in _SHAPES.items())
    b.operator("LOGISTIC", (x,), (middle,))
    shape = b.constant("shape", np.asarray(longer.shape, np.int32))
    b.operator("RESHAPE", (middle, shape), (longer,), "ReshapeOptions", newShape=np.asarray(longer.shape, np.int32))
    b.operator("TANH", (longer,), (y,))
    return b.finish(y)


_SHAPES = {"middle": (1, 8, 4), "longer": (1, 8, 1, 4), "y": (1, 8, 1, 4)}


def test_no_rewrite_leads_to_what_the_build_lacks() -> None:
    data, kinds = write_model(added_axis()), {}
    for tflm in ("makefile", "2024-05-23"):
        result = optimize(data, Options(tflm=tflm, verify=False))
        assert runs_on(read_model(result.model), build_named(tflm))
        kinds[tflm] = {operator.name for operator in read_model(result.model).all_operators}
    assert "EXPAND_DIMS" in kinds["makefile"] - kinds["2024-05-23"]


def test_faults_are_those_of_the_day() -> None:
    """A pool of several images: CMSIS-NN's wrapper left bytes unwritten until June 2026."""
    b = ModelBuilder()
    model = b.finish(b.average_pool(b.input("x", (2, 4, 4, 4)), 2))
    met = {
        tflm: bool(faults_in(model, profile_for("cortex-m4", build=build_named(tflm))))
        for tflm in ("zephyr-4.4", "makefile", "2026-05-31", "2026-06-01")
    }
    assert met == {"zephyr-4.4": True, "makefile": False, "2026-05-31": True, "2026-06-01": False}


def test_an_operator_without_history_is_never_too_late() -> None:
    (operator,) = alone("CONV_2D", DType.INT8).main.operators
    assert all(lacking(operator, build) is None for build in BUILDS.values())
