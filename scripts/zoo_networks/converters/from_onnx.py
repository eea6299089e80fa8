"""From PyTorch to .tflite through ONNX, with onnx2tf, which makes the integers itself.

python -m scripts.zoo_networks.converters.from_onnx FOLDER [NAME ...]     in the environment of `scripts/zoo --onnx`
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnx2tf
import torch

from scripts.zoo_networks.converters.arguments import folder_and_names
from scripts.zoo_networks.converters.networks import TORCH, build, samples

PREFIX = "onnx_"
SEED = 0
CALIBRATED = 16
MADE = {"float": "float32", "int8": "full_integer_quant"}
"""By the type of numbers, what onnx2tf calls the file."""

_SAMPLE = "calibration_image_sample_data_20x128x128x3_float32.npy"


def convert(name: str, folder: Path) -> None:
    """Write the float and the int8 file of a network; files that exist are kept."""
    targets = {numbers: folder / f"{PREFIX}{name}_{numbers}.tflite" for numbers in MADE}
    if all(target.exists() for target in targets.values()):
        return
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        try:
            # Of images in color the converter computes a sample of its own, which it looks for here.
            np.save(_SAMPLE, np.random.default_rng(SEED).random((20, 128, 128, 3), np.float32))
            _converted(name, Path(work))
        finally:
            os.chdir(home)
        for numbers, target in targets.items():
            made = Path(work) / f"{name}_{MADE[numbers]}.tflite"
            if made.exists():
                target.write_bytes(made.read_bytes())
            print(target.name if made.exists() else f"{target.name}: the converter makes none", flush=True)


def _converted(name: str, work: Path) -> None:
    example = samples(TORCH[name], SEED, 1)[0]
    inputs = [f"x{number}" for number in range(len(example))]
    source = work / f"{name}.onnx"
    torch.onnx.export(build(TORCH[name], SEED), example, str(source), input_names=inputs, dynamo=False)
    # Of sequences and states the converter does not find the order of dimensions: its own advice is to keep them.
    is_kept = len(example) > 1 or example[0].ndim < 4
    ranges = []
    for number, argument in enumerate(inputs):
        values = np.concatenate([sample[number].numpy() for sample in samples(TORCH[name], SEED + 1, CALIBRATED)])
        values = values if is_kept else np.moveaxis(values, 1, -1)
        np.save(work / f"{argument}.npy", values)
        ranges.append([argument, str(work / f"{argument}.npy"), 0.0, 1.0])
    onnx2tf.convert(
        input_onnx_file_path=str(source),
        output_folder_path=str(work),
        output_integer_quantized_tflite=True,
        keep_shape_absolutely_input_names=inputs if is_kept else None,
        custom_input_op_name_np_data_path=ranges,
        input_quant_dtype="int8",
        output_quant_dtype="int8",
        non_verbose=True,
    )


def main() -> None:
    """Convert the networks that are named, all without a name."""
    folder, names = folder_and_names(TORCH, TORCH)
    for name in names:
        _tried(name, folder.resolve())


def _tried(name: str, folder: Path) -> None:
    try:
        convert(name, folder)
    except (TypeError, ValueError) as error:  # of TensorFlow, where the converter has lost the order of dimensions
        print(f"{PREFIX}{name}: the converter fails: {str(error).strip().splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()
