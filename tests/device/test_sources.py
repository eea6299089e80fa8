"""Where TFLM's sources are found, and that what is built follows their content."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from scripts.device_lab.build import missing_tools
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.sources import find_sources, sources_from_environment
from tflite_memopt.errors import UsageError

TABLE = """
| folder | repository | commit |
|---|---|---|
| tflite-micro | tensorflow/tflite-micro | 90b983c2b3f1480642e040bbd2ddb37b998f3424 |
| cmsis-nn | ARM-software/CMSIS-NN | 4ab83cc3cc98 (a pin) |
"""


def tree(folder: Path) -> Path:
    for name in ("tflite-micro", "flatbuffers", "gemmlowp", "ruy", "cmsis-nn"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.h").write_text(name)
    (folder / "SOURCES.md").write_text(TABLE)
    return folder


def test_a_folder_tells_commits_and_what_it_lacks(tmp_path: Path) -> None:
    sources = find_sources(tree(tmp_path / "t"), tmp_path / "cache")
    assert sources.missing("cmsis-nn") == []
    assert sources.missing("esp-nn") == ["esp-nn", "esp-tflite-micro"]
    assert sources.commit("cmsis-nn") == "tflite-micro-90b983c2b3f1,cmsis-nn-4ab83cc3cc98"
    assert sources.commit("esp-nn").endswith("esp-nn-unknown,esp-tflite-micro-unknown")


def test_an_archive_is_unpacked_once_and_is_worth_its_folder(tmp_path: Path) -> None:
    folder, archive = tree(tmp_path / "t"), tmp_path / "t.tar.xz"
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(folder, "third_party")
    first, again = (find_sources(archive, tmp_path / "cache") for _ in range(2))
    assert first == again
    assert first.folder.is_relative_to(tmp_path / "cache")
    assert (first.key, first.commits) == (find_sources(folder, tmp_path).key, find_sources(folder, tmp_path).commits)


def test_the_key_follows_every_source_file(tmp_path: Path) -> None:
    folder = tree(tmp_path / "t")
    keys = {find_sources(folder, tmp_path).key}
    (folder / "ruy" / "a.h").write_text("other")
    keys.add(find_sources(folder, tmp_path).key)
    (folder / "ruy" / "a.h").rename(folder / "ruy" / "b.h")
    keys.add(find_sources(folder, tmp_path).key)
    assert len(keys) == 3
    (folder / "ruy" / "README.md").write_text("no source")
    assert find_sources(folder, tmp_path).key in keys


def test_a_checkout_with_downloads_is_linked_together(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    downloads = checkout / "tensorflow/lite/micro/tools/make/downloads"
    for name in ("flatbuffers", "gemmlowp", "ruy", "cmsis_nn"):
        (downloads / name).mkdir(parents=True)
    sources = find_sources(checkout, tmp_path / "cache")
    assert sources.missing("cmsis-nn") == []
    assert (sources.folder / "cmsis-nn").resolve() == downloads / "cmsis_nn"
    assert (sources.folder / "tflite-micro").resolve() == checkout
    assert find_sources(checkout, tmp_path / "cache") == sources


def test_what_is_no_source_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no folder tflite-micro"):
        find_sources(tmp_path, tmp_path)
    with pytest.raises(UsageError, match="neither a folder nor an archive"):
        find_sources(tmp_path / "absent", tmp_path)
    (tmp_path / "text.tar.xz").write_text("no archive")
    with pytest.raises(UsageError, match="cannot unpack"):
        find_sources(tmp_path / "text.tar.xz", tmp_path)


def test_without_sources_or_tools_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFLITE_MEMOPT_TFLM", raising=False)
    assert sources_from_environment(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, build in BUILDS.items():
        assert ("qemu-system-arm" in str(missing_tools(build))) == (not name.startswith("host"))
        assert "apt-get install" in str(missing_tools(build))
