"""All pairs of options of ``optimize`` on small models: each works, or is refused in a line that names both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from scripts.makers import reference
from tests.command import run
from tests.models import dense_model, mobile_chain
from tests.recurrent import layers
from tests.test_slide import keywords
from tflite_memopt.cli.optimize import optimize
from tflite_memopt.cli.pairs import PAIRS
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model

VALUES = {
    "--target": "cortex-m4",
    "--kernels": "cmsis-nn-dsp",
    "--tflm": "2026-01-15",
    "--io": "int8 channels-last",
    "--slide": "2",
    "--budget": "300",
    "--max-slowdown": "50",
    "--inputs": "x.npz",
    "--parts": "2",
    "--feed": "auto",
    "--report": "r.json r.html r.svg",
    "--receipt": "receipt.json",
}
"""Of flags whose value is not the last of a few choices; others take none, or one that depends on the model."""
SETTLED = {"--help", "--force", "--output", "--effort"}
"""Options that every command line here has, or that end it."""


def options_of_pairs() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each option of ``optimize`` as ``PAIRS`` names it, and the words behind it."""
    for param in optimize.params:
        flag = max(param.opts, key=len)
        if not isinstance(param, click.Option) or flag in SETTLED:
            continue
        choices = param.type.choices[-1:] if isinstance(param.type, click.Choice) else ()
        values = VALUES.get(flag, " ".join(map(str, choices))).split()
        for value in values:
            named = f"{flag} {Path(value).suffix or value}"
            yield named if len(values) > 1 or any(named in pair for pair in PAIRS) else flag, (value,)
        if not values:
            yield flag, ()


OPERATORS = {"": 1, "--tie": 2, "--slide": 10, "--step": 19, "--feed": 0}
"""Of the model for an option that needs one of a kind, which a decision has in order."""
_NO_FRONT = "--feed: no front keeps the added run time"
OPTIONS = dict(options_of_pairs())


@cache
def model_for(kind: str) -> bytes:
    makers = {"--step": lambda: layers("gru"), "--slide": keywords, "--feed": mobile_chain}
    return write_model(makers.get(kind, dense_model)())


def tied() -> tuple[bytes, str]:
    """A model whose output has the type and the shape of its second input."""
    from tests.model_builder import ModelBuilder

    b = ModelBuilder()
    x, state, y = b.input("x", (1, 8)), b.input("state", (1, 8)), b.tensor("next", (1, 8))
    b.operator("RELU", (b.add(x, state),), (y,))
    return write_model(b.finish(y)), "next:state"


def words_of(option: str, kind: str) -> list[str]:
    words: dict[str, tuple[str, ...]] = {
        "--tie": (tied()[1],),
        "--replay": ("order " + ",".join(map(str, range(OPERATORS[kind]))),),
    }
    return [option.partition(" ")[0], *(OPTIONS[option] or words.get(option, ()))]


def tried(folder: Path, *options: str) -> tuple[int, str]:
    """Run ``optimize`` with these options; its exit code and what it said on stderr."""
    kind = next((each for each in ("--step", "--slide", "--tie", "--feed") if each in options), "")
    data = tied()[0] if kind == "--tie" else model_for(kind)
    (folder / "m.tflite").write_bytes(data)
    rng, inputs = np.random.default_rng(0), read_model(data).main.inputs
    given: dict[str, Any] = {each.name: rng.integers(-128, 127, each.shape).astype(each.dtype.label) for each in inputs}
    np.savez(folder / "x.npz", **given)
    for name in ("r.json", "r.html", "r.svg", "receipt.json"):
        (folder / name).unlink(missing_ok=True)
    words = [word for option in options for word in words_of(option, kind)]
    if not {"--no-verify", "--receipt", "--inputs"} & {*options}:
        words.append("--no-verify")  # verification has no part in it, and takes most of the time
    out = f"out{len(list(folder.glob('out*')))}"
    done = run("optimize", "m.tflite", "-o", out, "--effort", "quick", *words, folder=folder)
    if done.returncode in (0, 3):
        assert (folder / out).exists(), f"{options}: nothing written"
    return done.returncode, done.stderr


def test_no_pair_is_listed_twice() -> None:
    assert len({frozenset(pair[:2]) for pair in PAIRS}) == len(PAIRS)
    assert all(option in OPTIONS for pair in PAIRS for option in pair[:2])
    page = reference.PAGE.read_text()
    assert all(f"| `{first}` | `{second}` |" in page for first, second, _ in PAIRS)


def test_rows_for_a_tflm_that_cannot_write_them_are_refused_before_any_search(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(model_for("--feed"))
    done = run(
        "optimize", "m.tflite", "-o", "out", "--feed", "2", "--tflm", "zephyr-3.7", "--progress", folder=tmp_path
    )
    said = done.stderr.splitlines()
    assert (done.returncode, len(said)) == (2, 1), said
    assert all(option in said[0] for option in ("--feed", "--tflm zephyr-3.7"))


@pytest.mark.slow
def test_a_budget_that_is_missed_on_such_a_tflm_says_so_of_rows(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(model_for("--feed"))
    words = ("--budget", "3000", "--tflm", "zephyr-3.7", "--target", "cortex-m4", "--no-verify", "--effort", "quick")
    done = run("optimize", "m.tflite", "-o", "out.tflite", *words, folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "not possible: --feed does not work with --tflm zephyr-3.7" in " ".join(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("first", OPTIONS)
def test_each_pair_works_or_is_refused_with_both_names(first: str, tmp_path: Path) -> None:
    refused = {frozenset(pair[:2]) for pair in PAIRS}
    code, said = tried(tmp_path, first)
    assert code in (0, 3) or (first == "--feed" and _NO_FRONT in said), f"{first} alone: {said}"
    for one, other in combinations(OPTIONS, 2):
        if one != first or one.partition(" ")[0] == other.partition(" ")[0] == "--report":
            continue
        code, said = tried(tmp_path, one, other)
        if _NO_FRONT in said and "--feed" in (one, other):
            continue  # so it says alone: the model's answer, not that of the pair
        if {one, other} in refused:
            names = [option.removesuffix(" .json") for option in (one, other)]
            assert (code, said.count("\n")) == (2, 1), f"{one} {other}: {code} {said}"
            assert all(name in said for name in names), f"{one} {other}: {said}"
        else:
            assert code in (0, 3), f"{one} {other}: {code} {said}"
