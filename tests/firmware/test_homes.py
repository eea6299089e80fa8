"""PlatformIO, west, and ESPHome run what optimizes a model in their builds; idf.py's part is called as idf.py does.

PlatformIO is PyPI's, with PyPI's SCons in place of its package of SCons, and a platform for this machine. The
workspace of west has a repository with the version of a Zephyr, and this one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.firmware.test_esphome import MANIFEST, wake_word
from tests.models import mobile_chain
from tflite_memopt.model.io.writer import write_model

ROOT = Path(__file__).parents[2]
SYSTEMS = ROOT / "tflite_memopt" / "firmware" / "build_systems"
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and, on the path, this environment's ``tflite-memopt``."""
    tool = tmp_path / "bin" / "tflite-memopt"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tflite_memopt "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made = tmp_path / "project"
    made.mkdir()
    (made / "model.tflite").write_bytes(write_model(mobile_chain()))
    return made


def installed(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"not installed: {name} (.ci/run installs it)")
    return found


def ran(*words: str | Path, folder: Path, **more: str) -> tuple[int, str]:
    environment = os.environ | more
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def package(folder: Path, name: str, version: str, kind: str) -> None:
    """Write what PlatformIO knows an installed package by."""
    folder.mkdir(parents=True)
    spec = {"owner": "platformio", "id": None, "name": name, "requirements": None, "uri": None}
    told = {"type": kind, "name": name, "version": version, "spec": spec}
    (folder / ".piopm").write_text(json.dumps(told))
    file = "package.json" if kind == "tool" else "platform.json"
    (folder / file).write_text(json.dumps({"name": name, "version": version, "title": name, "description": name}))


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """PlatformIO's folder with a platform for this machine, and the SCons that PlatformIO asks for."""
    pio = installed("pio")
    python = Path(os.path.realpath(pio)).read_text().splitlines()[0].removeprefix("#!")
    ask = "from platformio.dependencies import get_core_dependencies as d; import SCons; print(d()['tool-scons'][1:])"
    code, said = ran(python, "-c", ask, folder=tmp_path)
    assert code == 0, said
    made = tmp_path / "core"
    package(made / "packages" / "tool-scons", "tool-scons", said.strip(), "tool")
    (made / "packages" / "tool-scons" / "scons.py").write_text("from SCons.Script import main\nmain()\n")
    native = made / "platforms" / "native"
    package(native, "native", "1.0.0", "platform")
    (native / "platform.py").write_text(
        "from platformio.platform.base import PlatformBase\nclass NativePlatform(PlatformBase):\n    pass\n"
    )
    (native / "builder").mkdir()
    (native / "builder" / "main.py").write_text(
        "from SCons.Script import Default, DefaultEnvironment\nDefault([DefaultEnvironment().BuildProgram()])\n"
    )
    return made


def lines_of(page: str, first: str) -> str:
    """The block of a page that begins with this line, without its indent."""
    block = page.partition(f"\n    {first}\n")[2].partition("\n\n")[0]
    return "\n".join((first, *(line.removeprefix("    ") for line in block.splitlines())))


