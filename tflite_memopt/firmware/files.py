"""A description of firmware in, texts of files out, by the templates beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from zlib import adler32

import jinja2

from ..kernels.arena import larger_structures
from ..kernels.profile import KernelProfile
from ..kernels.since import BUILDS, TflmBuild, newest_of, runs_on
from ..kernels.targets import esp_nn_to_pin
from ..model.ir.tensors import zero_of
from ..version import __version__
from .cpp_text import identifiers, literal
from .description import Network, Networks, OneModel
from .example import port_of
from .resolver import Registrations, every_builtin, registrations
from .self_test import RUNS, Expected, kind_of, tested_outputs
from .sizes import LAYOUTS, condition_of

_TEMPLATES = Path(__file__).parent / "templates"
SNIPPETS = frozenset(
    path.relative_to(_TEMPLATES).with_suffix("").as_posix() for path in _TEMPLATES.glob("snippets/**/*.jinja")
)
"""Of them, a folder of firmware has those of its target."""
FILES = ("model_data.h", "model_data.cc", "arena.h", "resolver.h", "setup.h", "self_test.h", "main.cc", "example.cc")
PLANNER_FILES = ("planner.h", "table_planner.h")
PLANNER_FILE = PLANNER_FILES[0]
_OF_A_PART = ("model_data.h", "model_data.cc", "arena.h", PLANNER_FILE)
_ESP_IDF = ("CMakeLists.txt", "sdkconfig.defaults", "main/CMakeLists.txt", "main/idf_component.yml")
_BOARDS: Mapping[str, str] = {"esp32": "esp32dev", "esp32c3": "esp32-c3-devkitm-1", "esp32s3": "esp32-s3-devkitc-1"}
"""Of PlatformIO's espressif32 6.10 by chip; it has none with an ESP32-P4."""
_PACKAGES = frozenset(name.partition("-")[0] for name, build in BUILDS.items() if build.day is not None)
_CORES_OF_PICO = ("cortex-m0", "cortex-m33")


def files_of_model(one: OneModel, expected: Expected = Expected()) -> dict[str, bytes]:
    """Return the files by path; ``expected``: the outputs that the test in ``main.cc`` compares."""
    inputs, outputs = one.model.main.inputs, one.model.main.outputs
    words = _words_of(one) | {
        "expected": expected,
        "tested": tested_outputs(outputs, expected),
        "inputs": inputs,
        "frames": [at for at in range(len(inputs)) if at not in one.tied],
        "ports_in": [port_of(at, each, (), one.channels_last) for at, each in enumerate(inputs)],
        "ports_out": [port_of(at, each, (one.model,), one.channels_last) for at, each in enumerate(outputs)],
        **_resolver_words(one.registrations),
    }
    added = [
        *(PLANNER_FILES if one.table is not None else ()),
        *(("apart_allocator.h",) if one.is_apart else ()),
        *(("steps.h",) if one.tied else ()),
    ]
    files = {path: _filled(path, **words) for path in (*FILES, *_snippets(one), *added)}
    return files | {
        path.replace(".", "_two_arenas."): _filled(path, **words | {"two_arenas": True})
        for path in ("setup.h", "main.cc")
    }


def files_of_networks(every: Networks, expected: Sequence[Expected] = ()) -> dict[str, bytes]:
    """Return the files by path; ``expected``: of each network, what the test in ``main.cc`` compares."""
    header = "program.h" if every.is_one else "models.h"
    parts = [part for network in every.networks for part in network.parts]
    words = vars(every) | {
        "version": __version__,
        "condition": condition_of(every.profile.name),
        "header": header,
        "object": f"{every.name}::Program program;" if every.is_one else f"{every.name}::Models networks;",
        "variables": max(part.model.variables for part in parts),
        **_resolver_words(registrations(every.model)),
    }
    files = dict[str, bytes]()
    for part in parts:
        root = "../" * (part.folder.count("/") + 1)
        given = _words_of(part.model) | {"root": root}
        files |= {f"{part.folder}/{path}": _filled(path, **given) for path in _OF_A_PART}
    for network, wanted in zip(every.networks, expected or [Expected()] * len(every.networks), strict=True):
        tested = tested_outputs(network.outputs, wanted)
        given = {"name": network.name, "inputs": network.drawn, "tested": tested, "expected": wanted, "tied": ()}
        files[f"self_test_{network.name}.h"] = _filled("self_test.h", **words | given)
    files |= {path: _filled(path, **words) for path in ("resolver.h", "table_planner.h")}
    files[header] = _filled("program.h", **words)
    files["main.cc"] = _filled("program_main.cc", **words)
    if every.is_one:
        files["example.cc"] = _filled("example.cc", **words | _example_words(every.networks[0]))
    files["model_data.cc"] = "".join(f'#include "{part.folder}/model_data.cc"\n' for part in parts).encode()
    return files


