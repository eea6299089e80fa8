"""A program in, C++ files out: its parts as arrays with their plans, one arena, one resolver, a class that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import UsageError
from ..firmware import Planner
from ..firmware.cpp_text import check_namespace, literal
from ..firmware.generate import PLANNER_FILE, filled, generate, profile_of, resolver_file
from ..firmware.sizes import condition_of
from ..graph.alignment import aligned
from ..io import offline_plan
from ..ir.model import Model
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..memory.in_force import head_in_force
from ..memory.layout import memory_layout
from ..memory.reading import read_planned
from ..version import __version__
from .files import Program
from .handover import Handover, Move
from .space import arena_of

_OF_A_PART = ("model_data.h", "model_data.cc")
_WITH_TABLE = (*_OF_A_PART, "arena.h", PLANNER_FILE)


def generate_program(
    program: Program,
    parts: Sequence[bytes],
    target: str | None = None,
    name: str = "model",
    planner: Planner | None = None,
    force: bool = False,
) -> dict[str, bytes]:
    """Files by path, for the target of the program or for ``target``.

    ``planner``: "table", the default, leaves what crosses a cut in the arena; "metadata" copies it through a buffer
    beside the arena, for TFLM's own planner. The rest, and what is raised, as for ``generate``.
    """
    check_namespace(name)
    target = target or program.target
    if target is None:
        raise UsageError("a program's arena is for one kernel library: name your chip or core with --target")
    has_table = planner != "metadata"
    models = [read_planned(part) for part in parts]
    files: dict[str, bytes] = {}
    for number, part in enumerate(parts):
        made = generate(part, target, f"{name}_part{number}", program.parts[number].file, force, planner or "table")
        kept = _WITH_TABLE if has_table else _OF_A_PART
        files |= {f"part{number}/{path}": made[path] for path in kept}
    profile = profile_of(parts[0], target)
    if profile.libraries:
        raise UsageError("a program's arena is for one kernel library: leave --kernels out")
    abi = profile.abi
    words = {
        "name": name,
        "version": __version__,
        "whom": target,
        "source": "" if program.source is None else f"{literal(program.source)}, ",
        "digest": program.source_sha256,
        "bytes": str(program.source_bytes),
        "parts": str(len(parts)),
        "kernels": profile.name,
        "condition": condition_of(profile.name),
        "pointer": str(abi.word // 8),
        "enumeration": "1" if abi.short_enums else "4",
        "sdkconfig": "",
        "input_bytes": ", ".join(str(tensor.nbytes) for tensor in models[0].main.inputs),
        "output_bytes": ", ".join(str(tensor.nbytes) for tensor in models[-1].main.outputs),
    }
    if has_table:
        words |= _in_place(models, *arena_of(models, profile), name)
    else:
        words |= _copied(models, profile, name)
    whole = replace(models[0], graphs=[graph for model in models for graph in model.graphs])
    files["resolver.h"] = resolver_file(whole, words)
    files["program.h"] = filled("program.h", words).encode()
    files["main.cc"] = filled("program_main.cc", words).encode()
    files["model_data.cc"] = "".join(f'#include "part{at}/model_data.cc"\n' for at in range(len(parts))).encode()
    return files


def _in_place(models: Sequence[Model], arena: int, moves: Sequence[Handover], name: str) -> dict[str, str]:
    """The words of a class that leaves what crosses a cut in the arena."""
    every = [Handover((), ()), *moves]
    tables = [
        _models(len(models), name),
        f"  static constexpr const tflite_memopt::Plan* kPlans[] = {{{_each(len(models), name, '&', 'kPlan')}}};",
        "  struct Move {\n    size_t from, to, bytes, turned;\n    int part;\n  };",
        "  // What crosses a cut, past what AllocateTensors writes: in order, before a part is made and after.",
        f"  static constexpr Move kBefore[] = {{{', '.join(_moves(each.before for each in every))}}};",
        f"  static constexpr Move kAfter[] = {{{', '.join(_moves(each.after for each in every))}}};",
        "  template <size_t kCount>\n  void Carry(const Move (&moves)[kCount], int part) {",
        "    for (const Move& move : moves) {",
        "      if (move.part != part) continue;",
        "      uint8_t* const to = arena_ + move.to;",
        "      if (move.turned > 0) std::rotate(to, to + move.turned, to + move.bytes);",
        "      else std::memmove(to, arena_ + move.from, move.bytes);",
        "    }\n  }\n",
    ]
    create = (
        "    Carry(kBefore, part);\n"
        "    auto* const planner =\n"
        "        new (planner_place_) tflite_memopt::TablePlanner(*kPlans[part], memories_, (checked_ >> part & 1u) != 0);\n"
        "    if (!planner->IsIntact()) return kTfLiteError;\n"
        "    checked_ |= 1u << part;\n"
        "    auto* const allocator = tflite::MicroAllocator::Create(arena_, kArenaBytes, planner);\n"
    )
    members = (
        "  uint8_t* const memories_[1] = {arena_};\n"
        "  unsigned checked_ = 0;  // parts whose model and table were compared\n"
        "  alignas(tflite_memopt::TablePlanner) unsigned char planner_place_[sizeof(tflite_memopt::TablePlanner)];\n"
    )
    return {
        "includes": "\n".join(
            f'#include "part{at}/{file}"' for at in range(len(models)) for file in (_OF_A_PART[0], PLANNER_FILE)
        ),
        "arena_bytes": str(arena),
        "buffer": "",
        "tables": "\n".join(tables),
        "create": create,
        "opened": "    Carry(kAfter, part);\n",
        "members": members,
        "save": "",
        "restore": "",
    }


def _copied(models: Sequence[Model], profile: KernelProfile, name: str) -> dict[str, str]:
    """The words of a class that copies what crosses a cut through a buffer."""
    crossing = [sum(aligned(tensor.nbytes) for tensor in model.main.inputs) for model in models[1:]]
    save, restore = (
        (
            "      size_t at = 0;\n"
            "      for (size_t i = 0; i < interpreter_->outputs_size(); ++i) {\n"
            "        const TfLiteTensor* const from = interpreter_->output(i);\n"
            "        std::memcpy(crossing + at, from->data.data, from->bytes);\n"
            "        at += (from->bytes + 15) / 16 * 16;\n"
            "      }\n"
        ),
        (
            "      at = 0;\n"
            "      for (size_t i = 0; i < interpreter_->inputs_size(); ++i) {\n"
            "        TfLiteTensor* const to = interpreter_->input(i);\n"
            "        std::memcpy(to->data.data, crossing + at, to->bytes);\n"
            "        at += (to->bytes + 15) / 16 * 16;\n"
            "      }\n"
        ),
    )
    arena = max(_stock_arena(model, profile) for model in models)
    return {
        "includes": "\n".join(f'#include "part{at}/{_OF_A_PART[0]}"' for at in range(len(models))),
        "arena_bytes": str(arena),
        "buffer": "// What crosses a cut, while TFLM's planner overwrites the arena.\n"
        f"alignas(16) inline uint8_t crossing[{max((16, *crossing))}];\n",
        "tables": _models(len(models), name),
        "create": "    auto* const allocator = tflite::MicroAllocator::Create(arena_, kArenaBytes);\n",
        "opened": "",
        "members": "",
        "save": save,
        "restore": restore,
    }


def _stock_arena(model: Model, profile: KernelProfile) -> int:
    """The arena of a part with TFLM's own planner."""
    head = head_in_force(memory_layout(model, profile), offline_plan.decode(model) or {})
    return arena_use(model, head, profile.requests, profile.abi).required


def _models(count: int, name: str) -> str:
    return (
        f"  static constexpr int kParts = {count};\n"
        f"  static constexpr const unsigned char* kModels[] = {{{_each(count, name, '', 'kModelData')}}};"
    )


def _each(count: int, name: str, before: str, what: str) -> str:
    return ", ".join(f"{before}{name}_part{at}::{what}" for at in range(count))


def _moves(groups: Iterable[Sequence[Move]]) -> list[str]:
    found = [
        f"{{{move.source}, {move.target}, {move.nbytes}, {move.turned}, {part}}}"
        for part, moves in enumerate(groups)
        for move in moves
    ]
    return found or ["{0, 0, 0, 0, -1}"]  # an array has at least one element
