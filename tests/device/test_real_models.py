"""Real models on the runners: the host's on all that TFLITE_MEMOPT_MODELS holds, QEMU's on four."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from scripts.device_lab.builds import BUILDS
from tests.device.runners import HOST, QEMU, runner
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.external_runner import run_external_jobs
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize

FOLDER = os.environ.get("TFLITE_MEMOPT_MODELS")
MODELS = sorted(Path(FOLDER).glob("*.tflite")) if FOLDER else []
UNDER_QEMU = ("mlperf_vww_int8", "mlperf_ic_int8", "mcunet_vww", "mww_okay_nabu_v2")
# What no build of TFLM here loads: uint8 and hybrid models, operators of signal processing.
REFUSED = ("coral_mobilenet_v1_0.25_128_quant", "coral_split_concat", "tflm_audio_pre_int8")
PAIRS = [(name, path) for name in HOST for path in MODELS]
PAIRS += [(name, path) for name in QEMU for path in MODELS if path.stem in UNDER_QEMU]
SAMPLES = 3
SLOW = "mcunet_vww"  # minutes under QEMU: one sample there


@cache
def planned(path: Path, target: str | None, kernels: str) -> Result:
    options = Options(target=target, kernels=kernels, verify=False, cascade=False, rewrite=False)
    return optimize(path, options)


@pytest.mark.parametrize(("name", "path"), PAIRS, ids=lambda value: getattr(value, "stem", value))
def test_plans_compute_what_the_stock_model_does_in_the_promised_arena(name: str, path: Path) -> None:
    command, build, data = runner(name), BUILDS[name], path.read_bytes()
    count = 1 if name in QEMU and path.stem == SLOW else SAMPLES
    samples = seeded_inputs(read_model(data), count, 3)
    ours = planned(path, build.target, build.profile)
    portable = planned(path, None, "portable")
    promised = ours.report.after.required_bytes["target"]
    jobs = {"stock": RunJob(data, samples, 0), "ours": RunJob(ours.model, samples, promised)}
    runs = run_external_jobs(command, {**jobs, "portable": RunJob(portable.model, samples, 0)})
    stock = runs["stock"]
    if path.stem in REFUSED:
        assert "AllocateTensors failed" in str(stock.error)
        return
    for kind in ("ours", "portable"):
        run = runs[kind]
        assert run.ran, (kind, run.error)
        assert [key for key, array in stock.arrays.items() if not np.array_equal(run.arrays[key], array)] == []
        assert stock.facts["smallest_arena"]
        assert run.facts["smallest_arena"]
        assert run.facts["smallest_arena"] <= stock.facts["smallest_arena"], kind
    assert runs["ours"].facts["head"] == ours.report.after.arena_bytes


def test_the_models_that_qemu_runs_are_there() -> None:
    assert not MODELS or set(UNDER_QEMU) <= {path.stem for path in MODELS}
