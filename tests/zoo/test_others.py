"""Networks of which other tools publish the RAM: their shapes are those of the figures, and the page holds both."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from scripts.benchmarks.others_published import SOURCES, published
from scripts.zoo_networks.mcunet_shapes import MCUNETS
from scripts.zoo_networks.msf_cnn import CHAINS
from tests.zoo.test_zoo import graph_of, run_zoo
from tflite_memopt.operators.table import operator_macs
from tflite_memopt.published.msf_cnn.fusion import fusion_graph, least_ram
from tflite_memopt.published.msf_cnn.layers import chain_of

pytestmark = pytest.mark.slow

needs_tensorflow = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")


@pytest.mark.slow
@needs_tensorflow
def test_a_model_that_was_built_gives_the_published_figures(tmp_path: Path) -> None:
    """Its integers come of the file here; tests/published/test_msf_cnn.py makes them of the shapes."""
    assert run_zoo("--others", "msf_mn2_vww5", "mcunet_vww0", "-o", tmp_path).returncode == 0
    chain = CHAINS["msf_mn2_vww5"]
    layers = chain_of(graph_of(tmp_path / "others_msf_mn2_vww5.tflite"))
    found = [least_ram(fusion_graph(layers, with_ends)) for with_ends in (False, True)]
    assert [each and each.peak_bytes for each in found] == [chain.without_ends, chain.with_ends]
    graph = graph_of(tmp_path / "others_mcunet_vww0.tflite")
    assert round(sum(map(operator_macs, graph.operators)) / 1e6, 1) == 6.0  # as MCUNet's own list of models says


def test_every_figure_is_of_a_network_that_is_built_and_has_a_source() -> None:
    figures = published()
    assert {figure.tool for figure in figures} == {*SOURCES}
    assert {*MCUNETS, *CHAINS} <= {figure.network for figure in figures}
    assert all(figure.bytes > 1000 for figure in figures)
