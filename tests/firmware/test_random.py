"""Firmware of random networks, one of each kind; ``scripts/fuzz firmware`` runs more."""

from __future__ import annotations

import pytest

from scripts.fuzzing.firmware import KINDS, Ends, of_network
from tests.tflm import needs_wheel
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits


@pytest.mark.slow
@needs_wheel
@pytest.mark.parametrize(("number", "kind"), list(enumerate(KINDS)))
def test_it_computes_what_the_network_does_in_exactly_its_arena(number: int, kind: str) -> None:
    ends = Ends()
    with Interpreters((), ProcessLimits()) as interpreters:
        of_network(number, interpreters, ends)
    assert (ends.wrong, dict(ends.equal + ends.tflm)) == ([], {kind: 1})
