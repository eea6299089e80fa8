"""``check``, and what calls it: the action's own steps as GitHub runs them, and the hook as pre-commit runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.command import run
from tests.models import dense_model, mobile_chain
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.repository import MARK, ModelRam, ram_markdown

ROOT = Path(__file__).parent.parent
_NAMES = ("models/key words ü.tflite", "models/vision|x.tflite")
_OVER, _BAD = 3, 2


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two models at the first commit, one of which has grown since."""
    made = tmp_path / "a repository"
    (made / "models").mkdir(parents=True)
    for name, model in zip(_NAMES, (dense_model(), mobile_chain(12)), strict=True):
        (made / name).write_bytes(write_model(model))
    git(made, "init", "--quiet", "--initial-branch", "main")
    git(made, "add", ".")
    git(made, "commit", "--quiet", "--message", "before")
    (made / _NAMES[1]).write_bytes(write_model(mobile_chain(24)))
    git(made, "commit", "--quiet", "--all", "--message", "larger")
    return made


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("check", *arguments, folder=folder)


def test_it_tells_all_models_and_fails_where_one_has_grown(repository: Path) -> None:
    done = check(repository)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("RAM of 2 models: all is well\n")
    grown = check(repository, "--against", "HEAD~1")
    assert grown.returncode == _OVER
    assert grown.stdout.startswith("RAM of 2 models: 1 grown\n")
    assert re.search(r"key words ü.tflite: ([\d,]+) -> \1 bytes, no change", grown.stdout)
    assert re.search(r"vision\|x.tflite: [\d,]+ -> [\d,]+ bytes, \+[\d,]+ \(\+[\d.]+ %\), .*, grown\n", grown.stdout)
    assert check(repository, "--against", "HEAD").returncode == 0


def test_it_fails_above_a_budget(repository: Path) -> None:
    needs = [int(found.replace(",", "")) for found in re.findall(r": ([\d,]+) bytes", check(repository).stdout)]
    assert len(needs) == 2
    over = check(repository, "--budget", str(max(needs)))
    assert over.returncode == _OVER  # with the library that needs the most
    assert "1 over budget\n" in over.stdout
    assert re.search(
        r", over budget: DOES NOT FIT [\d,]+ bytes with cmsis-nn-mve: [\d,]+ bytes too many\n", over.stdout
    )
    most = max(int(found.replace(",", "")) for found in re.findall(r"([\d,]+) with \w", over.stdout))
    assert check(repository, "--budget", str(most)).returncode == 0
    assert check(repository, "--budget", str(most - 1)).returncode == _OVER


def test_programs_get_the_rows_as_json(repository: Path) -> None:
    rows = json.loads(check(repository, "--json", "--against", "HEAD~1").stdout)
    assert [row["name"] for row in rows] == sorted(_NAMES)
    assert all(row["now"] >= row["before"] > 0 for row in rows)


def test_what_is_new_has_nothing_to_be_compared_with(repository: Path) -> None:
    (repository / "new.tflite").write_bytes(write_model(dense_model()))
    done = check(repository, "--against", "HEAD", "new.tflite")
    assert (done.returncode, done.stdout.count("->")) == (0, 0)


def test_what_is_no_model_is_told_with_the_others(repository: Path) -> None:
    (repository / "models" / "broken.tflite").write_bytes(b"no model")
    done = check(repository, "--markdown", "ram.md")
    assert done.returncode == _BAD
    assert done.stdout.startswith("RAM of 3 models: 1 with an error\n")
    assert "broken.tflite: " in done.stdout
    assert "| models/broken.tflite |  |  |  | " in (repository / "ram.md").read_text(encoding="utf-8")
    assert check(repository, "--budget", "64").returncode == _BAD  # which counts for more than a budget


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--against", "nowhere"), "has no revision 'nowhere'"),
        (("--against=-x",), "'-x' is not a revision"),
        (("no.tflite",), "no model matches"),
        (("--markdown", "no/folder.md"), "does not exist"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: tuple[str, ...], said: str, repository: Path) -> None:
    done = check(repository, *arguments)
    assert done.returncode == _BAD
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_name_of_a_file_breaks_out_of_its_cell() -> None:
    name = "a|b`<img src=x>`@me [x](y) #1\n| c"
    row = ram_markdown([ModelRam(name, 1), ModelRam("b", None, error="<b>|")], None, "x").splitlines()[5]
    assert row.count("|") == 6
    assert not set("<`@") & set(row.replace("\\`", ""))


# The action


def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


