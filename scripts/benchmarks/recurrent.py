"""Networks of one GRU layer of Keras, as a sequence in one call and one step per call: docs/results/recurrent.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from scripts.zoo_networks.quiet import prepare_environment
from tflite_memopt.errors import MemoptError
from tflite_memopt.kernels.support import support_of
from tflite_memopt.memory.file import read_planned
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize

from .figures import Row, keep
from .models import AFTER, BEFORE, REFUSED

BEFORE_RUNS, INSTRUCTIONS = "TFLM runs it before", "instructions of a call after"
WHOLE, STEP = "", "--step"
STEPS, FEATURES, UNITS = 20, 16, 24
NETWORKS: Mapping[str, Mapping[str, bool]] = {
    "GRU(24, return_sequences=True)": {"return_sequences": True},
    "GRU(24)": {},
    "GRU(24, unroll=True)": {"unroll": True},
    "GRU(24, unroll=True), int8": {"unroll": True},
}
"""Arguments of Keras' layer, by the name of the network; weights are random, with one seed."""


@click.command()
def recurrent() -> None:
    """RAM and run time of networks with one GRU layer, as a sequence in one call, and one step per call.

    20 steps of 16 features, a layer of 24 units, Dense(4). Verified on LiteRT and TFLM.
    """
    keep("recurrent", "scripts/bench recurrent", _rows())


def _rows() -> Iterator[Row]:
    for name in NETWORKS:
        is_int8 = name.endswith("int8")
        data = _converted(NETWORKS[name], is_int8)
        for way in (WHOLE, STEP):
            options = Options(step=way == STEP, allow_approximate=is_int8)
            said = " ".join(filter(None, (way, "--allow-approximate" if is_int8 else "")))
            yield Row(name, "", said, _figures(data, options))


def _figures(data: bytes, options: Options) -> Mapping[str, object]:
    try:
        report = optimize(data, options).report
    except MemoptError as error:
        return {REFUSED: error}
    return {
        BEFORE: report.before.required_for_target,
        BEFORE_RUNS: "yes" if support_of(read_planned(data)).runs else "no",
        AFTER: report.answer.reserve,
        INSTRUCTIONS: report.after.instructions["reference"],
        "proof": "; ".join(f"{name} {proof.status}" for name, proof in report.proofs.items()),
    }


def _converted(arguments: Mapping[str, bool], is_int8: bool) -> bytes:
    """A .tflite of batch 1 by TensorFlow's own converter; synthetic inputs give the ranges of integers."""
    prepare_environment()
    import keras

    from scripts.zoo_networks.people.convert import convert
    from scripts.zoo_networks.people.training import Data

    keras.utils.set_random_seed(0)
    inputs = keras.Input((STEPS, FEATURES), batch_size=1)
    model = keras.Model(inputs, keras.layers.Dense(4)(keras.layers.GRU(UNITS, **arguments)(inputs)))
    return convert(model, Data(model, 0), "int8" if is_int8 else "float")
