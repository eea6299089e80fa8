"""CMSIS-NN and esp-nn: scratch and buffers as their own functions say, overlap only where the libraries were probed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tflite_memopt.errors import ErrorKind, ModelFormatError, UsageError
from tflite_memopt.kernels.cmsis_nn import DSP, MVE, SCALAR, Build, convolution_path, depthwise_path
from tflite_memopt.kernels.esp_nn import ESP_NN, ESP_NN_P4, ESP_NN_S3, of_version
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PROFILES, REFERENCE
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Operator
from tflite_memopt.operators.requests import ILP32, ILP32_SHORT_ENUMS, LP64
from tflite_memopt.operators.window import window_of

CMSIS = {"scalar": SCALAR, "dsp": DSP, "mve": MVE}
BUILDS: tuple[Build, ...] = ("scalar", "dsp", "mve")


def operator(name: str, shape: tuple[int, ...] = (1, 8, 8, 8)) -> Operator:
    b = ModelBuilder()
    x = b.input("x", shape)
    y = {
        "conv 3x3": lambda: b.conv(x, 16, kernel=3),
        "conv 1x1": lambda: b.conv(x, 16),
        "conv 1x1 stride 2": lambda: b.conv(x, 16, 1, 2, SAME),
        "depthwise 3x3": lambda: b.depthwise(x),
        "depthwise 5x5": lambda: b.depthwise(x, kernel=5),
        "depthwise 5x5 multiplier 2": lambda: b.depthwise(x, kernel=5, multiplier=2),
        "pool": lambda: b.average_pool(x, 8),
        "dense": lambda: b.dense(b.reshape(x, (1, 512)), 10),
        "add": lambda: b.add(x, x),
        "reshape": lambda: b.reshape(x, (1, 512)),
    }[name]()
    return b.finish(y).main.operators[-1]


@pytest.mark.parametrize(
    ("name", "scalar", "dsp", "mve"),
    [
        ("conv 3x3", 288, 288, 320),
        ("conv 1x1", 0, 0, 0),
        ("conv 1x1 stride 2", 0, 0, 0),
        ("depthwise 3x3", 0, 0, 4464),
        ("depthwise 5x5", 0, 400, 12_400),
        ("depthwise 5x5 multiplier 2", 0, 0, 0),
        ("pool", 0, 32, 0),
        ("dense", 0, 0, 0),
        ("add", 0, 0, 0),
    ],
)
def test_cmsis_nn_scratch_is_what_the_librarys_functions_return(name: str, scalar: int, dsp: int, mve: int) -> None:
    """Worked out by hand from arm_*_get_buffer_sizes_s8.c."""
    found = [sum(profile.requests(operator(name), ILP32).scratch) for profile in (SCALAR, DSP, MVE)]
    assert found == [scalar, dsp, mve]


def test_a_dense_layer_keeps_the_sums_of_its_weights_with_helium() -> None:
    found = [profile.requests(operator("dense"), ILP32) for profile in (SCALAR, DSP, MVE)]
    assert [(each.init, each.prepare) for each in found] == [((72,), ()), ((72,), ()), ((72,), (40,))]


@pytest.mark.parametrize(
    ("name", "init"), [("conv 3x3", 60), ("depthwise 3x3", 60), ("pool", 36), ("dense", 72), ("add", 60)]
)
def test_cmsis_nn_structures_on_32_bits(name: str, init: int) -> None:
    """sizeof of each wrapper's OpData as the lab measured it on Cortex-M7, with short enums and without."""
    for abi in (ILP32, ILP32_SHORT_ENUMS):
        assert DSP.requests(operator(name), abi).init == (init,)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conv 3x3", 800 + 2304 + 1536 + 800 + 64 + 64),
        ("conv 1x1", 8 * 16 + 16 * 8 + 64),
        ("conv 1x1 stride 2", 8 * 8 * 0 + 16 * 16 + 16 * 16 + 64 + 64),
        ("depthwise 3x3", 2 * (72 + 512) + 32),
        ("depthwise 5x5", 2 * (200 + 512) + 32),
        ("depthwise 5x5 multiplier 2", 32),
        ("pool", 0),
        ("dense", 0),
        ("add", 0),
    ],
)
def test_esp32_s3_scratch_is_what_the_librarys_functions_return(name: str, expected: int) -> None:
    """Worked out by hand from esp_nn_conv_esp32s3.c and esp_nn_depthwise_conv_s8_esp32s3.c."""
    assert sum(ESP_NN_S3.requests(operator(name), ILP32).scratch) == expected


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("conv 3x3", (1, 8, 8, 8), 16 * 4 + 72 + 32),
        ("conv 3x3", (1, 8, 8, 1), 16 * 4 + 32 + 10 * 10 + 9 * 16 * 16),
        ("conv 1x1", (1, 8, 8, 8), 16 * 4 + 16 * 16 + 32 + 32),
        ("conv 1x1", (1, 8, 8, 20), 64 * 24 + 24 * 16 + 16 * 24 + 32),
        ("depthwise 5x5", (1, 8, 8, 8), 0),
    ],
)
def test_esp32_p4_scratch_is_what_the_librarys_functions_return(
    name: str, shape: tuple[int, ...], expected: int
) -> None:
    """Worked out by hand from esp_nn_conv_esp32p4.c."""
    assert sum(of_version(ESP_NN_P4, "1.2.3").requests(operator(name, shape), ILP32).scratch) == expected