class Job:
    """A job of GitHub's that calls the action in a pull request: its steps, one after the other, with stand-ins."""

    def __init__(self, repository: Path, folder: Path, inputs: dict[str, str]) -> None:
        self.folder, self.repository = folder, repository
        given = {name: each.get("default", "") for name, each in action()["inputs"].items()} | inputs
        self.values = {
            "github.event.pull_request.base.sha": git(repository, "rev-parse", "HEAD~1"),
            "github.event.pull_request.number": "7",
            "github.repository": "owner/name",
            "github.token": "secret",
            "steps.install.outputs.python": sys.executable,
        }
        self.values |= {f"inputs.{name}": self.filled(value) for name, value in given.items()}
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        gh = bin_folder / "gh"  # it keeps what it is told, and finds what it was told before
        gh.write_text(
            '#!/bin/sh\necho "$@" >> "$GH_LOG"\n'
            'case "$*" in *paginate*) cat "$GH_FOUND" 2>/dev/null;; *--method*) echo 42 > "$GH_FOUND";; esac\n'
        )
        gh.chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GH_LOG": str(folder / "gh.log"),
            "GH_FOUND": str(folder / "gh.found"),
        }

    def filled(self, text: str) -> str:
        """With its expressions replaced, as GitHub does before a step."""
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: self.values[found[1]], text)

    def run(self, *ids: str) -> list[int]:
        """The codes of these steps; their outputs are there for the next ones."""
        codes = []
        for step in (each for each in action()["runs"]["steps"] if each.get("id") in ids):
            (self.folder / "output").write_text("")
            environment = self.environment | {name: self.filled(value) for name, value in step.get("env", {}).items()}
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            codes.append(subprocess.run(command, cwd=self.repository, env=environment, check=False).returncode)
            for line in (self.folder / "output").read_text().splitlines():
                name, _, value = line.partition("=")
                self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return codes

    def comment(self) -> str:
        return (self.folder / "ram.md").read_text(encoding="utf-8")

    def calls(self) -> list[str]:
        return (self.folder / "gh.log").read_text().splitlines()


STEPS = ("check", "comment", "result")


@pytest.mark.slow
def test_the_action_comments_and_fails_where_a_model_has_grown(repository: Path, tmp_path: Path) -> None:
    job = Job(repository, tmp_path, {"target": "cortex-m4"})
    assert job.run(*STEPS) == [0, 0, _OVER]
    assert job.comment().startswith(f"{MARK}\n### RAM of 2 models: 1 grown\n")
    assert "on cortex-m4" in job.comment()
    assert (tmp_path / "summary.md").read_text(encoding="utf-8") == job.comment()
    assert job.calls()[-1] == (
        f"api --method POST repos/owner/name/issues/7/comments --field body=@{tmp_path / 'ram.md'} --silent"
    )


@pytest.mark.slow
def test_the_next_run_replaces_the_comment(repository: Path, tmp_path: Path) -> None:
    job = Job(repository, tmp_path, {"against": "", "budget": "1M"})
    assert job.run(*STEPS) + job.run(*STEPS) == [0] * 6
    assert "--method PATCH repos/owner/name/issues/comments/42 " in job.calls()[-1]
    assert MARK in job.calls()[-2]


@pytest.mark.slow
def test_the_action_fails_above_a_budget_and_takes_several_models(repository: Path, tmp_path: Path) -> None:
    named = "\n".join((*_NAMES, ""))
    job = Job(repository, tmp_path, {"budget": "64", "against": "", "models": named})
    assert job.run(*STEPS)[-1] == _OVER
    assert "2 over budget" in job.comment()


@pytest.mark.slow
def test_what_is_given_to_the_action_is_data(repository: Path, tmp_path: Path) -> None:
    """No input stands in the text of a step, where the shell would run it."""
    assert not [step for step in action()["runs"]["steps"] if "${{" in step.get("run", "")]
    job = Job(repository, tmp_path, {"models": "$(touch hacked)", "target": "", "against": ""})
    assert job.run(*STEPS)[-1] == _BAD
    assert not (repository / "hacked").exists()


@pytest.mark.slow
def test_a_comment_that_cannot_be_written_is_a_warning(repository: Path, tmp_path: Path) -> None:
    job = Job(repository, tmp_path, {"against": ""})
    (tmp_path / "bin" / "gh").write_text("#!/bin/sh\nexit 1\n")
    assert job.run(*STEPS) == [0, 0, 0]


# The hook


