"""Optimizes a model when PlatformIO builds the firmware; the build fails if the model is over its budget.

Copy this file beside platformio.ini, where these lines go:

    extra_scripts = pre:pio_memopt.py
    custom_tflite_model = model.tflite
    custom_tflite_optimize = --budget 64K --target esp32s3
    custom_tflite_codegen =

The firmware then has the files of `codegen`, in a namespace of the model's name: #include "model/setup.h".
custom_tflite_memopt names the command if it is not on the path.
"""

import re
import shlex
from pathlib import Path

Import("env")  # noqa: F821 (SCons has it)


def build(env):
    """Add the model to the program."""
    model = Path(env.subst("$PROJECT_DIR"), env.GetProjectOption("custom_tflite_model"))
    name = re.sub(r"\W", "_", model.stem)
    folder = Path(env.subst("$BUILD_DIR"), "tflite_memopt")
    files, small = folder / name, folder / f"{name}.tflite"
    folder.mkdir(parents=True, exist_ok=True)
    tool = env.GetProjectOption("custom_tflite_memopt", "tflite-memopt")
    commands = [
        [tool, "optimize", model, "-o", small, "--force", "-q", *_words(env, "optimize")],
        [tool, "codegen", small, "-o", files, "--force", "--name", name, *_words(env, "codegen")],
    ]
    lines = [shlex.join(map(str, command)) for command in commands]
    made = [files / file for file in ("model_data.cc", "model_data.h", "arena.h", "resolver.h", "setup.h")]
    data, *_ = env.Command([*map(str, made), str(small)], [str(model), env.Value(lines)], lines)
    env.Append(CPPPATH=[str(folder)], PIOBUILDFILES=[env.Object(data)])


def _words(env, command):
    return shlex.split(env.GetProjectOption(f"custom_tflite_{command}", ""))


build(env)  # noqa: F821