def runner_source() -> bytes:
    """Generate the C++ source of a runner for ``--runner``, with all operators of the schema that TFLM has."""
    return _filled("runner.cc", version=__version__, methods=every_builtin())


def _words_of(one: OneModel) -> dict[str, object]:
    since = newest_of(one.model)
    return vars(one) | {
        "version": __version__,
        "origin": one.origin,
        "variables": one.variables,
        "condition": condition_of(one.profile.name),
        "larger": {name: larger_structures(one.model, abi) for name, abi in LAYOUTS.items()},
        "has_cmsis_nn": one.profile.name.startswith("cmsis-nn"),
        "esp_tflite_micro": _esp_tflite_micro(one.build),
        "esp_nn": esp_nn_to_pin(one.profile.target),
        "tflm_since": _said_of_tflm(since, one.table is not None),
        "chip": _chip(one.profile),
        "is_for_esp": is_for_esp(one.profile),
        "boards": _boards(one.profile),
        "two_arenas": False,
        "network": None,
        "root": "",
    }


def _said_of_tflm(since: date | None, has_table: bool) -> str:
    """Say which TFLM firmware may link; ``has_table``: its planner refuses one that asks for other bytes."""
    said = "Any TFLM has its operators" if since is None else f"Needs TFLM of {since} or later"
    return said + ("; planner.h refuses one whose kernels request other sizes." if has_table else ".")


def _resolver_words(needed: Registrations) -> dict[str, object]:
    own = {function: each for each, function in identifiers("Register", needed.custom).items()}
    return {"registrations": needed, "custom": own}


def _example_words(network: Network) -> dict[str, object]:
    others = network.inputs if network.rows is None else network.drawn[:-1]
    labeled = [part.model.model for part in network.parts]
    return {
        "network": network,
        "ports_in": [port_of(at, tensor) for at, tensor in enumerate(others)],
        "image": None if network.row is None else port_of(len(others), network.row),
        "ports_out": [port_of(at, tensor, labeled) for at, tensor in enumerate(network.outputs)],
    }


def _snippets(one: OneModel) -> Iterator[str]:
    """Yield the examples for build systems whose TFLM has the kernels of the plan and the operators of the model.

    A packaged TFLM has those of its own system alone; one that is compiled from source, those that name no package.
    """
    profile, package = one.profile, one.build.name.partition("-")[0]
    is_any = one.build.day is None
    is_arm = profile.is_portable or profile.name.startswith("cmsis-nn")
    is_own = is_arm and package not in _PACKAGES
    is_sketch = profile.is_portable and runs_on(one.model, BUILDS["arduino-2023"])
    if is_sketch and (is_any or package == "arduino"):
        yield "snippets/arduino.ino"
    if is_own:
        yield "snippets/stm32cube.md"
    if is_arm and (is_any or package == "zephyr"):
        yield from ("snippets/zephyr_CMakeLists.txt", "snippets/zephyr_prj.conf")
    if is_own and profile.target in (None, *_CORES_OF_PICO):
        yield "snippets/pico_CMakeLists.txt"
    if is_for_esp(profile) and (is_any or package == "esp"):
        yield from (f"snippets/esp_idf/{path}" for path in _ESP_IDF)
        if _boards(profile):
            yield "snippets/esp_idf/platformio.ini"


def _esp_tflite_micro(build: TflmBuild) -> str:
    """Return the version of esp-tflite-micro to pin: the one that was named, else that of the kernel tables."""
    version = build.name.removeprefix("esp-tflite-micro-")
    return "1.4.0" if version == build.name else version if version.count(".") > 1 else f"{version}.0"


def _chip(profile: KernelProfile) -> str:
    """The target without the version of its kernels; empty for any."""
    return (profile.target or "").partition("@")[0]


def _boards(profile: KernelProfile) -> dict[str, str]:
    chip = _chip(profile)
    return {each: board for each, board in _BOARDS.items() if chip in ("", each)}


def is_for_esp(profile: KernelProfile) -> bool:
    """Return whether the kernels of a plan may be those of ESP-IDF's TFLM."""
    return profile.is_portable or profile.name.startswith("esp-nn")


def _filled(template: str, **words: object) -> bytes:
    return _environment().get_template(f"{template}.jinja").render(words).encode()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {"runs": RUNS}
    environment.filters |= {
        "adler32": adler32,
        "kind": kind_of,
        "literal": literal,
        "zero": zero_of,
        "in_message": lambda text: literal(text)[1:-1].replace("%", "%%"),
    }
    return environment
