"""Both orders of a model placed by two processes, against one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cells import cell_network
from tests.models import mobile_chain
from tflite_memopt.memory import arrange as arranging
from tflite_memopt.memory.arrange import Arrangement, arrange
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Options


def figures(found: Arrangement) -> tuple[object, ...]:
    """Everything but seconds; tensors by their names."""
    placement = found.placement
    offsets = {tensor.name: offset for tensor, offset in placement.offsets.items()}
    schedule, plan = (replace(each, seconds=0.0) for each in (found.schedule, placement.plan))
    return found.problem, schedule, plan, placement.order, offsets, placement.memory


@pytest.mark.parametrize("make", [lambda: mobile_chain(16), lambda: cell_network(3, cells=1), lambda: mobile_chain(8)])
def test_two_processes_find_what_one_finds(make: Callable[[], Model], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arranging, "_MANY_ITEMS", 0)
    options, model = Options(), make()
    alone, shared = (arrange(model, options.profile, Options(jobs=jobs).search, 0.05) for jobs in (1, 2))
    assert figures(shared) == figures(alone)
    assert set(shared.placement.offsets) <= set(model.main.tensors)  # its own, not copies from another process
