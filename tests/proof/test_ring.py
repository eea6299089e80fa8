"""The ring: exact products, and hashes that tell apart what they must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_memopt.proof.ring import Keys, Ring, U, product


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