def test_the_hook_stops_a_commit_that_needs_more(repository: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [bool(re.search(hook["files"], name)) for name in (*_NAMES, "x.tflite.txt")] == [True, True, False]
    words = shlex.split(hook["entry"])
    assert words.pop(0) == "tflite-memopt"

    def code(*arguments: str) -> int:
        return run(*words, *arguments, *_NAMES, folder=repository).returncode

    assert code() == 0
    assert code("--budget", "64") == _OVER
    (repository / _NAMES[0]).write_bytes(write_model(dense_model(4096)))
    assert code() == _OVER


def test_each_input_of_the_action_is_described() -> None:
    assert all(each["description"].endswith(".") for each in action()["inputs"].values())
    assert json.dumps(action())  # plain data


# Submodules, other builds, code scanning


def test_models_of_submodules_are_not_counted(repository: Path, tmp_path: Path) -> None:
    """As docs/ci.md has it: this tool, with the model of its demo, in tools/."""
    tool = tmp_path / "tool"
    tool.mkdir()
    (tool / "demo.tflite").write_bytes(write_model(mobile_chain(48)))
    git(tool, "init", "--quiet")
    git(tool, "add", ".")
    git(tool, "commit", "--quiet", "--message", "demo")
    before = check(repository).stdout
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tool), "tools/tool")
    assert (repository / "tools" / "tool" / "demo.tflite").is_file()
    assert check(repository).stdout == before
    assert check(repository, "tools/tool").stdout.startswith("RAM of 1 model: ")  # where it is named


@pytest.mark.slow
def test_what_a_file_was_is_judged_for_the_build_that_it_is_for(repository: Path) -> None:
    """Else the original, unlabeled, is compared with another build and another target."""
    name = _NAMES[1]
    done = run("optimize", name, "-o", "small.tflite", "--target", "cortex-m4", "--tflm", "zephyr-4.2", "--no-verify",
               "--effort", "quick", folder=repository)  # fmt: skip
    assert done.returncode == 0, done.stderr
    alone = run("analyze", name, "--target", "cortex-m4", "--tflm", "zephyr-4.2", "--json", folder=repository)
    (repository / name).write_bytes((repository / "small.tflite").read_bytes())
    (row,) = json.loads(check(repository, "--json", "--against", "HEAD", name).stdout)
    assert row["before"] == json.loads(alone.stdout)["answer"]["reserve"]


def test_what_fails_is_told_to_code_scanning(repository: Path) -> None:
    (repository / "models" / "broken.tflite").write_bytes(b"no model")
    done = check(repository, "--sarif", "ram.sarif", "--against", "HEAD~1", "--budget", "64")
    assert done.returncode == _BAD
    log = json.loads((repository / "ram.sarif").read_text())
    (found,) = log["runs"]
    rules = [each["id"] for each in found["tool"]["driver"]["rules"]]
    told = {(each["ruleId"], _uri(each)) for each in found["results"]}
    key_words, vision = "models/key%20words%20%C3%BC.tflite", "models/vision%7Cx.tflite"
    over = {("over-budget", key_words), ("over-budget", vision)}
    assert told == over | {("ram-grown", vision), ("model-error", "models/broken.tflite")}
    assert {rule for rule, _ in told} == set(rules)
    sarif = pytest.importorskip("sarif_pydantic")
    sarif.Sarif.model_validate_json((repository / "ram.sarif").read_text())
    assert check(repository, "--sarif", "ram.sarif").returncode == _BAD  # it exists


def _uri(result: Any) -> str:
    return str(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


@pytest.mark.slow
def test_a_revision_that_begins_with_a_dash_is_no_option_of_git(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", str(repository))
    for name in ("--upload-pack=touch hacked", "-x", "--version"):
        folder = tmp_path / name.strip("-").partition(" ")[0]
        folder.mkdir()
        assert Job(repository, folder, {"against": name}).run(*STEPS)[-1] == _BAD
    assert not (repository / "hacked").exists()


def test_the_hook_of_the_page_runs_in_pre_commit(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("pre-commit") is None:
        pytest.skip("not installed: pre-commit (.ci/run installs it)")
    tool = tmp_path / "bin" / "tflite-memopt"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tflite_memopt "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    block = (ROOT / "docs" / "ci.md").read_text().partition("    # .pre-commit-config.yaml\n")[2].partition("\n\n")[0]
    config = re.sub("^    ", "", block, flags=re.MULTILINE)
    (repository / ".pre-commit-config.yaml").write_text(config)

    def code() -> int:
        git(repository, "add", ".")
        words = ["pre-commit", "run", "--all-files"]
        done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
        assert "RAM of .tflite models" in done.stdout, done.stdout + done.stderr
        return done.returncode

    assert code() == 0
    (repository / _NAMES[0]).write_bytes(write_model(dense_model(4096)))
    assert code() == 1
    git(repository, "commit", "--quiet", "--message", "larger", "--no-verify")
    (repository / ".pre-commit-config.yaml").write_text(config.replace("128K", "1K"))
    assert code() == 1
