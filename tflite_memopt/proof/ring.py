"""Random values in place of data: integers modulo 2**64, and keyed hashes of them.

Integers stand for themselves, modulo 2**64: sums and products with constants are those of the kernels, whose own
modulus of 2**32 divides this one. Floats other than zero are symbols: equal floats are equal random odd numbers, the
negative of a float is the negative of its number, and nothing else is known of them. So an identity that holds here
holds for any values of the symbols, the floats' own among them. A hash stands for an unknown function.

All randomness comes from a key that is drawn for each proof. Nobody who makes a model knows it, so that no model can be
made to collide.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Ring = npt.NDArray[np.uint64]
"""Elements of the ring."""
Known = npt.NDArray[Any]
"""Values of a constant or of integers that are computed from constants, in their own type; never uint64."""
Value = npt.NDArray[Any]
"""Ring elements, or known values."""

U = np.uint64
_LIMB = 22
"""Bits of a limb in :func:`product`: products of two limbs leave room for 2**9 terms in a float64, exactly."""
_SMALL = 1 << 15
_FEW = 1 << 12


def is_ring(value: Value) -> bool:
    """Return whether the values are random ones."""
    return value.dtype == U


class Keys:
    """The random functions of one proof. ``seed`` fixes them, for tests.

    ``ordered``: whether the order of terms in a sum of floats counts; where not, sums are those of real numbers.
    """

    def __init__(self, seed: bytes | None = None, ordered: bool = True) -> None:
        self.ordered = ordered
        self._seed = secrets.token_bytes(32) if seed is None else seed
        self._words: dict[Any, int] = {}
        self._factors = [U(self.word("factor", number) | 1) for number in range(3)]
        self._order: Ring = np.zeros(0, U)
        self.minus_zero = U(self.word("minus zero") & ~1 if ordered else 0)

    def unordered(self) -> Keys:
        """Return the same keys for sums of real numbers."""
        return Keys(self._seed, ordered=False)

    def word(self, *what: Any) -> int:
        """Return a random number of 64 bits for this name: numbers, strings, bytes, None, and tuples of them."""
        known = self._words.get(repr(what))
        if known is None:
            digest = blake2b(repr(what).encode(), digest_size=8, key=self._seed[:64]).digest()
            known = self._words[repr(what)] = int.from_bytes(digest, "little")
        return known

    def hash(self, x: Ring, *what: Any) -> Ring:
        """Return a random function of each element; which one is named by ``what``. It is a bijection."""
        return self.hash_by(x, U(self.word(*what)))

    def hash_by(self, x: Ring, words: Any) -> Ring:
        """Return a random function of each element, named by a word or by one word for each element."""
        one, two, three = self._factors
        y: Ring = np.empty(np.broadcast_shapes(np.shape(x), np.shape(words)), U)
        np.bitwise_xor(x, words, out=y)
        y *= one
        y ^= y >> U(32)
        y *= two
        y ^= y >> U(29)
        y *= three
        y ^= y >> U(32)
        return y

    def random(self, shape: tuple[int, ...], *what: Any) -> Ring:
        """Random elements for a name: one for each position of a shape."""
        return self.hash(np.arange(prod(shape), dtype=U), "random", what).reshape(shape)

    def order(self, count: int) -> Ring:
        """Return a random odd factor for each position: a sum of so weighted terms tells their order."""
        if self._order.size < count:
            self._order = self.random((max(1024, 2 * count),), "order") | U(1)
        return self._order[:count]

    def float_order(self, count: int) -> Ring:
        """Return the factors of a sum of floats: those of :meth:`order`, or ones where the order does not count."""
        return self.order(count) if self.ordered else np.ones(count, U)

    def constant(self, value: Value) -> Ring:
        """Known values as ring elements; ring elements stay as they are."""
        if is_ring(value):
            return value
        if value.dtype.kind == "f":
            return self._symbols(value)
        found: Ring = np.asarray(value).astype(np.int64).astype(U)
        return found

    def _symbols(self, value: Known) -> Ring:
        bits = np.ascontiguousarray(value).reshape(value.shape).view(f"u{value.itemsize}").astype(U)
        sign = U(1 << (8 * value.itemsize - 1))
        symbol = self.hash(bits & ~sign, "float", value.itemsize) | U(1)
        signed = np.where(bits & sign, U(0) - symbol, symbol)
        found: Ring = np.where(bits == 0, U(0), np.where(bits == sign, self.minus_zero, signed))
        return found

    def digest(self, x: Ring) -> Ring:
        """One element for each row, the last axis: a function of its elements and their order."""
        rows = (self.hash(x, "digest") * self.order(x.shape[-1])).sum(-1, dtype=U)
        return self.hash(np.asarray(rows), "digested", x.shape[-1])


def product(a: Ring, b: Ring) -> Ring:
    """Return the product of two matrices modulo 2**64.

    numpy multiplies matrices of integers slowly. So numbers are cut into limbs, whose products are added up exactly in
    float64, by BLAS.
    """
    (rows, depth), columns = a.shape, b.shape[1]
    if rows * depth * columns < _FEW:
        return a @ b
    signed = b.view(np.int64) if b.flags.c_contiguous else np.ascontiguousarray(b).view(np.int64)
    is_small = b.size == 0 or bool(signed.min() > -_SMALL and signed.max() < _SMALL)
    step = 1 << 16 if is_small else 1 << 9
    total = np.zeros((rows, columns), U)
    for start in range(0, depth, step):
        left = _limbs(a[:, start : start + step])
        right = [signed[start : start + step].astype(np.float64)] if is_small else _limbs(b[start : start + step])
        for i, low in enumerate(left):
            for j, high in enumerate(right[: 3 - i]):
                total += (low @ high).astype(np.int64).astype(U) << U(_LIMB * (i + j))
    return total


def _limbs(a: Ring) -> list[npt.NDArray[np.float64]]:
    mask = U((1 << _LIMB) - 1)
    return [((a >> U(_LIMB * number)) & mask).astype(np.float64) for number in range(3)]
