"""A model in, C++ files out: the model as an array, its arena, its resolver, and programs that run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from string import Template
from struct import pack
from zlib import adler32

from ..analysis.loops import cleared_inputs
from ..errors import EquivalenceError, UnsupportedModelError, UsageError
from ..io import offline_plan
from ..io.plan_label import PlanLabel
from ..ir.model import Model, Tensor
from ..ir.tensors import zero_of
from ..kernels.profile import KernelProfile
from ..kernels.profiles import PORTABLE
from ..kernels.since import BUILDS, has_operators, needed_since
from ..kernels.support import said_of, support_of
from ..kernels.targets import esp_nn_to_pin, profile_for, target_named
from ..memory.figures import operator_kinds
from ..memory.file import label_in_force, read_planned
from ..memory.file import profile_of as profile_of_label
from ..memory.problems import labeled_ties, tie_positions
from ..memory.reserve import LibraryNeed, has_table, reserve
from ..version import __version__
from . import Planner
from .cpp_text import EXTERNAL, check_namespace, identifiers, literal
from .example import example_words
from .plan_table import ARENA, MemoryRequest, PlannedBuffer, Table, table_for
from .resolver import every_builtin, registrations
from .self_test import Expected, words_of
from .sizes import ArenaSizes, arena_sizes, condition_of, larger_by_layout

_TEMPLATES = Path(__file__).parent / "templates"
_BYTES_A_LINE = 20
FILES = (
    "model_data.h",
    "model_data.cc",
    "arena.h",
    "resolver.h",
    "self_test.h",
    "main.cc",
    "example.cc",
)
PLANNER_FILE = "planner.h"
STEPS_FILE = "steps.h"
_CORES_OF_PICO = ("cortex-m0", "cortex-m33")


def generate(
    data: bytes,
    target: str | None = None,
    name: str = "model",
    source: str | None = None,
    force: bool = False,
    planner: Planner | None = None,
    request: MemoryRequest = MemoryRequest(),
    expected: Expected = Expected(),
) -> dict[str, bytes]:
    """Return the files by path, for the kernels that the model's plan was made for.

    ``target``: the core or chip, when the plan names none. ``name``: the C++ namespace of everything. ``source``: the
    name of the model's file, which the headers tell. ``force``: also for a model that TFLM cannot run. ``planner``:
    whether the program's plan is that of the file's metadata, or a table in ``planner.h``; None: a table where the
    target is known and its kernels were measured. ``request``: how a table uses the firmware's memories.
    ``expected``: the outputs that the test in ``main.cc`` compares. Raises UsageError for a wrong name or request,
    or for a table without a known library; EquivalenceError for a target whose kernels compute a plan of others
    wrongly; InfeasibleError for memories that are too small; UnsupportedModelError for a model that TFLM cannot run.
    """
    check_namespace(name)
    model = read_planned(data)
    label, planned = label_in_force(model), offline_plan.decode(model) or {}
    profile = _profile(label, target)
    if planner == "metadata" and (not request.is_empty or request.temporaries_apart):
        raise UsageError("--planner metadata has one memory and no tensors elsewhere: omit it or the other options")
    if name in request.sizes:
        raise UsageError(f"--memory {name}: the namespace has this name; choose another one")
    is_table = (
        planner == "table"
        or request.temporaries_apart
        or not request.is_empty
        or (planner is None and _table_is_safe(model, profile))
    )
    if is_table and profile.libraries:
        raise UsageError("a plan table is for one kernel library: name your chip or core with --target")
    ties = request.ties or labeled_ties(model)
    request = request if request.is_empty else replace(request, ties=ties)
    table = table_for(model, planned, profile, request) if is_table else None
    head = None if table is None else table.sizes[table.arena]
    sizes = arena_sizes(model, planned, profile, head, "tflm" if table is None else request.planner)
    words = _words(model, data, name) | entry_words() | _arena_words(sizes, label, profile, request.temporaries_apart)
    words["whom"] = target or (None if label is None else label.device) or profile.target or "any 32-bit target"
    words |= _WITHOUT_TABLE | ({} if table is None else _table_words(table, data, name))
    words |= _one_arena(name, words["in_arena"]) | (_apart_words(name) if request.temporaries_apart else {})
    cleared = cleared_inputs(model, planned)
    since = needed_since(operator_kinds(model))
    words["cmsis_nn"] = "" if profile.name.startswith("cmsis-nn") else "# "
    words["esp_nn"] = esp_nn_to_pin(profile.target)
    words["tflm_since"] = "Works with any TFLM." if since is None else f"Needs TFLM of {since} or later."
    words["reset"] = f"\n  // {_RESET}" if cleared else ""
    words["source"] = "" if source is None else f"{literal(source)}, "
    tied = [source for _, source in tie_positions(model, ties)]
    words |= words_of(model.main.inputs, model.main.outputs, expected, tied) | _steps_words(model, tied, name)
    words |= example_words(model, tied)
    support = support_of(model)
    if not support.runs and not force:
        raise UnsupportedModelError(f"{said_of(support)}; --force writes the files all the same")
    added = (*((PLANNER_FILE,) if is_table else ()), *((STEPS_FILE,) if tied else ()))
    files = (*FILES, *_snippets(model, profile), *added)
    two = words | _WITHOUT_TABLE | _two_arenas(name)
    words["interpreter"], two["interpreter"] = filled("interpreter", words), filled("interpreter", two)
    texts = {path: filled(path, words) for path in files}
    return {path: text.encode() for path, text in (texts | {"main_two_arenas.cc": filled("main.cc", two)}).items()}


def _snippets(model: Model, profile: KernelProfile) -> Iterator[str]:
    """Yield the examples for build systems whose TFLM has the kernels of the plan and the operators of the model."""
    is_arm = profile.is_portable or profile.name.startswith("cmsis-nn")
    if profile.is_portable and has_operators(operator_kinds(model), BUILDS["arduino-2023"]):
        yield "snippets/arduino.ino"
    if is_arm:
        yield from ("snippets/zephyr_CMakeLists.txt", "snippets/zephyr_prj.conf")
    if is_arm and profile.target in (None, *_CORES_OF_PICO):
        yield "snippets/pico_CMakeLists.txt"
    if profile.is_portable or profile.name.startswith("esp-nn"):
        yield from ("snippets/esp_idf_CMakeLists.txt", "snippets/esp_idf_component.yml")


def entry_words() -> dict[str, str]:
    """Return the start of a program on each platform: where its messages go, and ``main``."""
    return {name: filled(name, {}) for name in ("entry", "entry_headers")}


def runner_source() -> bytes:
    """Generate the C++ source of a runner for ``--runner``, with all operators of the schema that TFLM has."""
    methods = every_builtin()
    words = {
        "version": __version__,
        "tflm_names": filled("tflm_names", {}),
        "operators": str(len(methods)),
        "calls": "\n".join(f"  resolver.{method}();" for method in methods),
    }
    return filled("runner.cc", words).encode()


def profile_of(data: bytes, target: str | None) -> KernelProfile:
    """Return the kernels for which the files of a model are written. Raises EquivalenceError if its plan is
    for others."""
    return _profile(label_in_force(read_planned(data)), target)


def _steps_words(model: Model, tied: Sequence[int], name: str) -> dict[str, str]:
    if not tied:
        return {"steps_header": "", "steps_reset": ""}
    inputs = model.main.inputs
    frames = [at for at in range(len(inputs)) if at not in tied]
    step = _STEP.format(inputs[frames[0]].nbytes, frames[0]) if len(frames) == 1 else _STEP_OF_SEVERAL
    return {
        "steps_header": f'\n#include "{STEPS_FILE}"',
        "steps_reset": f"\n  {name}::Steps steps(interpreter);\n  steps.Reset();",
        "states": ", ".join(f"{{{at}, {inputs[at].nbytes}, {zero_of(inputs[at])}}}" for at in tied),
        "step": step,
    }


_STEP = """
  // Takes the next frame, kFrameBytes, which are copied; then interpreter.output() has its outputs.
  TfLiteStatus Step(const void* frame) {{
    std::memcpy(interpreter_.input({1})->data.data, frame, kFrameBytes);
    return interpreter_.Invoke();
  }}

  static constexpr size_t kFrameBytes = {0};
