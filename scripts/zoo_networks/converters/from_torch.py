"""From PyTorch to .tflite with litert-torch; ai-edge-quantizer makes integers of it.

python -m scripts.zoo_networks.converters.from_torch FOLDER [NAME ...]     in the environment of `scripts/zoo --torch`
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import litert_torch
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import qtyping, quantizer, recipe

from scripts.zoo_networks.converters.networks import TORCH, build, samples

PREFIX = "torch_"
SEED = 0
CALIBRATED = 16
NUMBERS = ("int8", "int4_weights")
"""Types of numbers beside float: int8 throughout, and the same with the weights of convolutions in 4 bits."""


def convert(name: str, folder: Path) -> None:
    """Write the float file of a network, and those of integers made of it; files that exist are kept."""
    target = folder / f"{PREFIX}{name}_float.tflite"
    if not target.exists():
        litert_torch.convert(build(name, SEED), samples(name, SEED, 1)[0]).export(str(target))
        print(target.name, flush=True)
    for numbers in NUMBERS:
        made = folder / f"{PREFIX}{name}_{numbers}.tflite"
        if not made.exists():
            made.write_bytes(_quantized(target, name, numbers))
            print(made.name, flush=True)


def _quantized(source: Path, name: str, numbers: str) -> bytes:
    """Return the bytes of the file in integers."""
    work = quantizer.Quantizer(str(source), recipe.static_wi8_ai8())
    if numbers == "int4_weights":
        work.add_static_config(".*", qtyping.TFLOperationName.CONV_2D, activation_num_bits=8, weight_num_bits=4)
    return bytes(work.quantize(work.calibrate(_calibration(source, name))).quantized_model)


def _calibration(source: Path, name: str) -> dict[str, list[dict[str, Any]]]:
    """Return samples by the signature and the names of its arguments."""
    signatures = Interpreter(str(source)).get_signature_list()
    ((key, found),) = signatures.items()
    rows = (zip(found["inputs"], sample, strict=True) for sample in samples(name, SEED + 1, CALIBRATED))
    return {key: [{argument: value.numpy() for argument, value in row} for row in rows]}


def main() -> None:
    """Convert the networks that are named, all without a name."""
    folder, *names = sys.argv[1:]
    for name in names or TORCH:
        convert(name, Path(folder))


if __name__ == "__main__":
    main()
