"""Sources by git, from repositories on this machine in the place of GitHub."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.device_lab.fetch import PINS, fetched_sources
from scripts.device_lab.sources import find_sources
from tflite_memopt.errors import UsageError

PATCH = """--- a/a.h
+++ b/a.h
@@ -1 +1 @@
-int a;
+int b;
"""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repositories(folder: Path) -> dict[str, tuple[str, str]]:
    """One of each, with one file; flatbuffers' patch is in TFLM's."""
    pins = {}
    for name in PINS:
        made = folder / name
        made.mkdir(parents=True)
        (made / "a.h").write_text("int a;\n")
        if name == "tflite-micro":
            place = made / "tensorflow/lite/micro/tools/make"
            place.mkdir(parents=True)
            (place / "flatbuffers.patch").write_text(PATCH)
        git(made, "init", "--quiet")
        git(made, "add", "-A")
        git(made, "commit", "--quiet", "-m", "one")
        git(made, "config", "uploadpack.allowAnySHA1InWant", "true")
        pins[name] = (name, git(made, "rev-parse", "HEAD"))
    return pins


def test_sources_are_fetched_patched_and_known_by_their_commits(tmp_path: Path) -> None:
    pins = repositories(tmp_path / "remote")
    folder = fetched_sources(tmp_path / "cache", f"file://{tmp_path / 'remote'}", pins)
    assert (folder / "flatbuffers" / "a.h").read_text() == "int b;\n"
    assert (folder / "ruy" / "a.h").read_text() == "int a;\n"
    assert find_sources(folder, tmp_path / "cache").commits == {name: commit for name, (_, commit) in pins.items()}
    assert fetched_sources(tmp_path / "cache", "file:///nowhere", pins) == folder


def test_what_cannot_be_fetched_ends_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git fetch fails: ") as found:
        fetched_sources(tmp_path, f"file://{tmp_path}/nowhere")
    assert "\n" not in str(found.value)
    assert not list(next(tmp_path.iterdir()).iterdir())