"""
_STEP_OF_SEVERAL = """
  // Write the other inputs before.
  TfLiteStatus Step() { return interpreter_.Invoke(); }
"""


def resolver_file(model: Model, words: Mapping[str, str]) -> bytes:
    """A resolver with the operators of a model; ``words``: of its namespace, and of the file that it comes from."""
    return filled("resolver.h", {**_resolver_words(model), **words}).encode()


def _profile(label: PlanLabel | None, target: str | None) -> KernelProfile:
    """Return the kernels that firmware for the target may link, of any library where the plan allows it."""
    target, made_for = None if target is None else target_named(target).name, profile_of_label(label)
    if label is not None and target in (None, label.target):
        every = tuple(replace(each, abi=made_for.abi) for each in PORTABLE.libraries)
        return replace(made_for, libraries=every) if made_for.libraries else made_for
    other = profile_for(target)
    if label is not None and label.overlaps and other.name != label.kernels:
        raise EquivalenceError(
            f"the plan in the file is for {label.kernels} kernels and computes wrongly with those of {target} "
            f"({other.name}): optimize the model again with --target {target}"
        )
    return other


def _table_is_safe(model: Model, profile: KernelProfile) -> bool:
    """Return whether all that the kernels ask for is known: TFLM refuses a table that is wrong by a byte."""
    return has_table(profile) and reserve(model, 0, profile).exact


def filled(path: str, words: Mapping[str, str]) -> str:
    """Return a template with its words in place."""
    text = (_TEMPLATES / f"{path}.in").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _words(model: Model, data: bytes, name: str) -> dict[str, str]:
    return _resolver_words(model) | {
        "name": name,
        "version": __version__,
        "digest": sha256(data).hexdigest(),
        "array": "\n".join(_array(data)),
        "bytes": str(len(data)),
        **{f"more_{layout}": str(size) for layout, size in larger_by_layout(model).items()},
    }


def self_test_file(
    network: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], expected: Expected, words: Mapping[str, str]
) -> bytes:
    """Return the inputs and expected outputs of a network's test; ``words``: of the file that it comes from."""
    return filled("self_test.h", {**words, "name": network, **words_of(inputs, outputs, expected)}).encode()


