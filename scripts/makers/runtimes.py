"""docs/runtimes.md, made of docs/runtimes.csv, which ``scripts/fuzz runtimes --write`` writes.

python -m scripts.makers.runtimes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scripts.benchmarks.figures import ROOT
from scripts.benchmarks.markdown_table import row, table
from scripts.fuzzing.cell import UNLIKE, Key
from scripts.fuzzing.cells import LEFT_OUT
from scripts.fuzzing.oracle import ONE_SCALE
from scripts.fuzzing.runtimes import FAILS, Answers, read, runs, steps_of

PAGE = ROOT / "docs" / "runtimes.md"
_SHOWN = 3
"""Examples of a kind and its types."""
_MADE_WITH, _CELLS = read()
_TAKEN = {key: answers for key, answers in _CELLS.items() if runs(answers.litert)}
Chosen = Callable[[Key, Answers], bool]


def _is_off(key: Key, answer: str) -> bool:
    """More than a right kernel is; of a kind with 16 bits as those are judged."""
    return runs(answer) and steps_of(answer) > (16 if "int16" in key.types else 2)


def _is_copy(key: Key, answers: Answers) -> bool:
    """Whether LiteRT copies integers between two scales."""
    return key.quantization in UNLIKE and key.kind in ONE_SCALE and _is_off(key, answers.litert)


def copies() -> str:
    """The kinds that copy."""
    return ", ".join(dict.fromkeys(key.kind for key, answers in _TAKEN.items() if _is_copy(key, answers)))


def _told(chosen: Chosen) -> Iterator[str]:
    """One row a kind and its types, with the first cells; without copies between two scales."""
    found: dict[tuple[str, str], list[Key]] = {}
    for key, answers in _TAKEN.items():
        if chosen(key, answers) and not _is_copy(key, answers):
            found.setdefault((key.kind, key.types), []).append(key)
    yield from table("kind | types | cells | such as | LiteRT | reference | TFLM")
    for (kind, types), keys in found.items():
        such = "; ".join(
            ", ".join(filter(None, (each.quantization, each.options))) or "plain" for each in keys[:_SHOWN]
        )
        yield row(kind, types, len(keys), such, *(_span([_TAKEN[key][at] for key in keys]) for at in range(3)))


def _span(answers: list[str]) -> str:
    """Different answers in words; of numbers the least and the most."""
    steps = [steps_of(each) for each in answers if runs(each)]
    words = sorted({each for each in answers if not runs(each)})
    least, most = (min(steps), max(steps)) if steps else (0, 0)
    said = (
        [] if not steps else ["equal"] if not most else [f"{most:,}"] if least == most else [f"{least:,} to {most:,}"]
    )
    return ", ".join((*said, *words))


def tflm_alone() -> Iterator[str]:
    """TFLM is off and LiteRT is not."""
    return _told(lambda key, answers: _is_off(key, answers.tflm) and not _is_off(key, answers.litert))


def both() -> Iterator[str]:
    """Both are off."""
    return _told(lambda key, answers: _is_off(key, answers.tflm) and _is_off(key, answers.litert))


def reference_alone() -> Iterator[str]:
    """Only the reference kernels are."""
    return _told(lambda key, answers: _is_off(key, answers.reference) and not _is_off(key, answers.litert))


def litert_alone() -> Iterator[str]:
    """LiteRT is off and TFLM is not."""
    return _told(lambda key, answers: _is_off(key, answers.litert) and not _is_off(key, answers.tflm))


def fails() -> Iterator[str]:
    """TFLM allocates and does not run."""
    found: dict[str, set[str]] = {}
    for key, answers in _TAKEN.items():
        if answers.tflm == FAILS:
            found.setdefault(key.kind, set()).add(key.types.replace(", ", " to "))
    yield from table("kind | types")
    for kind, types in found.items():
        yield row(kind, ", ".join(sorted(types)))


def left_out() -> Iterator[str]:
    """Cells that are not made."""
    yield from table("kind | types | dimensions | options | LiteRT | reference | TFLM")
    for key, answers in sorted(LEFT_OUT.items()):
        yield row(key.kind, key.types, key.rank, key.options, *answers)


def by_kind() -> Iterator[str]:
    """One row a kind."""
    yield from table("kind | LiteRT | reference | TFLM | types on TFLM | off")
    for kind in dict.fromkeys(key.kind for key in _TAKEN):
        cells = {key: answers for key, answers in _TAKEN.items() if key.kind == kind}
        counts = [sum(runs(answers[at]) for answers in cells.values()) for at in range(3)]
        types = sorted({key.types for key, answers in cells.items() if runs(answers.tflm)})
        rightly = (answers for key, answers in cells.items() if not _is_off(key, answers.litert) and runs(answers.tflm))
        most = max((steps_of(answers.tflm) for answers in rightly), default=0)
        yield row(kind, *counts, "; ".join(types) or "none", f"{most:,}" if most else "")


TABLES = (tflm_alone, both, reference_alone, litert_alone, fails, left_out, by_kind)


def page() -> str:
    """The text of the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.globals |= {each.__name__: lambda each=each: "\n".join(each()) for each in TABLES}
    return environment.get_template("runtimes.md.jinja").render(
        count=len(_CELLS),
        kinds=len({key.kind for key in _CELLS}),
        typed=len({key[:2] for key in _CELLS}),
        litert=_MADE_WITH["ai-edge-litert"],
        tflm=_MADE_WITH["tflite-micro"],
        copies=copies(),
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
