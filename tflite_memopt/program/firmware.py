"""Programs in, C++ files out: parts as arrays with their plans, one arena, one resolver, a class that runs each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from ..errors import UsageError
from ..firmware.cpp_text import check_namespace, literal
from ..firmware.generate import (
    PLANNER_FILE,
    entry_words,
    filled,
    generate,
    profile_of,
    resolver_file,
    resource_variables,
    self_test_file,
)
from ..firmware.self_test import Expected
from ..firmware.sizes import condition_of
from ..ir.model import DType, Model
from ..ir.tensors import affine_of
from ..kernels.profile import KernelProfile
from ..memory.file import read_planned
from ..version import __version__
from .files import Feed, Program
from .fronts import with_ties
from .handover import Handover, Move
from .space import arena_of

_OF_A_PART = ("model_data.h", "model_data.cc", "arena.h", PLANNER_FILE)
_USAGE_OF_ONE = """\
//   $name::Program program;
//   std::memcpy(program.input(), image, $name::Program::kInputBytes[0]);   // input() before each Invoke
//   if (program.Invoke() != kTfLiteOk) ...
//   const void* scores = program.output();   // until input() is called again"""
_USAGE_ON_ROWS = """\
//   $name::Program program;
$beside//   if (program.Feed(row) != kTfLiteOk) ...   // for each row that the camera gives, kRowBytes bytes
//   if (program.Done()) use(program.output());   // until the next row is fed"""
_USAGE_BESIDE_ROWS = "//   std::memcpy(program.input(), other, $name::Program::kInputBytes[0]);   // before row 0\n"
_STATIC = """\
#ifndef TF_LITE_STATIC_MEMORY
#error "define TF_LITE_STATIC_MEMORY here as for TFLM's sources, or optimize again with --tflm no-static-memory"
#endif
"""
_REFUSED = """\
MicroPrintf("write the inputs beside the image first, at input()");
        return kTfLiteError;"""
_USAGE_OF_SEVERAL = """\
//   static $name::Models networks;
//   std::memcpy(networks.$first.input(), samples, $first::Program::kInputBytes[0]);   // input() before each Invoke
//   if (networks.$first.Invoke() != kTfLiteOk) ...
//   const void* scores = networks.$first.output();   // until input() of any network is called"""


