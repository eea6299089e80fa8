"""Builds the files of the networks."""

from __future__ import annotations

import keras

from scripts.zoo_networks.people.catalogue import PEOPLE
from scripts.zoo_networks.people.convert import Numbers, convert
from scripts.zoo_networks.people.training import train


def build_people(name: str, numbers: Numbers, seed: int) -> bytes:
    """One network, trained a little, in one type of numbers; the same bytes for the same TensorFlow and machine."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    model = PEOPLE[name]()
    return convert(model, train(model, seed), numbers)
