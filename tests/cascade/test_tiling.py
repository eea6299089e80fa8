"""Tilings: their text, and what does not fit a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.networks import TYPES, random_network
from tests.cascade.spaces import figures_of, space_of
from tests.dump import dump_model
from tests.faults import raises
from tests.models import mobile_chain
from tflite_memopt.errors import ErrorKind, InfeasibleError, UsageError
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.search.cascade.space import UNROLLED
from tflite_memopt.search.cascade.tiling import (
    NAMES,
    ClampedLoop,
    CutLoop,
    Form,
    MaskedLoop,
    PhaseLoop,
    Tiling,
    Unrolled,
    apply_tilings,
    text_of,
    tilings_in,
)

numbers, modes = st.integers(1, 999), st.sampled_from(UNROLLED)
ends = st.lists(numbers, min_size=1, max_size=8, unique=True).map(lambda rows: tuple(sorted(rows)))
forms: st.SearchStrategy[Form] = st.one_of(
    st.builds(lambda rows, mode: Unrolled(rows, *mode), ends, modes),
    st.builds(ClampedLoop, numbers),
    st.builds(MaskedLoop, numbers),
    st.builds(CutLoop, numbers),
    st.builds(PhaseLoop, numbers),
)
tilings = st.builds(lambda first, length, form: Tiling(first, first + length, form), st.integers(0, 99), numbers, forms)


@given(st.lists(tilings, max_size=5))
def test_the_text_of_tilings_is_read_again(chosen: list[Tiling]) -> None:
    text = text_of(chosen)
    assert "\n" not in text
    assert tilings_in(text) == tuple(chosen)
    assert sorted(tilings_in(text)) == sorted(chosen)  # all forms can be compared


def test_the_text_is_what_the_manual_shows() -> None:
    text = "4-11 unrolled 8,16,24 rolling pad; 15-20 masked 2"
    assert tilings_in(text) == (Tiling(4, 11, Unrolled((8, 16, 24), "rolling", "pad")), Tiling(15, 20, MaskedLoop(2)))
    assert text_of(tilings_in(f" {text} ; ")) == text
    assert tilings_in("") == ()


@pytest.mark.parametrize(
    "part",
    [
        "4-11",
        "4 unrolled 8,16 rolling pad",
        "4-x masked 2",
        "4-11-12 masked 2",
        "4-11 folded 2",
        "4-11 masked",
        "4-11 masked 2 pad",
        "4-11 masked two",
        "4-11 unrolled 8,,16 rolling pad",
        "4-11 unrolled 8,16 rolling",
        "4-11 unrolled 8,16 rollng pad",
        "4-11 unrolled 8,16 rolling trm",
    ],
)
def test_what_is_no_tiling_is_said_in_one_line(part: str) -> None:
    with raises(UsageError, ErrorKind.SYNTAX, f"'{part}'"):
        tilings_in(f"0-2 clamped 1; {part}")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0-2 unrolled 3,2,24 rolling pad", ("24 rows",)),
        ("0-2 unrolled 8,16 rolling pad", ("24 rows",)),
        ("0-2 clamped 24", ("24 rows",)),
        ("0-9 masked 1", ("0 to 9",)),
        ("7-7 masked 1", ("0 to",)),
        ("0-1000 masked 1", ("0 to",)),
        ("1-2 masked 1; 0-2 clamped 1", ("'0-2 clamped 1'", "'1-2 masked 1'")),
        ("1-2 phases 3", ("3 phases",)),
    ],
)
def test_what_does_not_fit_the_model_is_refused(text: str, names: tuple[str, ...]) -> None:
    model = mobile_chain(48)
    assert model.main.operators[1].outputs[0].shape[1] == 24
    with raises(InfeasibleError, ErrorKind.DECISION, *names):
        apply_tilings(model, tilings_in(text))


def test_the_documentation_has_every_form() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how_it_works.md").read_text()
    rows = text.partition("| form | what runs")[2].partition("\n\n")[0].splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_tilings_that_are_read_are_written_as_those_that_were_found(seed: int) -> None:
    model = random_network(seed, TYPES[seed % 3], 5, height=16)
    found = sorted(figures_of(space_of(model, profile_named("portable"))))
    for tiling in found[:: max(1, len(found) // 10)]:
        try:
            made = apply_tilings(copy_model(model), [tiling])
        except InfeasibleError:
            continue
        check_model(made)
        again = apply_tilings(copy_model(model), tilings_in(str(tiling)))
        assert dump_model(again) == dump_model(made)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0-1 unrolled 8,16,24 rolling pad", "3 stripes (rolling, pad)"),
        ("0-1 unrolled 8,24 recompute trim", "2 stripes (uneven, recompute, trim)"),
        ("0-1 masked 1", "a masked loop, 1 row per iteration"),
        ("0-1 clamped 2", "a clamped loop, 2 rows per iteration"),
        ("0-1 phases 4", "a loop over 4 phases"),
    ],
)
def test_what_a_report_says_of_a_form(text: str, said: str) -> None:
    (tiling,) = tilings_in(text)
    assert tiling.described(24) == said