@dataclass(frozen=True)
class Network:
    """The models that one class runs. ``name``: of its C++ namespace and folder. ``files``: of the parts, for comments.

    ``kept``: it is one model whose interpreter stays alive. ``feed``: how its first part takes its input in rows.
    ``outputs``: how many outputs of the last part are the model's; None: all.
    """

    name: str
    files: tuple[str, ...]
    parts: tuple[bytes, ...]
    kept: bool = False
    feed: Feed | None = None
    outputs: int | None = None

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The parts as they are planned."""
        first, *others = map(read_planned, self.parts)
        return (first if self.feed is None else with_ties(first, self.feed), *others)


def generate_program(
    program: Program,
    parts: Sequence[bytes],
    target: str | None = None,
    name: str = "model",
    force: bool = False,
    expected: Expected = Expected(),
) -> dict[str, bytes]:
    """Return the files by path, for the target of the program or for ``target``.

    Tensors that cross a cut stay in the arena, so that every part has its plan as a table. ``expected``: the outputs
    that the test in ``main.cc`` compares. The rest, and what is raised, as for ``generate``.
    """
    check_namespace(name)
    names, outputs = tuple(part.file for part in program.parts), len(program.parts[-1].outputs)
    network = Network(name, names, tuple(parts), feed=program.feed, outputs=outputs)
    usage = _USAGE_OF_ONE
    if program.feed is not None:
        usage = _USAGE_ON_ROWS.replace("$beside", _USAGE_BESIDE_ROWS if program.feed.others else "")
    target = target or program.target
    if target is None:
        raise UsageError("a program's arena is for one kernel library: name your chip or core with --target")
    profile = one_library(network, target)
    words = {
        "what": f"A model that runs as {len(parts)} models, one after another, in one arena.",
        "usage": usage.replace("$name", name),
        "source": "" if program.source is None else f"{literal(program.source)}, ",
        "digest": program.source_sha256,
        "bytes": str(program.source_bytes),
        "runs_what": "the program",
        "header": "program.h",
        "object": f"{name}::Program program;",
        "runs": _run(network, "program"),
    }
    arena, moves = arena_of(network.models, profile)
    words |= {"tables": _table(network, moves, None), **_in_place([])}
    words |= {"classes": _class_of_one(network, arena), "places": "1"}
    words |= _words_for(name, target, profile, arena)
    files = _files([network], words, target, force, [expected])
    return {path.removeprefix(f"{name}/"): data for path, data in files.items()}


def generate_shared(
    networks: Sequence[Network],
    arenas: Sequence[int],
    sizes: tuple[int, int, int],
    target: str,
    name: str,
    expected: Sequence[Expected] = (),
) -> dict[str, bytes]:
    """Return the files by path of networks in one arena.

    ``arenas``: of each by itself. ``sizes``: bytes of the arena, of the largest network that does not stay alive, and
    of the structures of those that do. Raises as ``generate``.
    """
    check_namespace(name)
    profile = one_library(networks[0], target)
    data = b"".join(part for network in networks for part in network.parts)
    members = "\n".join(f"  ::{each.name}::Program {each.name}{{shared_}};" for each in networks)
    kept = [each.name for each in networks if each.kept]
    has_new = len(kept) < len(networks)
    tables = [
        _table(each, arena_of(each.models, profile)[1], kept.index(each.name) if each.kept else None)
        for each in networks
    ]
    if kept:
        tables.append("// Interpreters that stay alive, in order of creation.")
        if sizes[1]:
            fits = (
                f'static_assert(kArenaBytes >= {sizes[1]} + {sizes[2]}, "networks would overwrite these structures");'
            )
            tables.append(fits)
        tables.append(f"constexpr const Part* kKept[] = {{{', '.join(f'kParts_{each}' for each in kept)}}};")
    words = {
        "what": f"{len(networks)} networks in one arena, in any order, one at a time.",
        "usage": _USAGE_OF_SEVERAL.replace("$name", name).replace("$first", networks[0].name),
        "source": "".join(f"{literal(each.name)}, " for each in networks),
        "digest": sha256(data).hexdigest(),
        "bytes": str(len(data)),
        "runs_what": "each network",
        "header": "models.h",
        "object": f"{name}::Models networks;",
        "runs": "\n".join(_run(each, f"networks.{each.name}") for each in networks),
        "tables": "\n".join(tables),
        "places": str(len(kept) + has_new),
        "classes": "".join(_class(each, size, name, "") for each, size in zip(networks, arenas, strict=True))
        + f"namespace {name} {{\n\nclass Models {{\n  Shared shared_{{arena}};\n\n public:\n{members}\n}};\n\n"
        f"}}  // namespace {name}\n",
        **_in_place(kept),
        **_words_for(name, target, profile, sizes[0]),
    }
    files = _files(networks, words, target, False, expected or [Expected()] * len(networks))
    files["models.h"] = files.pop("program.h")
    return files


def one_library(network: Network, target: str | None) -> KernelProfile:
    """The kernels for which a network's arena is counted. Raises UsageError where there is more than one library."""
    profile = profile_of(network.parts[0], target)
    if profile.target is None:
        raise UsageError("an arena is for one kernel library: name your chip or core with --target")
    if profile.libraries:
        raise UsageError("an arena is for one kernel library: leave --kernels out")
    return profile