def test_platformio_optimizes_before_it_builds_and_fails_over_the_budget(folder: Path, core: Path) -> None:
    page = (ROOT / "docs" / "device.md").read_text()
    settings = lines_of(page, "extra_scripts = pre:pio_memopt.py").replace("--target esp32s3", "--effort quick")
    (folder / "platformio.ini").write_text(f"[env:app]\nplatform = native\n{settings}\n")
    (folder / "src").mkdir()
    (folder / "src" / "main.cpp").write_text(
        "#include \"model/model_data.h\"\nint main() { return model::kModelData[4] == 'T' ? 0 : 1; }\n"
    )
    shutil.copy(SYSTEMS / "pio_memopt.py", folder)
    where = {"PLATFORMIO_CORE_DIR": str(core), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no"}
    code, said = ran("pio", "run", folder=folder, **where)
    assert (code, "tflite-memopt optimize" in said) == (0, True), said
    assert ran(folder / ".pio" / "build" / "app" / "program", folder=folder)[0] == 0
    code, said = ran("pio", "run", folder=folder, **where)
    assert (code, "tflite-memopt optimize" in said) == (0, False), said  # nothing has changed
    (folder / "platformio.ini").write_text(f"[env:app]\nplatform = native\n{settings.replace('64K', '1K')}\n")
    for _ in range(2):
        code, said = ran("pio", "run", folder=folder, **where)
        assert code != 0
        assert "DOES NOT FIT 1 KB" in said


def test_west_names_the_tflm_of_its_zephyr(folder: Path) -> None:
    installed("west")
    top = folder.parent
    (top / "zephyr").mkdir()
    (top / "zephyr" / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n")
    where = top / "modules" / "tflite_memopt"
    shutil.copytree(SYSTEMS / "west", where / SYSTEMS.relative_to(ROOT) / "west")
    for repository in (top / "zephyr", where):
        for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
            identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
            code, said = ran("git", *identity, *words, folder=repository)
            assert code == 0, said
    page = (ROOT / "docs" / "device.md").read_text()
    entry = lines_of(page, "- name: tflite_memopt")
    projects = "\n".join(
        f"    {line}" for line in ("- name: zephyr", "  url: https://example.org/z", *entry.splitlines())
    )
    (folder / "west.yml").write_text(f"manifest:\n  projects:\n{projects}\n  self:\n    path: project\n")
    code, said = ran("west", "init", "-l", folder, folder=top)
    assert code == 0, said
    quick = ("--effort", "quick", "--no-verify")
    code, said = ran("west", "memopt", "model.tflite", "--budget", "64K", *quick, folder=folder)
    assert code == 0, said
    assert {"model.tflite", "setup.h", "main.cc"} <= {path.name for path in (folder / "src" / "model").iterdir()}
    assert b'"tflm": "zephyr-4.2"' in (folder / "src" / "model" / "model.tflite").read_bytes()
    assert ran("west", "memopt", "model.tflite", "--budget", "1K", *quick, folder=folder)[0] == 3


def test_idf_py_names_the_chip_of_its_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("tflite_memopt_ext", SYSTEMS / "esp_idf" / "tflite_memopt_ext.py")
    assert spec is not None
    assert spec.loader is not None
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    found = extension.action_extensions({}, str(folder))["actions"]["memopt"]
    given = {option["names"][0].removeprefix("--"): option["default"] for option in found["options"]}
    given |= {"model": "model.tflite", "options": "--effort quick --no-verify"}
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit, match="set-target"):
        found["callback"]("memopt", None, None, **given)
    (folder / "sdkconfig").write_text('CONFIG_IDF_TARGET="esp32s3"\n')
    found["callback"]("memopt", None, None, **given)
    assert "esp-nn" in (folder / "main" / "model" / "arena.h").read_text()
    with pytest.raises(SystemExit, match="3"):
        found["callback"]("memopt", None, None, **given | {"budget": "1K"})


_WAKE = """
esphome: {name: wake}
esp32: {board: esp32-s3-devkitc-1, variant: esp32s3, framework: {type: esp-idf}}
i2s_audio: {i2s_lrclk_pin: GPIO5, i2s_bclk_pin: GPIO6}
microphone: {platform: i2s_audio, id: mic, adc_type: external, i2s_din_pin: GPIO4, channel: left, pdm: false}
micro_wake_word:
  microphone: mic
  models: [{model: firmware/esphome/okay_nabu.json}]
"""


def test_esphome_optimizes_before_it_writes_its_firmware_and_fails_over_the_budget(folder: Path) -> None:
    esphome = installed("esphome")
    shutil.copytree(SYSTEMS / "esphome", folder / "components")
    (folder / "okay_nabu.tflite").write_bytes(write_model(wake_word()))
    (folder / "okay_nabu.json").write_text(json.dumps(MANIFEST))
    added = lines_of((ROOT / "docs" / "device.md").read_text(), "external_components:")
    added = f"{added} --effort quick --no-verify"  # the wake word of the tests has scales that no runtime takes
    (folder / "wake.yaml").write_text(added + _WAKE)
    code, said = ran(esphome, "compile", "--only-generate", "wake.yaml", folder=folder)
    assert code == 0, said
    arena = json.loads((folder / "firmware" / "esphome" / "okay_nabu.json").read_text())["micro"]["tensor_arena_size"]
    (main,) = folder.rglob("src/main.cpp")
    assert f'"a word", {arena}, ' in main.read_text()
    (folder / "wake.yaml").write_text(added.replace("26K", "1K") + _WAKE)
    code, said = ran(esphome, "config", "wake.yaml", folder=folder)
    assert code != 0
    assert "DOES NOT FIT 1 KB" in said
