"""The ring: exact products, and hashes that tell apart what they must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_memopt.evidence.proof.outcome import UndecidedError
from tflite_memopt.evidence.proof.ring import FIELD, PRIME, Floats, Keys, Ring, U, product


def slow_product(a: Ring, b: Ring) -> Ring:
    left, right = a.astype(object), b.astype(object)
    return np.asarray((left @ right) % (1 << 64), dtype=object).astype(U)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 1300), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_products_are_exact(rows: int, depth: int, columns: int, seed: int, is_small: bool) -> None:
    draw = np.random.default_rng(seed)
    a = draw.integers(0, 1 << 64, (rows, depth), np.uint64)
    b = (
        draw.integers(-(1 << 15) + 1, 1 << 15, (depth, columns)).astype(U)
        if is_small
        else draw.integers(0, 1 << 64, (depth, columns), np.uint64)
    )
    assert np.array_equal(product(a, b), slow_product(a, b))


@pytest.mark.parametrize("worst", [2**64 - 1, 2**63, 2**44 - 1, 0])
def test_products_of_the_largest_numbers_are_exact(worst: int) -> None:
    a, b = np.full((4, 1200), 2**64 - 1, U), np.full((1200, 4), worst, U)
    assert np.array_equal(product(a, b), slow_product(a, b))


def test_floats_are_symbols() -> None:
    values = np.asarray([0.0, 1.5, -1.5, 1.5000001, 2.0, -0.0, np.inf, np.nan], np.float32)
    found = Keys(b"seed").constant(values)
    assert found[0] == 0
    assert (found[1:2] + found[2:3]).tolist() == [0]
    assert len(set(found.tolist())) == len(values)


def test_keys_are_random_for_each_proof() -> None:
    x = np.arange(8, dtype=U)
    assert not np.array_equal(Keys().hash(x, "f"), Keys().hash(x, "f"))
    assert np.array_equal(Keys(b"seed").hash(x, "f"), Keys(b"seed").hash(x, "f"))


def test_hashes_of_neighbors_are_apart_in_every_bit() -> None:
    found = Keys(b"seed").hash(np.arange(1 << 12, dtype=U), "f")
    ones = np.unpackbits(found.view(np.uint8).reshape(-1, 8), axis=1).mean(0)
    assert len(set(found.tolist())) == found.size
    assert ((ones > 0.45) & (ones < 0.55)).all()


P = int(PRIME)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 1300), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_the_field_is_exact(rows: int, depth: int, columns: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    a, b = (draw.integers(0, P, shape, np.uint64) for shape in ((rows, depth), (depth, columns)))
    left, right = a.astype(object), b.astype(object)
    assert np.array_equal(FIELD.product(a, b), np.asarray((left @ right) % P, dtype=object).astype(U))
    assert np.array_equal(FIELD.total(a), np.asarray(left.sum(1) % P, dtype=object).astype(U))
    c = draw.integers(0, P, a.shape, np.uint64)
    for found, wanted in (
        (FIELD.plus(a, c), left + c.astype(object)),
        (FIELD.minus(a, c), left - c.astype(object)),
        (FIELD.times(a, c), left * c.astype(object)),
    ):
        assert np.array_equal(found, np.asarray(wanted % P, dtype=object).astype(U))


@pytest.mark.parametrize("worst", [P - 1, 2**31 - 1, 2**31, 1, 0])
def test_the_ends_of_the_field_are_exact(worst: int) -> None:
    x = np.full((3, 1100), worst, U)
    assert FIELD.times(x, x)[0, 0] == worst * worst % P
    assert FIELD.plus(x, x)[0, 0] == 2 * worst % P
    assert FIELD.minus(U(0), x)[0, 0] == -worst % P
    assert FIELD.total(x)[0] == 1100 * worst % P
    assert FIELD.product(x, np.ascontiguousarray(x.T))[0, 0] == 1100 * worst * worst % P


def test_a_real_number_that_is_doubled_again_and_again_is_never_zero() -> None:
    x = Keys(b"seed", Floats.REAL).random((4,), "x") % PRIME
    for _ in range(200):
        x = FIELD.plus(x, x)
        assert x.all()


def test_real_numbers_are_finite() -> None:
    for value in (np.inf, -np.inf, np.nan):
        constant = np.asarray([value], np.float32)
        Keys(b"seed", Floats.ANY).constant(constant)
        with pytest.raises(UndecidedError):
            Keys(b"seed", Floats.REAL).constant(constant)


def test_the_chance_is_the_same_with_every_seed() -> None:
    found = set()
    for seed in range(20):
        keys = Keys(bytes([seed]) * 32)
        for number in range(60):
            keys.hash_by(np.arange(7 * number + 1, dtype=U), U(keys.word("function", number)), 0.37 * number)
        found.add(keys.chance(0.0))
    assert len(found) == 1


def test_the_chance_counts_pairs_of_one_function_and_bits_that_a_sum_loses() -> None:
    keys, x = Keys(b"seed"), np.arange(1 << 10, dtype=U)
    keys.hash_by(x, U(1), 10.0)
    assert keys.chance(0.0) == pytest.approx(2.0 ** (20 - 1 + 10 - 64))
    keys.hash_by(x, U(2), 2.0)  # another function
    assert keys.chance(0.0) == pytest.approx(2.0 ** (20 - 1 + 10 - 64) + 2.0 ** (20 - 1 + 2 - 64))
    keys.hash_by(x, U(1), 2.0)  # the same again: four times as many pairs
    assert keys.chance(0.0) > 3.9 * 2.0 ** (20 - 1 + 10 - 64)
    assert keys.chance(31.0) > 2.0 ** (20 - 1 + 31 - 64)
