"""msf-CNN: its published figures to the byte, and its two problems against all paths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from scripts.zoo_networks.msf_cnn import CHAINS, Chain
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain
from tests.profiles import examples
from tflite_memopt import UnsupportedModelError, UsageError, compare
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import DType
from tflite_memopt.published.msf_cnn.fusion import (
    Block,
    Layer,
    LayerWindow,
    Setting,
    fusion_graph,
    least_macs,
    least_ram,
)
from tflite_memopt.published.msf_cnn.layers import chain_of

ROOT = Path(__file__).parents[2]


def layers_of_chain(chain: Chain) -> tuple[Layer, ...]:
    found = []
    side, channels = chain.side, 3
    for wanted, kernel, stride in chain.layers:
        window = LayerWindow(side, kernel, stride, kernel // 2)
        out, side = wanted or channels, window.outputs
        macs = kernel * kernel * (1 if wanted is None else channels)
        found.append(Layer(window, window, channels, out, side * out * macs))
        channels = out
    return tuple(found)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_the_published_figures_to_the_byte(chain: Chain) -> None:
    layers = layers_of_chain(chain)
    found = least_ram(fusion_graph(layers, with_ends=False))
    assert found is not None
    assert found.peak_bytes == chain.without_ends
    assert round(found.macs / sum(layer.macs for layer in layers), 2) == chain.mac_factor
    counted = least_ram(fusion_graph(layers, with_ends=True))
    assert counted is not None
    assert counted.peak_bytes == chain.with_ends
    assert round(counted.macs / sum(layer.macs for layer in layers), 2) == chain.mac_factor_with_ends


@st.composite
def chains(draw: st.DrawFn) -> tuple[Layer, ...]:
    found: list[Layer] = []
    rows, columns, channels = draw(st.integers(3, 20)), draw(st.integers(3, 20)), draw(st.integers(1, 4))
    for _ in range(draw(st.integers(1, 7))):
        kernel, stride, out = draw(st.sampled_from((1, 3, 5))), draw(st.integers(1, 2)), draw(st.integers(1, 5))
        high, wide = (LayerWindow(size, kernel, stride, kernel // 2) for size in (rows, columns))
        found.append(Layer(high, wide, channels, out, wide.outputs * out * kernel * kernel))
        rows, columns, channels = high.outputs, wide.outputs, out
    return tuple(found)


def paths(graph: Sequence[Block], at: int, end: int) -> Iterator[tuple[Block, ...]]:
    if at == end:
        yield ()
    for block in graph:
        if block.start == at:
            yield from ((block, *rest) for rest in paths(graph, block.end, end))


@given(layers=chains(), with_ends=st.booleans(), data=st.data())
@examples(80)
def test_no_path_is_better(layers: tuple[Layer, ...], with_ends: bool, data: st.DataObject) -> None:
    graph = fusion_graph(layers, with_ends)
    every = [Setting(path) for path in paths(graph, 0, len(layers))]
    least = least_ram(graph)
    assert least is not None
    assert (least.peak_bytes, least.macs) == min((each.peak_bytes, each.macs) for each in every)
    most = data.draw(st.sampled_from([0, *(each.macs for each in every)]))
    within = [(each.peak_bytes, each.macs) for each in every if each.macs <= most]
    found = least_ram(graph, most)
    assert (found and (found.peak_bytes, found.macs)) == min(within, default=None)
    most = data.draw(st.sampled_from([-1, *(each.peak_bytes for each in every)]))
    fitting = [(each.macs, each.peak_bytes) for each in every if each.peak_bytes <= most]
    fewest = least_macs(graph, most)
    assert (fewest and (fewest.macs, fewest.peak_bytes)) == min(fitting, default=None)


def test_a_block_by_hand() -> None:
    """Of 8x8x1, two 3x3 without padding to 4x4x2: patches of 5 rows, and caches of three columns by 5 and by 3."""
    first, second = (LayerWindow(size, 3) for size in (8, 6))
    layers = (Layer(first, first, 1, 2, 6 * 2 * 9), Layer(second, second, 2, 2, 4 * 2 * 18))
    inner = fusion_graph(layers, with_ends=False)
    assert inner == (Block(0, 1, 72, 6 * 108), Block(0, 2, 15 + 18, 4 * 3 * 108 + 4 * 144), Block(1, 2, 72, 4 * 144))
    assert [block.peak_bytes for block in fusion_graph(layers, with_ends=True)] == [136, 33 + 64 + 32, 104]
    assert (
        fusion_graph((Layer(first, LayerWindow(4, 3), 1, 2, 36), layers[1]), with_ends=True)[1].start == 1
    )  # too narrow


def test_a_model_gives_its_first_layers() -> None:
    layers = chain_of(mobile_chain(24).main)
    assert [(layer.rows.size, layer.rows.kernel, layer.rows.stride, layer.rows.padding) for layer in layers] == [
        *((24, 3, 2, 1), (12, 3, 1, 1), (12, 1, 1, 0), (12, 3, 2, 1), (6, 1, 1, 0), (6, 6, 6, 0)),
    ]
    assert [layer.in_bytes for layer in layers] == [1728, 1152, 1152, 2304, 576, 864]
    assert sum(layer.macs for layer in layers[:-1]) == 31104 + 10368 + 18432 + 5184 + 13824
    assert layers[-1].macs == 864  # a pool's taps


def test_a_pad_is_padding_and_additions_are_passed_over() -> None:
    b = ModelBuilder()
    x = b.input("image", (1, 8, 8, 3), DType.FLOAT32)
    quantized, padded = b.tensor("quantized", (1, 8, 8, 3)), b.tensor("padded", (1, 9, 9, 3))
    b.operator("QUANTIZE", (x,), (quantized,))
    b.operator("PAD", (quantized, b.constant("p", np.asarray([[0, 0], [0, 1], [0, 1], [0, 0]], np.int32))), (padded,))
    y = b.conv(padded, 4, kernel=3, stride=2, padding=VALID)
    y = b.add(y, b.depthwise(y))
    layers = chain_of(b.finish(b.softmax(b.conv(y, 2))).main)
    found = [(layer.rows.size, layer.rows.padding, layer.in_bytes) for layer in layers]
    assert found == [(8, 1, 192), (4, 1, 64), (4, 0, 64)]


@pytest.mark.slow
def test_the_command_shows_both_problems(tmp_path: Path) -> None:
    source = tmp_path / "m.tflite"
    source.write_bytes(write_model(mobile_chain(24)))
    words = ["compare", str(source), "--with", "msf-cnn", "--orders", "rpo", "--offsets", "naive"]
    done = CliRunner().invoke(cli, [*words, "--report", str(tmp_path / "m.json")])
    assert done.exit_code == 0, done.output
    assert "least RAM for 1.5 times the MACs" in " ".join(done.output.split())
    assert "fused blocks" in done.output
    found = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert json.loads((tmp_path / "m.json").read_text())["fusion"] == found["fusion"]
    jsonschema.validate(found, json.loads((ROOT / "schema" / "comparison.schema.json").read_text()))
    assert found["fusion_layers"] == 6
    assert {use["bytes"] for use in found["fusion"] if use["problem"] == "no fusion"} == {3456}


def test_a_model_of_other_layers_is_refused() -> None:
    with raises(UnsupportedModelError, ErrorKind.FORM, "msf-cnn"):
        compare(write_model(dense_model()), ("rpo",), ("naive",), beside=("msf-cnn",))
    with raises(UsageError, ErrorKind.UNKNOWN, "streamnet", "msf-cnn"):
        compare(write_model(dense_model()), ("rpo",), ("naive",), beside=("streamnet",))
