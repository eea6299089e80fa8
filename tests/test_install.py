"""Building the package: compiled copies where there is a compiler, and none, without an error, elsewhere; releases."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from scripts.packaging.__main__ import MINORS
from tflite_memopt.version import __version__

ROOT = Path(__file__).parent.parent
FILES = ("setup.py", "setup.cfg", "README.md")
NO_COMPILER = {
    "none in the path": {"PATH": "/nowhere"},
    "one that fails": {"CC": "/bin/false"},
}


def built(folder: Path, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What building the extensions in a copy of the source says."""
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "tflite_memopt", folder / "tflite_memopt", ignore=ignored)
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", "built", "--force"]
    environment = {key: value for key, value in os.environ.items() if key != "CC"} | more
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("case", NO_COMPILER)
def test_without_a_compiler_it_builds_without_compiled_copies(case: str, tmp_path: Path) -> None:
    """With Cython, as pip brings it along: what it makes of the extensions must still be optional."""
    done = built(tmp_path, NO_COMPILER[case])
    assert done.returncode == 0, done.stderr
    assert 'building extension "tflite_memopt.solvers.plan._disjunctive" failed' in done.stdout + done.stderr
    assert [*tmp_path.rglob("*.so")] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [("compiled", 1, "error"), ("python", 0, ""), ("both", 1, "write compiled or python")],
)
def test_a_release_says_what_it_wants(wanted: str, code: int, said: str, tmp_path: Path) -> None:
    """A wheel that is to be compiled is never made without; the pure one is, whatever compiler there is."""
    done = built(tmp_path, {"CC": "/bin/false", "TFLITE_MEMOPT_PLANNERS": wanted})
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert 'building extension "tflite_memopt' not in done.stdout + done.stderr


def test_one_place_decides_the_version() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert settings["metadata"]["version"] == "attr: tflite_memopt.version.__version__"
    said = [path for path in ("setup.py", "setup.cfg", "pyproject.toml") if __version__ in (ROOT / path).read_text()]
    assert said == []


def test_what_can_change_results_has_an_upper_bound() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    needed = settings["options"]["install_requires"].strip().splitlines()
    free = {line.partition(">")[0] for line in needed if "<" not in line.partition(";")[0]}
    assert free == {"click", "jinja2", "rich"}, "they only show"


WORKFLOWS = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_others_are_named_by_their_commit(path: Path) -> None:
    """A tag may move, and with it what a release is made of."""
    used = re.findall(r"uses: (\S+)", path.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


def test_the_matrix_is_what_the_package_says_it_is_for() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    said = re.findall(r"Python :: (3\.\d+)", settings["metadata"]["classifiers"])
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    assert tests["jobs"]["suite"]["strategy"]["matrix"]["python"] == said
    built_for = re.findall(r"cp3(\d+)-\*", (ROOT / "pyproject.toml").read_text())
    assert [f"3.{minor}" for minor in built_for] == said
    assert [f"3.{minor}" for minor in MINORS] == said


def test_only_one_job_of_the_release_may_publish_and_none_has_a_password() -> None:
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert release["permissions"] == {"contents": "read"}
    may = {name: job.get("permissions", {}) for name, job in release["jobs"].items()}
    assert {name for name, each in may.items() if "id-token" in each} == {"attest", "publish"}
    assert release["jobs"]["publish"]["if"] == "github.ref_type == 'tag'"
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


def test_the_page_on_ci_calls_the_action_and_the_hook_by_their_names() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    called = re.search(r"tflite_memopt\n +with: (\{.*\})", page)
    assert called is not None
    assert set(yaml.safe_load(called[1])) <= set(yaml.safe_load((ROOT / "action.yml").read_text())["inputs"])
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert f"- id: {hook['id']}" in page


def test_every_file_of_the_package_is_in_its_wheel() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    patterns = [each.strip() for each in settings["options.package_data"]["tflite_memopt"].split(",")]
    made = {".py", ".pyc", ".so", ".pyd"}
    home = ROOT / "tflite_memopt"
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix not in made]
    assert files
    missed = {path.relative_to(home).as_posix() for path in files} - {
        found.relative_to(home).as_posix() for pattern in patterns for found in home.glob(pattern)
    }
    assert missed == set()
