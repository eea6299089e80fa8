"""`idf.py memopt`: `tflite-memopt optimize` and `codegen` for the chip of an ESP-IDF project.

export IDF_EXTRA_ACTIONS_PATH="$(tflite-memopt --cmake-dir)/esp_idf"
idf.py memopt model.tflite --budget 64K
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path


def action_extensions(base_actions, project_path):
    """Return what idf.py adds to its commands."""

    def memopt(action, context, args, model, directory, budget, options):
        folder = Path(project_path, directory)
        folder.mkdir(parents=True, exist_ok=True)
        small = folder / Path(model).name
        words = ["--target", _chip(project_path), *(["--budget", budget] if budget else []), *shlex.split(options)]
        for command in (
            ["tflite-memopt", "optimize", model, "-o", small, "--force", *words],
            ["tflite-memopt", "codegen", small, "-o", folder, "--force"],
        ):
            code = subprocess.run(command, check=False).returncode
            if code:
                sys.exit(code)

    return {
        "version": "1",
        "actions": {
            "memopt": {
                "callback": memopt,
                "help": "Reduce the RAM of a .tflite model; fails if it is over the budget.",
                "arguments": [{"names": ["model"]}],
                "options": [
                    {"names": ["--directory"], "default": "main/model", "help": "Folder for the model and its C++."},
                    {"names": ["--budget"], "default": "", "help": "RAM that the model may take, such as 64K."},
                    {"names": ["--options"], "default": "", "help": "Other options of `tflite-memopt optimize`."},
                ],
            }
        },
    }


def _chip(project_path):
    """Return the chip that `idf.py set-target` has chosen."""
    settings = Path(project_path, "sdkconfig")
    found = re.search(r'CONFIG_IDF_TARGET="(\w+)"', settings.read_text()) if settings.exists() else None
    if found is None:
        sys.exit("idf.py memopt: no chip yet: idf.py set-target esp32s3")
    return found[1]
