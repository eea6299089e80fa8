"""Write docs/reference.md from the tables and docstrings of the package: python -m scripts.makers.reference"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import click

from tests.test_imports import LEVELS, PACKAGE
from tflite_memopt.cli import COMMANDS, load
from tflite_memopt.cli.exit_codes import EXIT_CODES
from tflite_memopt.cli.flags import flag_name
from tflite_memopt.cli.networks import NETWORKS
from tflite_memopt.cli.pairs import PAIRS
from tflite_memopt.kernels import mend
from tflite_memopt.kernels.chips import names_of_target
from tflite_memopt.kernels.since import ARRIVALS, BUILDS, FIRST_DAY
from tflite_memopt.kernels.targets import TARGETS
from tflite_memopt.model.ir import change, copying
from tflite_memopt.operators.kind import OperatorKind, not_by_rows
from tflite_memopt.operators.table import OPERATORS
from tflite_memopt.options import DECLARED
from tflite_memopt.search.cascade import slide
from tflite_memopt.search.rewrite import (
    channels,
    dead_channels,
    folding,
    in_one_row,
    islands,
    loadable,
    one_shape,
    one_split,
    one_step,
    partial,
    pixels,
    planes,
    sequences_along_h,
    shapes,
    slices,
    static_lists,
    steps_in_a_loop,
    transposes,
    turned_images,
)
from tflite_memopt.search.rewrite.engine import Rule

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
_RULES = (
    partial,
    channels,
    shapes,
    slices,
    one_shape,
    one_split,
    transposes,
    folding,
    islands,
    pixels,
    planes,
    sequences_along_h,
    loadable,
)
"""Modules of rules, each with its description below it."""
_OTHERS: dict[str, object] = {
    "channel_tiles": channels.channel_tiles,
    change.DEAD_CHANNELS: dead_channels,
    steps_in_a_loop.NAME: steps_in_a_loop,
    sequences_along_h.NAME: sequences_along_h,
    turned_images.NAME: turned_images,
    "in_one_row": in_one_row,
    mend.PADDING: mend,
    mend.CLAMP: mend,
    change.STATIC_LISTS: static_lists,
    change.ONE_STEP: one_step,
    change.ONE_HOP: slide,
    change.DEAD_TENSORS: copying.drop_dead_tensors,
    change.SHARED_CONSTANTS: copying.share_constants,
}
"""Rewrites that are no rules, with what describes them."""
_SAID = ("BOUNDARY", "CHANNELS_LAST", "UNCALLED", "WEIGHTS_INLINE", "FOREIGN_PLAN", "INFERRED_SHAPES")
"""Names in ``ir/change.py`` that are described below them."""


def main() -> None:
    """Replace the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the text of docs/reference.md."""
    sections = (
        ("Exit codes", "They are the same in every command.", ("code", "meaning"), _exit_codes()),
        ("Options", _OPTIONS, ("option", "commands", "field of `Options`", "meaning"), _options()),
        ("Networks", _NETWORKS, ("my network is", "option"), ((kind, f"`{option}`") for kind, option in NETWORKS)),
        ("Pairs of options", _PAIRS, ("option", "does not work with", "reason"), _pairs()),
        ("Targets", _TARGETS, ("target", "cores and chips", "kernels", "measured", "read from source"), _targets()),
        (
            "Builds of TFLM",
            _BUILDS,
            ("`--tflm`", "day of its source", "static memory", "enums", "kernels", "read in"),
            _builds(),
        ),
        ("Since when TFLM has an operator", _ARRIVALS, ("operator", "since", "commit", "had before by"), _arrivals()),
        ("Rewrites", _REWRITES, ("rewrite", "effect"), _rewrites()),
        ("Operators in stripes", _STRIPES, ("operators", "rows of the input", "sequences"), _stripes()),
        ("Parts of the package", _PARTS, ("part", "content"), _parts()),
    )
    parts = ["# Reference tables\n\nMade from the code by `python -m scripts.makers.reference`."]
    for title, said, columns, rows in sections:
        table = ["| " + " | ".join(each) + " |" for each in (columns, ["---"] * len(columns), *rows)]
        parts.append("\n".join((f"## {title}\n\n{said}\n", *table)))
    return "\n\n".join(parts) + "\n"


_OPTIONS = (
    "As `tflite-memopt COMMAND --help` shows them; it also has the defaults. In Python sizes are bytes as `int`, a\n"
    "limit on run time is a fraction (0.1 for 10 %), and repeated options are tuples."
)
_NETWORKS = (
    "Pages: [sliding windows](streaming.md), [recurrent networks](recurrent.md), "
    "[fed input](parts.md#rows-as-the-camera-delivers-them),\n[channels last](exactness.md#channels-last), "
    "[several networks](parts.md#several-networks), [two memories](device.md#the-plan-as-a-table)."
)
_PAIRS = "Of `optimize`. All other pairs work together; tests/test_pairs.py tries them."
_TARGETS = (
    "What `--target` accepts; `tflite-memopt targets` also lists boards and chips with their RAM and flash. The last\n"
    "two columns say where the sizes and the permitted overlaps of a target come from."
)
_BUILDS = (
    "What `--tflm` accepts, besides a day such as `2025-11-10`, and both, as in `zephyr-4.2@2025-03-01`. *Static\n"
    "memory* is TF_LITE_STATIC_MEMORY."
)
_ARRIVALS = (
    f"Operators, and types of them, that came to TFLM after {FIRST_DAY}, the day of the oldest build above; others\n"
    "have been there since then. Read in the history of tflite-micro up to 90b983c2b3f1."
)
_REWRITES = (
    "The names that `-v` and reports show. All rewrites are exact, except `partial_convolution`, which adds floats in\n"
    "another order and rounds integers once more, and `steps_in_a_loop` if the steps have scales of their own."
)
_STRIPES = (
    "For operators with batch 1. `r` is a row of the output; weights are read whole; *hybrid* means float inputs with\n"
    "integer weights. The last column says how sequences are cut ([words](architecture.md#glossary))."
)


_PARTS = "From the highest level to the lowest; [architecture](architecture.md#the-folders) has the rules."


def _exit_codes() -> Iterator[tuple[str, str]]:
    for code, meaning in EXIT_CODES.items():
        yield str(code), meaning


def _pairs() -> Iterator[tuple[str, str, str]]:
    for first, second, why in PAIRS:
        yield f"`{first}`", f"`{second}`", why


_FIELDS = {"--changes": "rewrite, cascade, every_byte", "--io": "io, channels_last", "--target": "target"}


def _field_of(option: click.Option) -> str:
    """Return the field of Options that a flag sets; empty where it is of the command line alone."""
    names = {flag_name(field): field for field, declared in DECLARED.items() if declared.commands} | _FIELDS
    return next((f"`{names[flag]}`" for flag in option.opts if flag in names), "")


def _options() -> Iterator[tuple[str, str, str, str]]:
    by_text: dict[tuple[str, str, str], list[str]] = {}
    for command in load(COMMANDS):
        for option in command.params:
            if isinstance(option, click.Option):
                value = f" {option.metavar}" if option.metavar else ""
                names = ", ".join(f"`{name}{value}`" for name in (*option.opts, *option.secondary_opts))
                by_text.setdefault((names, _field_of(option), _first(option.help)), []).append(str(command.name))
    for (names, field, text), commands in by_text.items():
        which = "all" if len(commands) == len(COMMANDS) else ", ".join(commands)
        yield names.replace("|", r"\|"), which, field, text


def _targets() -> Iterator[tuple[str, ...]]:
    for each in TARGETS.values():
        chips = "; ".join(filter(None, (each.description, ", ".join(names_of_target(each.name)))))
        yield (
            f"`{each.name}`",
            chips,
            f"`{each.kernels}`",
            "; ".join(each.measured) or "**nothing**",
            "; ".join(each.read),
        )


def _builds() -> Iterator[tuple[str, ...]]:
    for each in BUILDS.values():
        day = "" if each.day is None else each.day.isoformat()
        enums = "of the target" if each.short_enums is None else "4 bytes"
        static, libraries = "yes" if each.is_static else "no", ", ".join(each.libraries) or "any"
        yield f"`{each.name}`", day, static, enums, libraries, each.source


def _arrivals() -> Iterator[tuple[str, ...]]:
    for each in ARRIVALS:
        yield str(each), each.day.isoformat(), each.commit, ", ".join(each.had_by)


def _rewrites() -> Iterator[tuple[str, str]]:
    for module in _RULES:
        for name, text in described(module):
            value = getattr(module, name)
            rules = [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Rule)]
            names = dict.fromkeys(f"`{rule.name}`" for rule in rules)
            if names:
                yield ", ".join(names), text
    for name, owner in _OTHERS.items():
        yield f"`{name}`", _first(inspect.getdoc(owner))
    texts = dict(described(change))
    for name in _SAID:
        yield f"`{getattr(change, name)}`", texts[name]


def _stripes() -> Iterator[tuple[str, str, str]]:
    by_kind: dict[tuple[str, str], list[str]] = {}
    for name, kind in OPERATORS.items():
        if kind.rows is not not_by_rows:
            by_kind.setdefault((_first(inspect.getdoc(kind.rows)), _of_sequences(kind)), []).append(name)
    for (rows, sequences), names in by_kind.items():
        yield ", ".join(names), rows, sequences


def _parts() -> Iterator[tuple[str, str]]:
    for parts in reversed(LEVELS):
        for part in parts:
            folder, module = PACKAGE / part / "__init__.py", PACKAGE / f"{part}.py"
            path, name = (folder, f"{part}/") if folder.exists() else (module, f"{part}.py")
            yield f"`{name}`", _first(ast.get_docstring(ast.parse(path.read_text())))


def _of_sequences(kind: OperatorKind) -> str:
    return ", ".join(word for word, how in (("along H", kind.along_h), ("phases", kind.by_phase)) if how is not None)


def described(module: ModuleType) -> Iterable[tuple[str, str]]:
    """Yield the names of a module's variables that have a string below them, and its first paragraph."""
    body = ast.parse(inspect.getsource(module)).body
    for variable, below in pairwise(body):
        match variable, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, _first(inspect.cleandoc(text))


def _first(text: str | None) -> str:
    """Return the first paragraph on one line, with the code quotes of Markdown."""
    assert text
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`").replace("|", r"\|")


if __name__ == "__main__":
    main()
