"""The main job, from an installed wheel: python main_job.py MODEL.tflite python|compiled. It needs only the wheel.

The release's workflow calls it for every wheel that it builds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import tflite_memopt
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.solvers.plan import disjunctive
from tflite_memopt.solvers.plan.exact import compiled_copy


def said_by(*arguments: str) -> str:
    """What the command prints; it must end well."""
    started = time.monotonic()
    command = [sys.executable, "-m", "tflite_memopt", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    sys.stdout.write(f"{time.monotonic() - started:.1f} s  tflite-memopt {' '.join(arguments)}\n        {first}\n")
    return done.stdout


def main() -> None:
    """Version, analysis, an optimized and verified model, its firmware files; and where they came from."""
    model, planners = sys.argv[1:]
    home = Path(tflite_memopt.__file__).parent
    assert "site-packages" in home.parts, f"{home} is no installed package"
    compiled = compiled_copy(disjunctive.__name__, disjunctive.__file__)
    assert (compiled is not None) == (planners == "compiled"), f"the planner is {compiled}, and not {planners}"
    compilers = [name for name in ("cc", "gcc", "clang", "cl", "make") if shutil.which(name)]
    sys.stdout.write(f"compilers on the path: {', '.join(compilers) or 'none'}\n")
    assert tflite_memopt.__version__ in said_by("--version")
    assert (Path(said_by("--cmake-dir").strip()) / "tflite_memopt-config.cmake").is_file()
    said_by("analyze", model)
    small = "small.tflite"
    said = said_by("optimize", model, "-o", small, "--force", "--target", "cortex-m4")
    assert "verified bit-exact" in said, said
    assert read_model(Path(small).read_bytes()).metadata
    said_by("codegen", small, "-o", "firmware", "--force")


if __name__ == "__main__":
    main()
