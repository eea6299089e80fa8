"""A model in, C++ files out: the model as an array, its arena, its resolver, and programs that run it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from ..errors import UnsupportedModelError, UsageError
from ..io import offline_plan, plan_label
from ..io.plan_label import PlanLabel
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..kernels.support import said_of, support_of
from ..kernels.targets import profile_for
from ..memory.reading import read_planned
from ..version import __version__
from .kernel_guard import condition_of
from .resolver import registrations
from .sizes import ArenaSizes, arena_sizes, larger_structures

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[A-Za-z]\w*")
_BYTES_A_LINE = 20
FILES = (
    "model_data.h",
    "model_data.cc",
    "arena.h",
    "resolver.h",
    "main.cc",
    "main_two_arenas.cc",
    "snippets/arduino.ino",
    "snippets/zephyr_CMakeLists.txt",
    "snippets/zephyr_prj.conf",
    "snippets/esp_idf_CMakeLists.txt",
    "snippets/esp_idf_component.yml",
)


def generate(data: bytes, target: str | None = None, name: str = "model", force: bool = False) -> dict[str, bytes]:
    """Files by path, for the kernels that the model's plan was made for.

    ``target``: the core or chip, when the plan names none. ``name``: the C++ namespace of everything.
    ``force``: also for a model that TFLM cannot run. Raises UsageError for a wrong name, or for a target whose kernels
    compute a plan of others wrongly, UnsupportedModelError for a model that TFLM cannot run.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' is no name for a C++ namespace: write a letter, then letters, digits and _")
    model = read_planned(data)
    label, planned = plan_label.decode(model), offline_plan.decode(model) or {}
    profile = _profile(label if planned else None, target)
    sizes = arena_sizes(model, planned, profile)
    words = _words(model, data, name) | _arena_words(sizes, label if planned else None, profile)
    support = support_of(model)
    if not support.runs and not force:
        raise UnsupportedModelError(f"{said_of(support)}; --force writes the files all the same")
    return {path: _fill(path, words).encode() for path in FILES}


def _profile(label: PlanLabel | None, target: str | None) -> KernelProfile:
    if label is None:
        return profile_for(target)
    if target is None or target == label.target:
        return profile_for(label.target, label.kernels)
    other = profile_for(target)
    if label.overlaps and other.name != label.kernels:
        raise UsageError(
            f"the plan in the file is for {label.kernels} kernels and computes wrongly with those of {target} "
            f"({other.name}): optimize the model again with --target {target}"
        )
    return other


def _fill(path: str, words: Mapping[str, str]) -> str:
    text = (_TEMPLATES / f"{path}.in").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _words(model: Model, data: bytes, name: str) -> dict[str, str]:
    found = registrations(model)
    calls = [f"  if (resolver.{method}() != kTfLiteOk) return false;" for method in found.methods]
    calls += [
        f'  if (resolver.AddCustom("{own}", Register_{_identifier(own)}()) != kTfLiteOk) return false;'
        for own in found.custom
    ]
    declared = [
        f"// Custom operator '{own}': your firmware defines it.\n"
        f"const TFLMRegistration* Register_{_identifier(own)}();\n"
        for own in found.custom
    ]
    variables = {
        operator.option("sharedName")
        for graph in model.graphs
        for operator in graph.operators
        if operator.name == "VAR_HANDLE"
    }
    return {
        "name": name,
        "guard": name.upper(),
        "version": __version__,
        "array": "\n".join(_array(data)),
        "bytes": str(len(data)),
        "operators": str(max(1, found.count)),
        "calls": "\n".join(calls),
        "declared": "\n".join(declared),
        "variables": str(len(variables)),
        **{f"more_{layout}": str(size) for layout, size in larger_structures(model).items()},
    }


def _array(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), _BYTES_A_LINE):
        yield "    " + "".join(f"{byte}," for byte in data[start : start + _BYTES_A_LINE])


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text)


def _arena_words(sizes: ArenaSizes, label: PlanLabel | None, profile: KernelProfile) -> dict[str, str]:
    overlaps = label is not None and label.overlaps
    figures: dict[str, int] = {}
    for layout, each in sizes.layouts.items():
        figures |= {f"one_{layout}": each.one, f"head_{layout}": each.two.head, f"tail_{layout}": each.two.tail}
    return {
        "whom": profile.target or "any 32-bit target",
        "kernels": profile.description,
        "condition": condition_of(profile.name) if overlaps else "1",
        "overlaps": "Outputs lie on inputs: right with these kernels only." if overlaps else "Right with any kernels.",
        "head": f"{sizes.head:,}",
        "libraries": "\n".join(f"//   {size:,} bytes with {name} kernels" for name, size in sizes.by_library.items()),
        "exact": "exact" if sizes.exact else "an ESTIMATE: an operator is not in the tables, so measure it",
        **{key: str(value) for key, value in figures.items()},
    }