@pytest.mark.parametrize(
    ("version", "name", "shape", "expected"),
    [
        ("1.1", "conv 3x3", (1, 8, 8, 8), 800 + 2304 + 64 + 32),
        ("1.2.0", "conv 3x3", (1, 8, 8, 8), 800 + 2304 + 64 + 32),
        ("1.2.2", "conv 3x3", (1, 8, 8, 8), 800 + 2304 + 1536 + 800 + 64 + 32),
        ("1.2.3", "conv 3x3", (1, 8, 8, 3), 16 * 4 + 16 + 16 * 32 + 16 + 32 + 64),
        ("1.2.2", "conv 3x3", (1, 8, 8, 3), 16 * 4 + 16 + 16 * 32 + 16 + 32 + 32),
        ("1.2.0", "conv 3x3", (1, 8, 8, 3), 300 + 2304 + 64 + 32),
        ("1.1", "depthwise 3x3", (1, 8, 8, 8), 2 * (72 + 512) + 16),
        ("1.2.0", "depthwise 3x3", (1, 8, 8, 8), 2 * (72 + 512) + 32),
        ("1.1", "depthwise 3x3", (1, 8, 8, 16), 144 + 10 * 10 * 16 + 16),
        ("1.1", "depthwise 3x3", (1, 64, 64, 16), 144 + 66 * 66 * 16 + 16),
        ("1.2.1", "depthwise 3x3", (1, 64, 64, 16), 144 + 66 * 3 * 16 + 16),
        ("1.1", "depthwise 5x5", (1, 8, 8, 8), 32),
    ],
)
def test_esp32_s3_scratch_by_version(version: str, name: str, shape: tuple[int, ...], expected: int) -> None:
    """Worked out by hand from the sources at the tags; the profile for all versions has the largest."""
    of_one = of_version(ESP_NN_S3, version).requests(operator(name, shape), ILP32).scratch
    assert of_one == (expected,)
    scratch = [
        of_version(ESP_NN_S3, each).requests(operator(name, shape), ILP32).scratch for each in ("1.0", "1.1", "1.2")
    ]
    assert ESP_NN_S3.requests(operator(name, shape), ILP32).scratch == max(scratch)


def test_before_1_2_3_the_esp32_p4_asks_as_the_first_version_of_the_s3() -> None:
    for profile in (of_version(ESP_NN_P4, "1.2.2"), ESP_NN_P4):
        assert profile.requests(operator("conv 3x3"), ILP32).scratch == (800 + 2304 + 64 + 32,)


def test_versions_of_esp_nn_that_were_not_read_are_refused() -> None:
    for version in ("1.2.4", "1.", "2", "", "latest"):
        with raises(UsageError, ErrorKind.UNKNOWN, repr(version), "1.2.3"):
            of_version(ESP_NN_S3, version)


@pytest.mark.parametrize("name", ["conv 3x3", "conv 1x1", "depthwise 3x3", "pool", "dense", "add"])
def test_generic_esp_nn_asks_for_no_scratch(name: str) -> None:
    assert ESP_NN.requests(operator(name), ILP32).scratch == ()