def resource_variables(model: Model) -> int:
    """Return how many there are: for ``MicroResourceVariables::Create``."""
    operators = (operator for graph in model.graphs for operator in graph.operators)
    return len({operator.option("sharedName") for operator in operators if operator.name == "VAR_HANDLE"})


def _resolver_words(model: Model) -> dict[str, str]:
    needed = registrations(model)
    own = identifiers("Register", needed.custom)
    calls = [f"  if (resolver.{method}() != kTfLiteOk) return false;" for method in needed.methods]
    calls += [
        f"  if (resolver.AddCustom({literal(each)}, {function}()) != kTfLiteOk) return false;"
        for each, function in own.items()
    ]
    declared = [
        f"// Custom operator {literal(each)}: your firmware defines it.\nconst TFLMRegistration* {function}();\n"
        for each, function in own.items()
    ]
    return {
        "operators": str(max(1, needed.count)),
        "tflm_names": filled("tflm_names", {}),
        "calls": "\n".join(calls),
        "declared": "\n".join(declared),
        "variables": str(resource_variables(model)),
    }


def _array(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), _BYTES_A_LINE):
        yield "    " + "".join(f"{byte}," for byte in data[start : start + _BYTES_A_LINE])


_WITHOUT_TABLE = dict.fromkeys(
    (
        *("planner_header", "planner_object", "planner_argument", "planner_check"),
        *("memories", "memory_macro", "in_arena", "temporary", "apart_object"),
    ),
    "",
)


