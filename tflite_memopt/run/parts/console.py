"""A program for people: the answer, its price, the files to flash, the parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...firmware.describe import profile_of
from ...kernels.code_size import flash_of
from ...kernels.profiles import PROFILES
from ...memory.figures import operator_kinds
from ...memory.file import read_planned
from ...memory.reserve import LibraryNeed
from ...model.io.reader import read_model
from ...report.answer import Answer, answer_of
from ...report.document import Document, Lines, TextTable
from ...report.summary import flash_in_words, joined, mended_first, sentences_of, sizes_of
from ...report.warnings import of_former_plan
from ...report.words import counted, file_name, in_short, percent
from .files import read_program
from .fronts import with_ties
from .run import ProgramResult
from .space import arena_of


def program_document(result: ProgramResult, folder: Path) -> Document:
    """Return the document of ``optimize --parts``: the same lines as for one file, then the parts."""
    title = f"{file_name(result.whole.report.model)} in parts"
    return Document(title, headline_of(result), lists=tuple(_lines(result, folder)), tables=(_table(result),))


def headline_of(result: ProgramResult) -> str:
    """Return one line: RAM before and after, the price in run time, the proof, and whether it fits."""
    program, report = result.program, result.whole.report
    is_head = report.objective == "head"
    what, before, after = "RAM", report.before.required_for_target, program.arena
    if is_head:
        what, before, after = "head of the arena", report.before.arena_bytes, program.head
    count = "as one model with codegen's planner" if result.why_whole else f"in {counted(len(program.parts), 'part')}"
    price = in_short({"": max(program.slowdown.values(), default=0.0)})
    sizes = f"{mended_first(report)}{what} {sizes_of(report, before, after)}"
    first = f"{sizes} {count} at {price}, {program.equality}"
    return joined(first, *sentences_of(answer_of_program(result), report.device, report.target))


def answer_of_program(result: ProgramResult) -> Answer:
    """Return the size to reserve for a program, which ``codegen`` writes with its planner, and whether it fits."""
    report = result.whole.report
    needs = _needs(result.program.arena_bytes, result.program.head)
    return answer_of(needs, objective=report.objective, budget=report.budget, device=report.device)


def answer_of_folder(folder: Path, target: str | None, budget: int | None) -> Answer:
    """Return the same of a folder that ``optimize --parts`` wrote, for its own target or another one.

    Raises EquivalenceError for a target whose kernels compute its plans wrongly.
    """
    program, parts = read_program(folder)
    arenas = program.arena_bytes
    if target is not None:
        profile, models = profile_of(parts[0], target), [read_planned(part) for part in parts]
        models[0] = models[0] if program.feed is None else with_ties(models[0], program.feed)
        arenas = {each.name: arena_of(models, each)[0] for each in profile.libraries or (profile,)}
    return answer_of(_needs(arenas, program.head), budget=budget)


def _needs(arenas: Mapping[str, int], head: int) -> dict[str, LibraryNeed]:
    return {
        library: LibraryNeed(head, arena, PROFILES[library].measured_at is not None)
        for library, arena in arenas.items()
    }


def _lines(result: ProgramResult, folder: Path) -> Iterator[Lines]:
    program, report = result.program, result.whole.report
    if result.why_whole:
        yield Lines("limit", "", [f"one part was written: {result.why_whole}"])
    kinds = sorted(frozenset().union(*(operator_kinds(read_model(data)) for data in result.models)))
    new = [kind for kind in kinds if kind not in {step.operator for step in report.arena["before"].steps}]
    flash = sum(map(len, result.models)) - program.source_bytes
    kernels = flash_in_words(flash_of(new))
    price = f"flash {flash:+,} bytes of file{f', {kernels}' if kernels else ''}"
    since = "" if program.tflm_since is None else f"; TFLM of {program.tflm_since} or later"
    slowdown = percent(max(program.slowdown.values(), default=0.0))
    yield Lines("price", "", [f"run time {slowdown}, re-creating the interpreters included; {price}{since}"])
    if program.feed is not None:
        feed = program.feed
        yield Lines(
            "feed", "", [f"{feed.rows} rows a call, {feed.calls} calls for the {feed.height} rows of the image"]
        )
    own = f"{report.after.required_for_target:,} bytes with TFLM's own planner"
    whole = own if result.why_whole else f"{program.whole_bytes:,} bytes"
    yield Lines("whole", "", [f"as one model it needs {whole}"])
    if report.objective == "head":
        arena = f"with TFLM's own structures and the tensors that cross cuts it needs {program.arena:,} bytes"
        yield Lines("arena", "", [arena])
    yield Lines("warning", "", [*of_former_plan(report.planned_for)])
    profile = PROFILES[program.kernels]
    if not profile.is_portable:
        yield Lines("warning", "", [f"correct only with firmware that links these kernels: {profile.description}"])
    register = ", ".join(f"{kind} (new)" if kind in new else kind for kind in kinds)
    size = f"reserve {program.arena:,} bytes with the class that codegen writes"
    codegen = f"tflite-memopt codegen {folder} -o firmware writes the class that runs them in one arena"
    yield Lines("next", "", [f"flash the files of {folder}: {size}, register {register}", codegen])


def _table(result: ProgramResult) -> TextTable:
    rows = []
    for part in result.program.parts:
        need = part.required_bytes.get("table", part.required_bytes.get("target", part.required_bytes["32"]))
        takes, gives = (sum(tensor.bytes for tensor in side) for side in (part.inputs, part.outputs))
        rows.append((part.file, str(part.operators), f"{need:,}", f"{takes:,}", f"{gives:,}"))
    return TextTable("parts", ("file", ">operators", ">needs by itself, bytes", ">takes", ">gives"), rows)
