"""Builds the files of the networks."""

from __future__ import annotations

from functools import lru_cache

import keras

from scripts.zoo_networks.people.catalog import PEOPLE
from scripts.zoo_networks.people.convert import Numbers, convert
from scripts.zoo_networks.people.training import Data, train


def build_people(name: str, numbers: Numbers, seed: int) -> bytes:
    """One network, trained a little, in one type of numbers; the same bytes for the same TensorFlow and machine."""
    model = _trained(name, seed)
    return convert(model, Data(model, seed), numbers)


@lru_cache(maxsize=1)
def _trained(name: str, seed: int) -> keras.Model:
    """One network at a time is kept, for all its types of numbers."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    model = PEOPLE[name].make()
    train(model, seed)
    return model
