"""Files on disk are written whole or not at all, and nothing is replaced by accident."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import raises
from tflite_memopt.errors import ErrorKind, OutputError, UsageError
from tflite_memopt.model.io.files import check_target, read_file, write_files, write_folder

_ON_A_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from tflite_memopt.errors import OutputError
from tflite_memopt.model.io.files import write_files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
folder = Path(sys.argv[1])
try:
    write_files({folder / "small": b"new", folder / "large": bytes(100_000)})
except OutputError as error:
    print(error)
"""


def test_all_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"a longer text than the new one")
    write_files({old: b"short", tmp_path / "new": b"\x00\xff"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old": b"short", "new": b"\x00\xff"}


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_files({link: b"new"})
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"target", "link"}


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_is_no_model() -> None:
    with raises(UsageError, ErrorKind.NOT_A_FILE):
        read_file("/dev/zero")


def test_writing_leaves_the_mask_of_the_process_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(mask: int) -> int:
        raise AssertionError(f"another thread may write a file under the mask {mask:o}")

    monkeypatch.setattr(os, "umask", changed)
    write_files({tmp_path / "out.tflite": b"model"})
    assert (tmp_path / "out.tflite").read_bytes() == b"model"


def test_a_written_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    old_mask = os.umask(0o027)
    try:
        write_files({tmp_path / "model": b"x"})
    finally:
        assert os.umask(old_mask) == 0o027
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640


def test_a_missing_folder_leaves_the_other_files_alone(tmp_path: Path) -> None:
    (tmp_path / "first").write_bytes(b"old")
    missing = tmp_path / "missing" / "second"
    with raises(OutputError, None, str(tmp_path / "missing")):
        write_files({tmp_path / "first": b"new", missing: b"new"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"first": b"old"}


def test_a_folder_as_target_is_refused_and_kept(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with raises(OutputError, None, str(target)):
        write_files({target: b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert target.is_dir()


def test_a_file_that_cannot_be_begun_is_named_as_it_was_given(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "model"
    with raises(OutputError, None, f"cannot write '{target}': "):
        write_files({target: b"new"})


@pytest.mark.skipif(sys.platform == "win32", reason="RLIMIT_FSIZE is POSIX")
def test_a_file_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"old")
    command = [sys.executable, "-c", _ON_A_FULL_DISK, os.fspath(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == f"cannot write '{tmp_path / 'large'}': {os.strerror(errno.EFBIG)}\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"small": b"old"}


def test_a_disk_that_fills_up_at_the_last_moment_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as caught:
        write_files({tmp_path / "model": b"new"})
    assert str(caught.value) == f"cannot write '{tmp_path / 'model'}': {os.strerror(errno.ENOSPC)}"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"model": b"old"}


def test_a_full_disk_leaves_no_new_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for folder in ("old", "new/inner"):
        with raises(OutputError, None, folder):
            write_folder(tmp_path / folder, {"a": b"a", "deep/b": b"b"}, (), force=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "model": b"new"})
    assert list(tmp_path.iterdir()) == []


def test_reading_gives_the_bytes_or_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"\x00\r\n")
    assert read_file(tmp_path / "model") == b"\x00\r\n"
    with raises(UsageError, ErrorKind.NOT_A_FILE, "absent"):
        read_file(tmp_path / "absent")
    with raises(UsageError, ErrorKind.NOT_A_FILE):
        read_file(tmp_path)


def test_a_new_name_is_a_good_target(tmp_path: Path) -> None:
    check_target(tmp_path / "new", (tmp_path / "in",), force=False)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_target_needs_force(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"")
    with raises(UsageError, ErrorKind.EXISTS, "--force"):
        check_target(target, (), force=False)
    check_target(target, (), force=True)


def test_the_input_as_target_needs_force_by_any_of_its_names(tmp_path: Path) -> None:
    source, alias = tmp_path / "in", tmp_path / "alias"
    source.write_bytes(b"")
    alias.symlink_to(source)
    for target in (source, alias, tmp_path / "." / "in"):
        with raises(UsageError, ErrorKind.IS_INPUT, "--force"):
            check_target(target, (tmp_path / "other", source), force=False)
        check_target(target, (source,), force=True)


@pytest.mark.parametrize("force", [False, True])
def test_force_does_not_help_a_target_that_cannot_be_written(tmp_path: Path, force: bool) -> None:
    with raises(UsageError, ErrorKind.NOT_WRITABLE, "missing'"):
        check_target(tmp_path / "missing" / "out", (), force)
    with raises(UsageError, ErrorKind.NOT_A_FILE):
        check_target(tmp_path, (), force)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with raises(UsageError, ErrorKind.NOT_A_FILE):
        check_target(pipe, (), force)


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_without_write_permission_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == tmp_path and mode == os.W_OK))
    with raises(UsageError, ErrorKind.NOT_WRITABLE):
        check_target(tmp_path / "out", (), force)
