"""Random networks, and names of files: shared by the benchmarks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.cascade.networks import TYPES, random_network
from tests.test_random_models import random_model, random_rows
from tflite_memopt.model.io.writer import write_model

_LAYERS = (4, 14)
"""The fewest and the most layers of a random region."""


def named(path: Path) -> str:
    """The path as a reader would type it."""
    return str(path).replace(str(Path.home()), "~")


def random_networks(count: int, seed: int = 0) -> Iterator[bytes]:
    """Build networks of three kinds in turn: cells, rows, and regions for stripes, in all types."""
    for number in range(seed, seed + count):
        draw = random.Random(number)
        region = random_network(number, draw.choice(TYPES), draw.randint(*_LAYERS))
        yield write_model((random_model(number), random_rows(number), region)[number % 3])