def _table_words(table: Table, data: bytes, name: str) -> dict[str, str]:
    arrays = [ARENA if number == table.arena else each for number, each in enumerate(table.names)]
    arrays += identifiers(EXTERNAL, table.external).values()
    others = [number for number in range(len(arrays)) if number != table.arena]
    pointers = ", ".join(arrays)
    planner = f"\n  static uint8_t* const memories[] = {{{pointers}}};"
    return {
        "planner_header": f'\n#include "{PLANNER_FILE}"',
        "planner_object": f"{planner}\n  static tflite_memopt::TablePlanner planner({name}::kPlan, memories);",
        "planner_check": "\n  if (!planner.IsIntact()) return 2;",
        "planner_argument": ", &planner",
        "memories": "".join(_array_in(table, arrays, number, name) for number in others),
        "memory_macro": _macro(table.names[table.arena]) if len(table.names) > 1 else "",
        "in_arena": f" {_name_of_macro(table.names[table.arena])}" if len(table.names) > 1 else "",
        "pointers": pointers,
        "places": "\n".join(
            f"    {_place(row)},  // {number}: {literal(row.name)}" for number, row in enumerate(table.rows)
        ),
        "count": str(len(table.rows)),
        "memory_bytes": ", ".join(map(str, table.sizes)),
        "memory_names": ", ".join((*table.names, *map(literal, table.external))),
        "memory_count": str(len(table.sizes)),
        "external_count": str(len(table.external)),
        "arena": str(table.arena),
        "checksum": str(adler32(data)),
        "places_checksum": str(adler32(b"".join(map(_packed, table.rows)))),
    }


def _place(row: PlannedBuffer) -> str:
    return f"{{{row.bytes}, {row.first}, {row.last}, {row.offset} + {row.memory}}}"


def _packed(row: PlannedBuffer) -> bytes:
    """Return the row as it lies in flash: all of TFLM's targets are little-endian."""
    return pack("<ihhI", row.bytes, row.first, row.last, row.offset + row.memory)


def _one_arena(name: str, section: str) -> dict[str, str]:
    return {
        "arenas": "one arena",
        "arena_arrays": f"alignas(16) uint8_t arena[{name}::kArenaBytes]{section};",
        "arena_argument": "arena, sizeof(arena)",
        "arena_size": "sizeof(arena)",
    }


def _two_arenas(name: str) -> dict[str, str]:
    return {
        "arenas": "two arenas",
        "arena_arrays": "// Give the first one the fastest memory, by a section attribute of your linker script.\n"
        f"alignas(16) uint8_t head_arena[{name}::kHeadArenaBytes];\n"
        f"alignas(16) uint8_t tail_arena[{name}::kTailArenaBytes];",
        "arena_argument": "tail_arena, sizeof(tail_arena), head_arena, sizeof(head_arena)",
        "arena_size": "sizeof(head_arena) + sizeof(tail_arena)",
    }


def _apart_words(name: str) -> dict[str, str]:
    return {
        "temporary": f"alignas(16) uint8_t temporary[{name}::kTemporaryBytes];  // free again after AllocateTensors\n",
        "arena_argument": "&apart",
        "apart_object": "\n  static tflite_memopt::ApartAllocator apart(arena, sizeof(arena), temporary, "
        "sizeof(temporary));",
    }