def _words_for(name: str, target: str, profile: KernelProfile, arena: int) -> dict[str, str]:
    return {
        "name": name,
        "version": __version__,
        "whom": target,
        "kernels": profile.name,
        "condition": condition_of(profile.name),
        "pointer": str(profile.abi.word // 8),
        "enumeration": "1" if profile.abi.short_enums else "4",
        "is_static": _STATIC if profile.abi.is_static else "",
        "sdkconfig": "",
        "arena_bytes": str(arena),
    }


def _files(
    networks: Sequence[Network],
    words: Mapping[str, str],
    target: str | None,
    force: bool,
    expected: Sequence[Expected],
) -> dict[str, bytes]:
    files, folders = dict[str, bytes](), []
    for network in networks:
        for number, part in enumerate(network.parts):
            made = generate(part, target, f"{network.name}_part{number}", network.files[number], force, "table")
            folders.append(f"{network.name}/part{number}" if len(networks) > 1 else f"part{number}")
            files |= {f"{network.name}/part{number}/{path}": made[path] for path in _OF_A_PART}
    headers = ("model_data.h", PLANNER_FILE)
    includes = "\n".join(f'#include "{folder}/{path}"' for folder in folders for path in headers)
    models = [model for network in networks for model in network.models]
    whole = replace(models[0], graphs=[graph for model in models for graph in model.graphs])
    most = max(map(resource_variables, models))
    variables = (
        ",\n        part.variables > 0 ? tflm::MicroResourceVariables::Create(allocator, part.variables) : nullptr"
    )
    tests = {f"self_test_{each.name}.h": (each, found) for each, found in zip(networks, expected, strict=True)}
    words = {
        **words,
        **entry_words(),
        "includes": includes,
        "resources": variables if most else "",
        "first": networks[0].name,
        "self_tests": "\n".join(f'#include "{path}"' for path in tests),
        "generators": "\n".join(f"  {each.name}::self_test::Generator {each.name}_generator;" for each in networks),
    }
    files |= {path: _self_test(*each, words) for path, each in tests.items()}
    files["resolver.h"] = resolver_file(whole, words)
    files["program.h"] = filled("program.h", words).encode()
    files["main.cc"] = filled("program_main.cc", words).encode()
    files["model_data.cc"] = "".join(f'#include "{folder}/model_data.cc"\n' for folder in folders).encode()
    return files


def _run(network: Network, member: str) -> str:
    """Return the statements of the main program that run a network once."""
    words = {"network": network.name, "member": member}
    if network.feed is None:
        return filled("program_run", words)
    beside = filled("program_run_beside", words) if network.feed.others else ""
    return filled("program_run_fed", {**words, "beside": beside})


def _self_test(network: Network, expected: Expected, words: Mapping[str, str]) -> bytes:
    """Return the test of a network: the inputs beside a fed image come first, as the main program writes them."""
    inputs, outputs = network.models[0].main.inputs, network.models[-1].main.outputs[: network.outputs]
    if network.feed is not None:
        rows = replace(inputs[0], shape=(network.feed.height * network.feed.row_bytes // inputs[0].dtype.arena_bytes,))
        inputs = (*(inputs[at] for at in network.feed.others), rows)
    return self_test_file(network.name, inputs, outputs, expected, words)


def _class(network: Network, arena: int, shared: str, more: str) -> str:
    """Return the class of a network, whose constructor takes the objects that it shares with others."""
    last = network.models[-1]
    outputs = last.main.outputs[: network.outputs]  # of a front, others are for the next call
    sides = (("Input", network.models[0].main.inputs), ("Output", outputs))
    sizes = "".join(
        f"  static constexpr size_t k{side}Bytes[] = {{{', '.join(str(tensor.nbytes) for tensor in tensors)}}};\n"
        for side, tensors in sides
    )
    base = (
        f'{shared}::Network(shared, "{network.name}", {shared}::kParts_{network.name}, {len(network.parts)}, {arena})'
    )
    if network.feed is not None:
        _, of_outputs = sizes.splitlines()
        sizes = f"{of_outputs}\n{_fed(network.feed, network.models[0], shared)}"
    constructor = f"  explicit Program({shared}::Shared& shared) : {base} {{}}\n"
    return (
        f"namespace {network.name} {{\n\nclass Program : public {shared}::Network {{\n public:\n{sizes}"
        f"{more or constructor}}};\n\n}}  // namespace {network.name}\n\n"
    )


def _fed(feed: Feed, front: Model, shared: str) -> str:
    """Generate the members of a class that takes rows of its image; int8 rows also as floats and as uint8."""
    rows = front.main.inputs[0]
    affine = affine_of(rows) if rows.dtype is DType.INT8 else None
    how = {} if affine is None else {"scale": f"{affine.scale!r}f", "zero": str(affine.zero_point)}
    states = ", ".join(f"{{{tie.input}, {tie.bytes}, {tie.fill}}}" for tie in feed.ties if tie.fill is not None)
    beside = {
        "bytes": ", ".join(str(front.main.inputs[at].nbytes) for at in feed.others),
        "inputs": ", ".join(map(str, feed.others)),
    }
    words = {name: str(value) for name, value in vars(feed).items()} | {
        "shared": shared,
        "turns": str(feed.calls),
        "states": states or "{1, 4, 0}",  # the counter: an array has at least one element
        "beside": filled("program_beside_rows.h", beside) if feed.others else "",
        "begin": _REFUSED if feed.others else "if (BeginImage() != kTfLiteOk) return kTfLiteError;",
        "quantizing": filled("program_quantizing.h", how) if how else "",
    }
    return filled("program_fed.h", words)


def _class_of_one(network: Network, arena: int) -> str:
    """Return the class of the only network, which has all that others would share."""
    made = f'Network(own_, "{network.name}", kParts_{network.name}, {len(network.parts)}, kArenaBytes), own_(memory)'
    more = (
        "\n  Program() : Program(arena) {}\n"
        "  // In memory of yours: at least kArenaBytes at a multiple of 16.\n"
        f"  explicit Program(uint8_t* memory) : {made} {{}}\n"
        "  ~Program() { Close(); }\n\n private:\n  Shared own_;\n"
    )
    return _class(network, arena, network.name, more)


def _table(network: Network, moves: Sequence[Handover], kept: int | None) -> str:
    """Return the parts of a network, which leaves tensors that cross cuts in the arena; ``kept``: its kept index."""
    every = [Handover((), ()), *moves]
    rows, moved = [], list[Move]()
    for number, (model, each) in enumerate(zip(network.models, every, strict=True)):
        space = f"{network.name}_part{number}"
        rows.append(
            f"    {{{space}::kModelData, {-1 if kept is None else kept}, {resource_variables(model)}, &{space}::kPlan, "
            f"{f'kMoves_{network.name} + {len(moved)}' if each.before or each.after else 'nullptr'}, "
            f"{len(each.before)}, {len(each.after)}}},"
        )
        moved += (*each.before, *each.after)
    carried = ", ".join(f"{{{each.source}, {each.target}, {each.nbytes}, {each.turned}}}" for each in moved)
    first = [f"constexpr Move kMoves_{network.name}[] = {{{carried}}};"] if moved else []
    return "\n".join([*first, f"constexpr Part kParts_{network.name}[] = {{", *rows, "};"])


def _in_place(kept: Sequence[str]) -> dict[str, str]:
    """Text of networks that leave tensors that cross a cut in the arena; ``kept``: those whose interpreters stay."""
    part = """\
struct Move {
  size_t from, to, bytes, turned;
};
struct Part {
  const unsigned char* model;
  int kept;  // its index among the interpreters that stay alive; -1: re-created in every run
  int variables;
  const tflite_memopt::Plan* plan;
  // Moves of tensors past the bytes that AllocateTensors writes: `before` the part is created, then `after`.
  const Move* moves;
  int before, after;
};
"""
    members = (
        "  uint8_t* const memories[1] = {arena};\n"
        "  alignas(tflite_memopt::TablePlanner) unsigned char planner_place[sizeof(tflite_memopt::TablePlanner)];\n"
    )
    plan = "new ({0}planner_place) tflite_memopt::TablePlanner(*{1}plan, {0}memories{2});\n"
    is_kept = (
        "    if (part.kept >= 0) {\n      interpreter_ = shared_.Kept(part.kept);\n      part_ = number;\n"
        "      return kTfLiteOk;\n    }\n"
    )
    create = (
        f"{is_kept if kept else ''}"
        "    Carry(part.moves, part.before);\n"
        f"    auto* const planner = {plan.format('shared_.', 'part.', ', (checked_ >> number & 1u) != 0')}"
        "    if (!planner->IsIntact()) return kTfLiteError;\n"
        "    checked_ |= 1u << number;\n"
        "    auto* const allocator = tflm::MicroAllocator::Create(shared_.arena, arena_bytes_, planner);\n"
        f"    interpreter_ = shared_.Make({len(kept)}, part, allocator);\n"
    )
    return {
        "part": part,
        "shared": members + (_kept_members(plan) if kept else ""),
        "begin": "shared_.MakeKept()" if kept else "kTfLiteOk",
        "create": create,
        "opened": "    Carry(part.moves + part.before, part.after);\n",
        "arena_argument": ", arena_bytes_(arena_bytes)",
        "members": _CARRY,
    }


_CARRY = """
  // Everything lies at multiples of 16. Blocks take a quarter of the time of newlib-nano's memmove, byte by byte.
  void Carry(const Move* moves, int count) {
    struct Block { alignas(16) uint8_t bytes[16]; };
    for (const Move* move = moves; move != moves + count; ++move) {
      uint8_t* const to = shared_.arena + move->to;
      const uint8_t* const from = shared_.arena + move->from;
      if (move->turned > 0) std::rotate(to, to + move->turned, to + move->bytes);
      const size_t end = move->turned > 0 ? 0 : (move->bytes + 15) / 16 * 16;
      for (size_t done = 0; done < end; done += 16) {
        const size_t at = to < from ? done : end - 16 - done;
        Block block;
        std::memcpy(&block, __builtin_assume_aligned(from + at, 16), 16);
        std::memcpy(__builtin_assume_aligned(to + at, 16), &block, 16);
      }
    }
  }
  const size_t arena_bytes_;
  unsigned checked_ = 0;  // parts whose model and table were compared
"""


def _kept_members(plan: str) -> str:
    return f"""
  // Their structures stack up from the end of the arena, by one allocator, and their tensors share its start.
  TfLiteStatus MakeKept() {{
    if (is_made) return kTfLiteOk;
    tflm::MicroAllocator* allocator = nullptr;
    for (const Part* part : kKept) {{
      auto* const planner = {plan.format("", "part->", "")}      if (!planner->IsIntact()) return kTfLiteError;
      if (allocator == nullptr) allocator = tflm::MicroAllocator::Create(arena, kArenaBytes, planner);
      if (Make(part->kept, *part, allocator)->AllocateTensors() != kTfLiteOk) {{
        MicroPrintf("%s: AllocateTensors fails", part->plan->name);
        return kTfLiteError;
      }}
    }}
    is_made = true;
    return kTfLiteOk;
  }}
  tflm::MicroInterpreter* Kept(int place) {{
    return std::launder(reinterpret_cast<tflm::MicroInterpreter*>(places[place]));
  }}
  bool is_made = false;
"""
