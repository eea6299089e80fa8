"""An external component of ESPHome: makes a wake word smaller before ESPHome reads it, and fails over the budget.

    external_components:
      - source: {type: local, path: components}
    tflite_memopt:
      model: okay_nabu.tflite
      manifest: okay_nabu.json
      optimize: --target esp32s3 --budget 26K

stand in front of micro_wake_word, with firmware/esphome/okay_nabu.json as its model.
"""

import shlex
import subprocess

import esphome.config_validation as cv
from esphome.core import CORE


def optimized(config):
    """Write the model and its manifest, when ESPHome validates the configuration."""
    model, manifest = (CORE.relative_config_path(config[name]) for name in ("model", "manifest"))
    folder = CORE.relative_config_path("firmware")
    folder.mkdir(exist_ok=True)
    small = folder / model.name
    _run("optimize", model, "-o", small, "--force", "-q", "--tflm", "esphome", *shlex.split(config["optimize"]))
    _run("codegen", small, "-o", folder, "--force", "--esphome", manifest)
    return config


def _run(*words):
    try:
        done = subprocess.run(["tflite-memopt", *map(str, words)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise cv.Invalid("the command tflite-memopt is not on the path") from None
    if done.returncode:
        raise cv.Invalid(" ".join((done.stderr or done.stdout).split()))


FIELDS = {cv.Required(name): cv.string_strict for name in ("model", "manifest", "optimize")}
CONFIG_SCHEMA = cv.All(FIELDS, optimized)


async def to_code(config):
    """Add nothing: micro_wake_word has the model."""