def _array_in(table: Table, arrays: Sequence[str], number: int, name: str) -> str:
    """Return the array of a memory that is not the arena."""
    memory, size = arrays[number], f"{name}::kMemoryBytes[{number}]"
    if number >= len(table.names):
        of = literal(table.external[number - len(table.names)])
        fits = f'static_assert(sizeof({memory}) >= {size}, "too small for {memory}");'
        is_aligned = f'static_assert(__alignof__({memory}) >= 16, "{memory} must lie at a multiple of 16");'
        return (
            f"alignas(16) uint8_t {memory}[{size}];  // {of}: any buffer of yours, at a multiple of 16\n"
            f"{fits}\n#ifdef __GNUC__\n{is_aligned}\n#endif\n"
        )
    of = size if table.sizes[number] else "16"  # an array has at least one byte
    return f"{_macro(memory)}alignas(16) uint8_t {memory}[{of}] {_name_of_macro(memory)};\n"


def _macro(memory: str) -> str:
    """Return the macro by which the firmware places an array."""
    macro = _name_of_macro(memory)
    return f'#ifndef {macro}\n#define {macro}  // such as __attribute__((section(".{memory}")))\n#endif\n'


def _name_of_macro(memory: str) -> str:
    return f"TFLITE_MEMOPT_IN_{memory.upper()}"


_RESET = (
    "Do not call Reset() from here to Invoke(): this plan has variables of a loop on the input, and Reset clears them."
)
_UNDEFINED = "or CMSIS_NN or ESP_NN is not defined here as for TFLM; see arena.h"
_WRONG_PLAN = f"this plan computes wrongly with other kernels than it was made for, {_UNDEFINED}"
_WRONG_SIZES = f"these sizes are for other kernels, {_UNDEFINED}"
_SDKCONFIG = """
#if __has_include("sdkconfig.h")
#include "sdkconfig.h"  // ESP-IDF's: which chip it is, and which code of esp-nn
#endif
"""


def _arena_words(sizes: ArenaSizes, label: PlanLabel | None, profile: KernelProfile, is_apart: bool) -> dict[str, str]:
    overlaps, is_one = label is not None and label.overlaps, len(sizes.cases) == 1
    condition = condition_of(profile.name)
    code = "\n".join(_sizes_code(sizes, is_apart))
    return {
        "kernels": profile.description,
        "condition": condition,
        "overlaps": "Outputs overwrite inputs: correct with these kernels only."
        if overlaps
        else "Correct with any kernels.",
        "wrong": _WRONG_PLAN if overlaps else _WRONG_SIZES,
        "layout": profile.abi.name,
        "libraries": "\n".join(_library_line(name, size) for name, size in sizes.by_library.items()),
        "most": "" if is_one else "\n// Below is the largest of the sizes that the compiler's macros leave possible.",
        "exact": "exact" if sizes.exact else "an ESTIMATE: an operator is not in the tables, so measure it",
        "sizes": code,
        "sdkconfig": _SDKCONFIG if "CONFIG_" in condition + code else "",
    }


def _library_line(name: str, size: LibraryNeed) -> str:
    untried = "" if size.measured else "; these kernels were read from source and never run"
    return f"//   {size.required:,} bytes, {size.head:,} of them the head, with {name} kernels{untried}"


def _sizes_code(sizes: ArenaSizes, is_apart: bool) -> Iterator[str]:
    """Yield the constants, or a choice of them where macros tell libraries apart."""
    word = "#if"
    for condition, layouts in sizes.cases.items():
        if len(sizes.cases) > 1:
            yield f"{word} {condition}" if condition else "#else"
            word = "#elif"
        yield _constant("kArenaBytes", [each.one for each in layouts.values()], " + kLargerStructures")
        if is_apart:
            yield _constant("kTemporaryBytes", [each.temporary for each in layouts.values()], " + kLargerStructures")
        yield _constant("kHeadArenaBytes", [each.two.head for each in layouts.values()])
        yield _constant("kTailArenaBytes", [each.two.tail for each in layouts.values()], " + kLargerStructures")
    if len(sizes.cases) > 1:
        yield "#endif"


def _constant(name: str, sizes: list[int], more: str = "") -> str:
    return f"constexpr std::size_t {name} = ForThisCompiler({', '.join(map(str, sizes))}){more};"
