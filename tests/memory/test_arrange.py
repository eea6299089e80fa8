"""Several models arranged at once, against one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.models import mobile_chain
from tests.oracle.cells import cell_network
from tflite_memopt.memory import arrange as arranging
from tflite_memopt.memory.arrange import Arrangement, arrange, arrange_all
from tflite_memopt.options import Options


def figures(found: Arrangement) -> tuple[object, ...]:
    """Everything but seconds; tensors by their names."""
    placement = found.placement
    offsets = {tensor.name: offset for tensor, offset in placement.offsets.items()}
    schedule, plan = (replace(each, seconds=0.0) for each in (found.schedule, placement.plan))
    return found.problem, schedule, plan, placement.order, offsets, placement.memory


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_as_if_it_were_alone(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arranging, "_MANY_ITEMS", 0)
    options = Options(jobs=jobs)
    models = [mobile_chain(16), cell_network(3, cells=1), mobile_chain(8)]
    together = arrange_all(models, options.profile, options, 0.05)
    alone = [arrange(model, options.profile, Options(), 0.05) for model in models]
    assert [figures(each) for each in together] == [figures(each) for each in alone]
    for model, found in zip(models, together, strict=True):  # its own tensors, not copies from another process
        assert set(found.placement.offsets) <= set(model.main.tensors)