@pytest.mark.parametrize("chip", [ESP_NN, ESP_NN_S3, ESP_NN_P4], ids=lambda profile: profile.name)
def test_softmax_of_esp_nn_asks_for_its_width(chip: KernelProfile) -> None:
    b = ModelBuilder()
    y = b.tensor("y", (1, 10))
    b.operator("SOFTMAX", (b.input("x", (1, 10)),), (y,), "SoftmaxOptions", beta=1.0)
    assert chip.requests(b.finish(y).main.operators[0], ILP32).scratch == (40,)


@pytest.mark.parametrize("profile", [ESP_NN_S3, ESP_NN_P4], ids=lambda profile: profile.name)
def test_kernels_that_were_only_read_share_nothing(profile: KernelProfile) -> None:
    for name in ("conv 3x3", "conv 1x1", "depthwise 3x3", "pool", "dense", "add"):
        assert profile.relations(operator(name)) == ()
    assert [reuse.kind for reuse in profile.relations(operator("reshape"))] == ["view"]
    assert profile.measured_at is None


def test_each_profile_is_in_the_table_under_its_name() -> None:
    for profile in (SCALAR, DSP, MVE, ESP_NN, ESP_NN_S3, ESP_NN_P4):
        assert PROFILES[profile.name] is profile
        assert not profile.is_portable


