"""Damaged models, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Damage = Callable[[bytearray, random.Random, Sequence[bytes]], None]
_EDGES = (0, 1, 0x7F, 0x80, 0xFF)
_WORDS = (0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, 0x10000, 0x7FFF0000)


def damaged(bases: Sequence[bytes], number: int, seed: int) -> bytes:
    """Case ``number`` of a seed: one of the ``bases``, damaged one to eight times."""
    rng = random.Random(f"{seed} {number}")
    data = bytearray(rng.choice(bases))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        rng.choice(_DAMAGES)(data, rng, bases)
    return bytes(data)


def _flip_bit(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice(_EDGES)


def _set_word(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    """Offsets and lengths are aligned words."""
    if len(data) >= 8:
        at = rng.randrange(len(data) // 4) * 4
        word = rng.choice((*_WORDS, rng.randrange(len(data)), (-rng.randrange(len(data))) % 2**32))
        data[at : at + 4] = word.to_bytes(4, "little")


def _copy_word(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    """A word from elsewhere: an offset that is right for another place."""
    if len(data) >= 8:
        source, at = (rng.randrange(len(data) // 4) * 4 for _ in range(2))
        data[at : at + 4] = data[source : source + 4]


def _cut(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    del data[start : start + rng.randrange(64)]


def _repeat(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = data[start : start + rng.randrange(64)]


def _splice(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    """The front of this one and the rest of another one."""
    other = rng.choice(bases)
    at = rng.randrange(min(len(data), len(other)) + 1) // 4 * 4
    data[at:] = other[at:]


def _append(data: bytearray, rng: random.Random, bases: Sequence[bytes]) -> None:
    data += rng.randbytes(rng.randrange(1, 64))


_DAMAGES: tuple[Damage, ...] = (
    *(_flip_bit, _set_byte, _set_word, _set_word, _copy_word, _copy_word),
    *(_cut, _remove, _repeat, _splice, _append),
)
