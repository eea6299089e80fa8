"""From PyTorch to .tflite with litert-torch; ai-edge-quantizer makes integers of it.

python -m scripts.zoo_networks.converters.from_torch FOLDER [NAME ...]     in the environment of `scripts/zoo --torch`

A name with ``@2`` behind it is the network with the weights of seed 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import litert_torch
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import qtyping, quantizer, recipe

from scripts.zoo_networks.converters.arguments import folder_and_names
from scripts.zoo_networks.converters.aside import ASIDE
from scripts.zoo_networks.converters.networks import TORCH, TorchNetwork, build, samples

PREFIX = "torch_"
CALIBRATED = 16
NUMBERS: Mapping[str, Callable[[], qtyping.ModelQuantizationRecipe]] = MappingProxyType(
    {
        "int8": recipe.static_wi8_ai8,
        "int4_weights": recipe.static_wi8_ai8,
        "int16x8": recipe.static_wi8_ai16,
        "weight_only": recipe.weight_only_wi8_afp32,
    }
)
"""Types of numbers beside float: int8 throughout, the same with the weights of convolutions in 4 bits, activations in
int16, and float with weights that are kept in int8."""


def convert(name: str, folder: Path) -> None:
    """Write the float file of a network, and those of integers made of it; files that exist are kept."""
    known, _, seed = name.partition("@")
    network, called = {**TORCH, **ASIDE}[known], f"{PREFIX}{name.replace('@', '_seed')}"
    target = folder / f"{called}_float.tflite"
    if not target.exists():
        litert_torch.convert(build(network, int(seed or 0)), samples(network, int(seed or 0), 1)[0]).export(str(target))
        print(target.name, flush=True)
    for numbers in NUMBERS:
        made = folder / f"{called}_{numbers}.tflite"
        if not made.exists():
            made.write_bytes(_quantized(target, network, numbers))
            print(made.name, flush=True)


def _quantized(source: Path, network: TorchNetwork, numbers: str) -> bytes:
    """Return the bytes of the file in integers."""
    work = quantizer.Quantizer(str(source), NUMBERS[numbers]())
    if numbers == "int4_weights":
        work.add_static_config(".*", qtyping.TFLOperationName.CONV_2D, activation_num_bits=8, weight_num_bits=4)
    ranges = work.calibrate(_calibration(source, network)) if work.need_calibration else None
    return bytes(work.quantize(ranges).quantized_model)


def _calibration(source: Path, network: TorchNetwork) -> dict[str, list[dict[str, Any]]]:
    """Return samples by the signature and the names of its arguments."""
    signatures = Interpreter(str(source)).get_signature_list()
    ((key, found),) = signatures.items()
    rows = (zip(found["inputs"], sample, strict=True) for sample in samples(network, 1, CALIBRATED))
    return {key: [{argument: value.numpy() for argument, value in row} for row in rows]}


def main() -> None:
    """Convert the networks that are named; without a name the seventeen that are not kept aside."""
    folder, names = folder_and_names({**TORCH, **ASIDE}, TORCH)
    for name in names:
        convert(name, folder)


if __name__ == "__main__":
    main()