def window(
    kind: str,
    shape: tuple[int, int, int] = (6, 6, 8),
    depth: int = 8,
    taps: tuple[int, int] = (3, 3),
    stride: int = 1,
    dilation: int = 1,
    padding: int = SAME,
    batches: int = 1,
    groups: int = 1,
    dtype: DType = DType.INT8,
    weights: DType = DType.INT8,
) -> Operator:
    """A CONV_2D or DEPTHWISE_CONV_2D of which every term can be chosen; ``shape`` is height, width, channels."""
    b = ModelBuilder()
    x = b.input("x", (batches, *shape), dtype)
    reach = [(t - 1) * dilation + 1 for t in taps]
    rows, columns = (
        -(-size // stride) if padding == SAME else (size - each) // stride + 1
        for size, each in zip(shape, reach, strict=False)
    )
    y = b.tensor("y", (batches, rows, columns, depth), dtype)
    filter_shape = (depth, *taps, shape[2] // groups) if kind == "CONV_2D" else (1, *taps, depth)
    filters = b.constant("filter", np.ones(filter_shape, np.float32 if dtype is DType.FLOAT32 else np.int8))
    filters.dtype = DType.FLOAT32 if dtype is DType.FLOAT32 else weights
    fields = {"strideH": stride, "strideW": stride, "padding": padding}
    fields |= {"dilationHFactor": dilation, "dilationWFactor": dilation}
    options = "Conv2DOptions"
    if kind != "CONV_2D":
        options, fields = "DepthwiseConv2DOptions", fields | {"depthMultiplier": depth // shape[2]}
    bias = b.constant("bias", np.zeros(depth, np.int32))
    b.operator(kind, (x, filters, bias), (y,), options, **fields)
    return b.finish(y).main.operators[0]


CONV, DEPTHWISE = "CONV_2D", "DEPTHWISE_CONV_2D"
# Rows of the lab's table of smallest safe distances: operator, scalar, DSP, Helium; None: no overlap is permitted.
MEASURED: list[tuple[Operator, int | None, int | None, int]] = [
    (window(CONV, (6, 6, 4), 8, (1, 1)), None, None, 159),
    (window(CONV, (6, 6, 16), 8, (1, 1)), None, None, 31),
    (window(CONV, (3, 3, 64), 64, (1, 1)), None, None, 255),
    (window(CONV, (7, 7, 8), 16, (1, 1), stride=2), 62, 62, 63),
    (window(CONV, (6, 6, 16), 8, (1, 1), stride=2), 22, 22, 4),
    (window(CONV, (6, 6, 3), 8), 191, 191, 181),
    (window(CONV, (7, 7, 8), 16, stride=2), 16, 16, 8),
    (window(CONV, (8, 8, 4), 6, (5, 5)), 196, 196, 192),
    (window(CONV, (8, 8, 4), 4, dilation=2), 72, 72, 72),
    (window(CONV, (1, 20, 8), 8, (1, 3)), 8, 8, 39),
    (window(CONV, (1, 20, 16), 8, (1, 3), padding=VALID), -16, -16, 31),
    (window(CONV, (1, 21, 8), 8, (1, 3), stride=2), -8, -8, 31),
    (window(DEPTHWISE, (6, 6, 16), 16), 112, 112, 112),
    (window(DEPTHWISE, (4, 4, 64), 64), 320, 320, 256),
    (window(DEPTHWISE, (7, 7, 12), 12, (5, 5), stride=2), 60, 60, 48),
    (window(DEPTHWISE, (8, 8, 8), 8, dilation=2), 144, 144, 144),
    (window(DEPTHWISE, (6, 6, 3), 12), 342, 342, 342),
    (window(DEPTHWISE, (8, 8, 1), 16), 966, 966, 909),
    (window(DEPTHWISE, (10, 8, 1), 8, (10, 8), stride=2), 121, 121, 96),
]


@pytest.mark.parametrize("row", MEASURED)
def test_no_distance_is_below_what_was_measured(row: tuple[Operator, int | None, int | None, int]) -> None:
    for build, safe in zip(BUILDS, row[1:], strict=True):
        shares = CMSIS[build].relations(row[0])
        assert bool(shares) == (safe is not None)
        assert all(reuse.kind == "overlap" and safe is not None and reuse.distance >= safe for reuse in shares)


@pytest.mark.parametrize(
    ("case", "builds"),
    [
        (window(CONV, (6, 6, 8), 8, groups=2), BUILDS),
        (window(DEPTHWISE, (3, 3, 130), 130), ("mve",)),
        (window(CONV, weights=DType.INT4), BUILDS),
        (window(DEPTHWISE, weights=DType.INT4), BUILDS),
        (window(CONV, dtype=DType.INT16, groups=2), BUILDS),
        (window(CONV, dtype=DType.INT16, batches=2), BUILDS),
        (window(DEPTHWISE, dtype=DType.INT16, batches=2), BUILDS),
        (window(CONV, taps=(1, 1), batches=2), BUILDS),
        (window(CONV, taps=(1, 1), stride=2, batches=2), BUILDS),
        (window(CONV, (1, 20, 8), taps=(1, 3), batches=2), BUILDS),
        (window(DEPTHWISE, (8, 8, 1), 16, batches=2), ("mve",)),
        (window(CONV, (1, 28, 4), 21, (1, 2), stride=3, padding=VALID), ("mve",)),
    ],
    ids=[
        "groups",
        "over 124 channels",
        "int4",
        "int4 depthwise",
        "int16 groups",
        "int16 batches",
        "int16 depthwise batches",
        "1x1 batches",
        "1x1 strided batches",
        "1xN batches",
        "one channel batches",
        "refused by the library",
    ],
)
def test_what_was_not_probed_is_not_permitted(case: Operator, builds: tuple[str, ...]) -> None:
    for build in builds:
        assert CMSIS[build].relations(case) == ()


@pytest.mark.parametrize(
    "case",
    [
        window(CONV, dtype=DType.INT16),
        window(CONV, taps=(1, 1), dtype=DType.INT16),
        window(CONV, (1, 20, 8), taps=(1, 3), dtype=DType.INT16),
        window(DEPTHWISE, dtype=DType.INT16),
        window(DEPTHWISE, (3, 3, 130), 130, dtype=DType.INT16),
        window(CONV, batches=2),
        window(DEPTHWISE, batches=3),
    ],
    ids=["int16", "int16 1x1", "int16 1xN", "int16 depthwise", "int16 over 124 channels", "batches", "depthwise"],
)
def test_int16_and_batches_need_no_more_than_the_reference_kernels(case: Operator) -> None:
    for profile in CMSIS.values():
        assert profile.relations(case) == REFERENCE.relations(case) != ()


@pytest.mark.parametrize("bias", [np.int32, np.int64])
def test_scratch_for_int16_is_asked_for_whatever_the_bias(bias: type[np.integer]) -> None:
    """Prepare asks for it, though Eval runs biases of 32 bits in TFLM's own loops: 2,064 bytes in place of 2,032."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 8), DType.INT16), b.tensor("y", (1, 4, 4, 8), DType.INT16)
    operands = (b.constant("w", np.ones((8, 1, 1, 8), np.int8)), b.constant("b", np.zeros(8, bias)))
    b.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", strideH=1, strideW=1)
    assert DSP.requests(b.graph.operators[0], ILP32).scratch == (2 * 2 * 8,)


def test_float_runs_in_the_reference_kernels() -> None:
    case = window(CONV, taps=(1, 1), dtype=DType.FLOAT32)
    for profile in (*CMSIS.values(), ESP_NN):
        assert profile.relations(case) == REFERENCE.relations(case) != ()
    assert DSP.requests(case, ILP32).prepare == DSP.requests(case, ILP32).scratch == ()


@pytest.mark.parametrize("shape", [(1, 4, 4, 8), (1, 1, 1, 8)])
def test_elementwise_kernels_work_in_place(shape: tuple[int, ...]) -> None:
    """MAXIMUM broadcasts in a loop of CMSIS-NN's that was not probed; ADD in TFLM's."""
    for name, kind in (("ADD", "AddOptions"), ("MUL", "MulOptions"), ("MAXIMUM", None), ("MINIMUM", None)):
        b = ModelBuilder()
        x, z, y = b.input("x", (1, 4, 4, 8)), b.input("z", shape), b.tensor("y", (1, 4, 4, 8))
        case = b.operator(name, (x, z), (y,), kind)
        broadcasts = shape != x.shape
        expected = [] if broadcasts and name in ("MAXIMUM", "MINIMUM") else [x] if broadcasts else [x, z]
        assert [reuse.input for reuse in DSP.relations(case)] == expected


def test_a_copied_row_of_pad_is_clear_of_its_source() -> None:
    def shares(profile: KernelProfile) -> list[int]:
        b = ModelBuilder()
        x, y = b.input("x", (1, 4, 4, 8)), b.tensor("y", (1, 6, 6, 8))
        b.operator("PAD", (x, b.constant("p", np.asarray([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))), (y,))
        return [reuse.distance for reuse in profile.relations(b.finish(y).main.operators[0])]

    assert shares(DSP) == [distance + 4 * 8 for distance in shares(REFERENCE)]


SIZES = st.integers(1, 7)


@st.composite
def windows(draw: st.DrawFn) -> Operator:
    kind = draw(st.sampled_from([CONV, DEPTHWISE]))
    channels, taps = draw(st.integers(1, 12)), (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    shape = (draw(SIZES) + 3, draw(SIZES) + 3, channels)
    depth = draw(st.integers(1, 12)) if kind == CONV else channels * draw(st.integers(1, 2))
    return window(kind, shape, depth, taps, draw(st.integers(1, 3)), 1, draw(st.sampled_from([SAME, VALID])))


@given(windows())
def test_a_library_never_allows_less_distance_than_the_reference(case: Operator) -> None:
    (least,) = REFERENCE.relations(case)
    for profile in (*CMSIS.values(), ESP_NN):
        for reuse in profile.relations(case):
            assert (reuse.input, reuse.output, reuse.kind) == (least.input, least.output, least.kind)
            assert reuse.distance >= least.distance


@given(windows())
def test_requests_are_whole_and_shrink_with_short_enums(case: Operator) -> None:
    for profile in PROFILES.values():
        wide, short, host = (profile.requests(case, abi) for abi in (ILP32, ILP32_SHORT_ENUMS, LP64))
        assert wide.known
        assert min((*wide.init, *wide.prepare, *wide.scratch), default=1) > 0
        assert (short.params, sum(short.init)) <= (wide.params, sum(wide.init)) <= (host.params, sum(host.init))
        assert short.scratch == wide.scratch == host.scratch


@pytest.mark.parametrize("name", CMSIS)
@pytest.mark.parametrize("slot", [0, 1])
def test_a_window_over_tensors_of_two_dimensions_is_a_fault_of_the_file(name: str, slot: int) -> None:
    case = operator("conv 3x3")
    case.required(slot).shape = (8, 8)
    with raises(ModelFormatError, ErrorKind.OPERAND, "CONV_2D", "[8, 8]"):
        CMSIS[name].requests(case, ILP32)


@given(windows())
def test_every_window_has_a_path(case: Operator) -> None:
    terms = window_of(case)
    if case.name == CONV:
        assert (terms.taps == 1 and "1x1" in convolution_path(terms)) or convolution_path(terms) in ("im2col", "1xn")
    else:
        found = {depthwise_path(terms, build) for build in BUILDS}
        assert found <= {"3x3", "opt", "generic", "convolution"}


@pytest.mark.parametrize(("outputs", "path"), [(1, "opt"), (2, "convolution"), (5, "convolution")])
def test_with_helium_several_outputs_of_one_channel_are_a_convolution(outputs: int, path: str) -> None:
    terms = window_of(window(DEPTHWISE, (6, 6, 1), outputs))
    assert depthwise_path(terms, "mve") == path
    assert depthwise_path(terms, "dsp") != "convolution"
