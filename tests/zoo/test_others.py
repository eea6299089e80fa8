"""Networks of which other tools publish the RAM: their shapes are those of the figures, and the page holds both."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.benchmarks import others
from scripts.benchmarks.others_published import SOURCES, published
from scripts.zoo_networks.mcunet_shapes import MCUNETS
from scripts.zoo_networks.msf_cnn import CHAINS
from tests.zoo.test_zoo import graph_of, run_zoo
from tflite_memopt.analysis.macs import operator_macs
from tflite_memopt.cli import cli
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


def test_the_page_has_what_was_kept_and_measures_each_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = {
        "feed": others.Row("msf_mn2_vww5", "feed", 20_000, 9_000, 1.5, 0.2, "bit-exact", 9.4),
        "parts": others.Row("msf_mn2_vww5", "parts", error="no part"),
    }
    measured: list[str] = []

    def measure(_: Path, __: str, way: str) -> others.Row:
        measured.append(way)
        return rows[way]

    monkeypatch.setattr(others, "_measured", measure)
    monkeypatch.setattr(others, "_file", lambda name, _: tmp_path / name)
    command = ["msf_mn2_vww5", "--way", "feed", "--way", "parts"]
    page = tmp_path / "others.md"
    for _ in range(2):
        assert CliRunner().invoke(others.others, [*command, "-o", str(page)]).exit_code == 0
    assert measured == ["feed", "parts"]
    text = page.read_text()
    theirs = (
        "msf-CNN 12,000b x1.96 -/0.75; msf-CNN 26,491t x1.11 -/0.34; MCUNetV2 45,000t -/0.20; StreamNet 44,000t -/0.20"
    )
    assert f"| msf_mn2_vww5 | {theirs} | - | - | - | 20,000/9,000/1.50/+20.0 |" in text
    assert "Verified bit-exact on LiteRT and TFLM: all but msf_mn2_vww5 feed.\n" in text
    assert "- msf_mn2_vww5, parts: no part\n" in text
    assert "mcunet_in4 (TinyEngine 425,984 -/-; X-CUBE-AI 350,208 -/-), mobilenet_v2_0.30_64 (" in text
    assert asdict(rows["feed"]) == asdict(others._kept("msf_mn2_vww5", "feed"))
    refused = CliRunner().invoke(others.others, ["msf"])
    assert refused.exit_code == 2
    several = CliRunner().invoke(others.others, ["msf_mn2_vww5", "msf_mn2_320k", "--way", "feed", "--jobs", "2"])
    assert several.exit_code == 0
    assert others._kept("msf_mn2_320k", "feed") == rows["feed"]
    assert "no network msf; there are st_mobilenet_v1_0.25_96" in refused.output


@pytest.mark.parametrize("way", others.WAYS)
def test_what_the_page_says_of_a_way_is_a_command_line(way: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(b"no model")
    flags = " ".join(re.findall("`(.*?)`", others.WAYS[way])).replace("CORE", "cortex-m4").split()
    found = CliRunner().invoke(cli, ["optimize", str(path), "-o", str(tmp_path / "out"), *flags])
    assert "m.tflite" in str(found.exception), found.output
