"""Random values in place of data: integers modulo 2**64, real numbers modulo a prime, and keyed hashes of them.

Integers stand for themselves, modulo 2**64: sums and products with constants are those of the kernels, whose own
modulus of 2**32 divides this one. Floats other than zero are symbols: equal floats are equal random numbers, the
negative of a float is the negative of its number, and nothing else is known of them. So an identity that holds here
holds for any values of the symbols, the floats' own among them. A hash stands for an unknown function.

Sums of floats as real numbers are computed in the field of 2**61 - 1 elements, in which no sum of few terms is zero
but by accident: modulo 2**64 a number that is doubled 64 times is 0.

All randomness comes from a key that is drawn for each proof. Nobody who makes a model knows it, so that no model can be
made to collide.

The chance of a false proof (``Keys.chance``), provided that the keyed hash behaves as a random function:

1. Values are terms: inputs and hashes are symbols; sums are polynomials of them with integer coefficients. A hash is a
   bijection for each word, so two symbols of one word are equal only if their arguments are.
2. Take the first two different terms, in the order of computation, that one word is applied to and whose values agree.
   All symbols before them are independent and uniform. So if no pair collides, terms of equal value are equal terms.
3. The difference of two terms is a polynomial that is not zero. If it is linear with a coefficient that 2**b divides
   and 2**(b+1) does not, it vanishes modulo 2**64 for a share of 2**(b-64) of the values. A coefficient is at most
   twice the sum of the weights of one channel, which bounds b. Products of two or three random factors, in sums of
   floats and of computed weights, lose at most 16 bits. A chain of sums of 32-bit integers loses at most 31: where
   2**32 divides every coefficient, the kernels' own results are equal. Real polynomials are in the field of 2**61 - 1
   elements, where a polynomial of degree d that is not zero vanishes for at most d / 2**61 of the values (Schwartz and
   Zippel).
4. The chance is the sum, over all words, of the pairs of elements that the word is applied to times 2**(b-64). Both
   models count, equal terms too.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from enum import Enum
from hashlib import blake2b
from math import fsum, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .images import Images
from .outcome import UndecidedError

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
_FEW_BITS = 2.0
"""That a difference of random numbers, or of sums of two or three of them, may lose."""


def is_ring(value: Value) -> bool:
    """Return whether the values are random ones."""
    return value.dtype == U


class Arithmetic:
    """Sums and products modulo 2**64."""

    def plus(self, a: Ring, b: Ring) -> Ring:
        """Return the sum."""
        return a + b

    def times(self, a: Ring, b: Ring) -> Ring:
        """Return the product."""
        return a * b

    def total(self, x: Ring) -> Ring:
        """Return the sums along the last axis."""
        return np.asarray(x.sum(-1, dtype=U))

    def product(self, a: Ring, b: Ring) -> Ring:
        """Return the product of two matrices."""
        return product(a, b)


class Field(Arithmetic):
    """Sums and products modulo :data:`PRIME`, of elements below it."""

    def plus(self, a: Ring, b: Ring) -> Ring:
        """Return the sum."""
        return reduced(a + b)

    def minus(self, a: Any, b: Ring) -> Ring:
        """Return the difference."""
        return reduced(a + (PRIME - b))

    def times(self, a: Ring, b: Ring) -> Ring:
        """Return the product, by halves of 31 and 30 bits: 2**61 is 1."""
        (a_low, a_high), (b_low, b_high) = (((x & _HALF), x >> U(31)) for x in (a, b))
        middle = a_low * b_high + a_high * b_low
        rest = (middle >> U(30)) + ((middle & U((1 << 30) - 1)) << U(31))
        return reduced(U(2) * a_high * b_high + rest + a_low * b_low)

    def total(self, x: Ring) -> Ring:
        """Return the sums along the last axis: both halves of each element are added exactly."""
        low, high = ((each.sum(-1, dtype=U)) for each in (x & _HALF, x >> U(31)))
        return reduced(reduced(np.asarray(low)) + _shifted(reduced(np.asarray(high)), 31))

    def product(self, a: Ring, b: Ring) -> Ring:
        """Return the product of two matrices, by limbs as :func:`product`."""
        (rows, depth), columns = a.shape, b.shape[1]
        total = np.zeros((rows, columns), U)
        for start in range(0, depth, 1 << 9):
            left, right = _limbs(a[:, start : start + (1 << 9)]), _limbs(b[start : start + (1 << 9)])
            for i, low in enumerate(left):
                for j, high in enumerate(right):
                    part = (low @ high).astype(np.int64).astype(U)
                    total = reduced(total + _shifted(reduced(part), _LIMB * (i + j) % 61))
        return total


PRIME = U((1 << 61) - 1)
_HALF = U((1 << 31) - 1)
WRAPPING, FIELD = Arithmetic(), Field()


def reduced(x: Ring) -> Ring:
    """Return numbers of 64 bits modulo the prime."""
    folded = (x & PRIME) + (x >> U(61))
    found: Ring = np.where(folded >= PRIME, folded - PRIME, folded)
    return found


def _shifted(x: Ring, by: int) -> Ring:
    """Return an element of the field times a power of two: its 61 bits go round."""
    return reduced(((x << U(by)) & PRIME) | (x >> U(61 - by))) if by else x


class Floats(Enum):
    """The floats that a proof speaks of.

    ANY: of any bits, infinite ones and such as overflow on the way included. FINITE: all floats are finite, so that a
    product with zero is zero, and no activation clamps what has none. REAL: finite ones, taken as real numbers: their
    sums are in no order, and -0 is 0.
    """

    ANY = "any"
    FINITE = "finite"
    REAL = "real"


class Keys:
    """The random functions of one proof. ``seed`` fixes them, for tests.

    It notes of how many elements each random function was taken, and the bits that a difference of two of them may have
    lost.
    """

    def __init__(self, seed: bytes | None = None, floats: Floats = Floats.ANY) -> None:
        self.floats = floats
        self.ordered, self.is_finite = floats is not Floats.REAL, floats is not Floats.ANY
        self._hashed: list[tuple[Ring, int, float]] = []
        self._seed = secrets.token_bytes(32) if seed is None else seed
        self._words: dict[str, int] = {}
        self._factors = [U(self.word("factor", number) | 1) for number in range(3)]
        self._order: Ring = np.zeros(0, U)
        self.minus_zero = self.as_float(np.full(1, self.word("minus zero"), U))[0]
        self.images = Images()
        self.zero_weight = U(self.word("zero weight") | 1)

    def of(self, floats: Floats) -> Keys:
        """Return the same keys for other floats."""
        return Keys(self._seed, floats)

    def next(self) -> Keys:
        """Return other keys for the same floats."""
        return Keys(blake2b(b"next", key=self._seed[:64]).digest(), self.floats)

    def chance(self, least_bits: float) -> float:
        """Return a bound on the chance that any two different terms of which one function was taken agree.

        A pair does with a chance of at most ``2**(bits - 64)``, as above; ``least_bits``: of all of them.
        """
        if not self._hashed:
            return 0.0
        words, counts, bits = zip(*self._hashed, strict=True)
        sizes = [each.size for each in words]
        functions, which = np.unique(np.concatenate(words), return_inverse=True)
        elements = np.bincount(which, np.repeat(np.asarray(counts, np.float64), sizes))
        lost = np.full(functions.size, least_bits, np.float64)
        np.maximum.at(lost, which, np.repeat(np.asarray(bits, np.float64), sizes))
        # Functions are in a random order: only the exact sum is the same with all seeds.
        return min(1.0, fsum(elements * elements * 2.0 ** (lost - 65)))

    def as_float(self, x: Ring) -> Ring:
        """Return random elements as those of floats: even, so that the last bit may say that one is never -0.

        Real numbers are elements of the field.
        """
        return x & ~U(1) if self.ordered else reduced(x)

    def word(self, *what: Any) -> int:
        """Return a random number of 64 bits for this name: numbers, strings, bytes, None, and tuples of them."""
        name = repr(what)
        known = self._words.get(name)
        if known is None:
            digest = blake2b(name.encode(), digest_size=8, key=self._seed[:64]).digest()
            known = self._words[name] = int.from_bytes(digest, "little")
        return known

    def words(self, each: Sequence[Any], *what: Any) -> Ring:
        """Return a random number for this name and each of some numbers."""
        begun = blake2b(repr(what).encode(), digest_size=8, key=self._seed[:64])
        digests = bytearray()
        for number in each:
            one = begun.copy()
            one.update(repr(number).encode())
            digests += one.digest()
        return np.frombuffer(bytes(digests), "<u8").astype(U)

    def hash(self, x: Ring, *what: Any) -> Ring:
        """Return a random function of each element; which one is named by ``what``. It is a bijection."""
        return self.hash_by(x, U(self.word(*what)))

    def hash_by(self, x: Ring, words: Any, bits: float = _FEW_BITS) -> Ring:
        """Return a random function of each element, named by a word or by words along the last axis.

        ``bits``: that a difference of two elements may have lost.
        """
        own = np.ravel(words)
        self._hashed.append((own, max(1, np.size(x) // max(1, own.size)), bits))
        return self.mix(x, words)

    def mix(self, x: Ring, words: Any) -> Ring:
        """Return the same, where elements are compared with those of their own place alone."""
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
        return self.mix(np.arange(prod(shape), dtype=U), U(self.word("random", what))).reshape(shape)

    def order(self, count: int) -> Ring:
        """Return a random odd factor for each position: a sum of so weighted terms tells their order."""
        if self._order.size < count:
            self._order = self.random((max(1024, 2 * count),), "order") | U(1)
        return self._order[:count]

    def constant(self, value: Value) -> Ring:
        """Known values as ring elements; ring elements stay as they are."""
        if is_ring(value):
            return value
        if value.dtype.kind == "f":
            return self._symbols(value)
        return np.asarray(value).astype(np.int64).astype(U)

    def _symbols(self, value: Known) -> Ring:
        bits = np.ascontiguousarray(value).reshape(value.shape).view(f"u{value.itemsize}").astype(U)
        sign = U(1 << (8 * value.itemsize - 1))
        if not self.ordered and not np.isfinite(value).all():
            raise UndecidedError("as a real number it reads a constant that is not finite")
        symbol = self.mix(bits & ~sign, U(self.word("float", value.itemsize))) | U(1)
        symbol = symbol if self.ordered else reduced(symbol)
        signed = np.where(bits & sign, U(0) - symbol if self.ordered else FIELD.minus(U(0), symbol), symbol)
        return np.where(bits == 0, U(0), np.where(bits == sign, self.minus_zero, signed))

    def digest(self, x: Ring) -> Ring:
        """One element for each row, the last axis: a function of its elements and their order."""
        rows = (self.hash(x, "digest", x.shape[-1]) * self.order(x.shape[-1])).sum(-1, dtype=U)
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
