"""Attempts to fool a proof, and what must be proved: state, chains, ties, floats, bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder, per_channel
from tests.models import ALL, float_sum, if_model, streaming_model, while_model
from tflite_memopt import Options, optimize
from tflite_memopt.evidence.proof import Keys, Notes, Run, Status, chained, inputs_of, prove, prove_computed
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import Buffer, DType, Model, Operator, OperatorOptions, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

F32, I8, I32 = DType.FLOAT32, DType.INT8, DType.INT32
Array = np.ndarray[Any, Any]


def set_values(tensor: Tensor, values: Array) -> None:
    tensor.buffer = Buffer(np.frombuffer(values.tobytes(), np.uint8))


def with_option(operator: Operator, **fields: Any) -> None:
    assert operator.options is not None
    operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, **fields})


def pair(make: Callable[[], Model], change: Callable[[Model], object]) -> tuple[Model, Model]:
    changed = make()
    change(changed)
    return make(), changed


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_model_equals_itself(name: str) -> None:
    proof = prove(ALL[name](), ALL[name]())
    assert proof.status is Status.PROVED, proof
    assert proof.invocations is None
    assert 0 < proof.chance < 1e-6


def wide_window(**fields: Any) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4))
    model = b.finish(b.conv(x, 4, kernel=3) if "dilationHFactor" in fields else b.average_pool(x, 8))
    with_option(model.main.operators[0], padding=SAME, **fields)
    return model


@pytest.mark.parametrize("field", ["dilationHFactor", "filterHeight"])
def test_a_window_of_any_size_takes_neither_memory_nor_time(field: str) -> None:
    """A convolution of so wide a window is a function of all its input: equal to itself, and to no other."""
    model, same, other = (wide_window(**{field: each}) for each in (10**9, 10**9, 10**9 + 1))
    assert prove(model, same).proved
    assert not prove(model, other).proved


def two_branches(scale: float = 0.05, zero_point: int = 3) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 4), I8, scale=0.05, zero_point=3)
    z = b.input("z", (1, 4, 4, 4), I8, scale=scale, zero_point=zero_point)
    a, c = b.conv(x, 4, kernel=3, seed=1), b.conv(z, 4, kernel=3, seed=2)
    y = b.tensor("y", (1, 4, 4, 4))
    b.operator("SUB", (a, c), (y,), "SubOptions")
    return b.finish(y)


def swap_operands(model: Model) -> None:
    operator = model.main.operators[2]
    a, c = operator.inputs
    model.main.set_input(operator, 0, c)
    model.main.set_input(operator, 1, a)


def swap_readers(model: Model) -> None:
    """Two tensors of one shape, type and quantization are read in each other's place."""
    one, other = model.main.operators[:2]
    a, b = one.inputs[0], other.inputs[0]
    model.main.set_input(one, 0, b)
    model.main.set_input(other, 0, a)


def rescale(model: Model) -> None:
    weights = model.main.operators[0].inputs[1]
    assert weights is not None
    assert weights.quantization is not None
    scale = weights.quantization.scale.copy()
    scale[2] = np.nextafter(scale[2], np.float32(1))
    weights.quantization = replace(weights.quantization, scale=scale)


def shift_zero_point(model: Model) -> None:
    model.main.inputs[0].quantization = per_tensor(0.05, 4)


def swap_inputs(model: Model) -> None:
    model.main.inputs = (model.main.inputs[1], model.main.inputs[0])


def pad_elsewhere(model: Model) -> None:
    with_option(model.main.operators[0], padding=VALID)


def multiply(operator: Operator) -> None:
    operator.opcode = replace(operator.opcode, name="MUL")
    operator.options = OperatorOptions("MulOptions", {})


CHANGES: dict[str, Callable[[Model], object]] = {
    "operands": swap_operands,
    "readers": swap_readers,
    "scale": rescale,
    "zero point": shift_zero_point,
    "inputs": swap_inputs,
    "padding": pad_elsewhere,
    "activation": lambda model: with_option(model.main.operators[0], fusedActivationFunction=3),
    "kind": lambda model: multiply(model.main.operators[2]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_computes_something_else_is_different(name: str) -> None:
    proof = prove(*pair(two_branches, CHANGES[name]))
    assert proof.status is Status.DIFFERENT, proof


@pytest.mark.parametrize("parts", [None, 2, 4])
def test_a_split_that_says_another_number_of_parts_is_broken(parts: int | None) -> None:
    """Kernels refuse it; without options it says 0."""

    def divided(said: int | None) -> Model:
        b = ModelBuilder()
        x, made = b.input("x", (1, 6)), [b.tensor(f"y{at}", (1, 2)) for at in range(3)]
        b.operator("SPLIT", (b.constant("axis", np.asarray(1, np.int32)), x), made, "SplitOptions", numSplits=said or 0)
        if said is None:
            b.graph.operators[-1].options = None
        return b.finish(*made)

    assert prove(divided(3), divided(3)).status is Status.PROVED
    proof = prove(divided(3), divided(parts))
    assert proof.status is Status.DIFFERENT
    assert [figure for figure in (f" {parts or 0} ", " 3") if figure not in str(proof)] == []


def chain(order: Array, is_told: bool = True) -> Model:
    """Two convolutions; the channels between them in some order, and the second one told of it or not."""
    b = ModelBuilder()
    y = b.conv(b.conv(b.input("x", (1, 5, 5, 3)), 8, kernel=3, seed=1), 4, seed=2)
    first, second = b.finish(y).main.operators
    for slot in (1, 2):
        tensor = first.inputs[slot]
        assert tensor is not None
        assert tensor.quantization is not None
        assert tensor.buffer.data is not None
        values = tensor.buffer.data.view(tensor.dtype.label).reshape(tensor.shape)[order]
        set_values(tensor, values)
        tensor.quantization = per_channel(tensor.quantization.scale[order], 0)
    weights = second.inputs[1]
    assert weights is not None
    assert weights.buffer.data is not None
    if is_told:
        set_values(weights, weights.buffer.data.view(np.int8).reshape(weights.shape)[..., order])
    return b.model


def test_channels_in_another_order_are_proved_if_their_reader_knows() -> None:
    order = np.asarray([3, 1, 7, 0, 5, 2, 6, 4])
    assert prove(chain(np.arange(8)), chain(order)).status is Status.PROVED
    assert prove(chain(np.arange(8)), chain(order, is_told=False)).status is Status.DIFFERENT


def shared_constant(second_scale: float) -> Model:
    """Constants of equal bytes and of other scales."""
    b = ModelBuilder()
    x = b.input("x", (1, 8))
    values = np.arange(8, dtype=np.int8).reshape(1, 8)
    a, c = (b.constant(name, values, per_tensor(scale, 0)) for name, scale in (("a", 0.1), ("b", second_scale)))
    y = b.tensor("y", (1, 8))
    z = b.tensor("z", (1, 8))
    b.operator("ADD", (x, a), (y,), "AddOptions")
    b.operator("ADD", (y, c), (z,), "AddOptions")
    return b.finish(z)


def test_equal_bytes_of_other_scales_are_told_apart() -> None:
    assert prove(shared_constant(0.1), shared_constant(0.2)).status is Status.DIFFERENT


def weighted(weights: list[int], bias: int = 0) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, len(weights)))
    y = b.tensor("y", (1, 1))
    filters = b.constant("w", np.asarray([weights], np.int8), per_tensor(0.01, 0))
    b.operator(
        "FULLY_CONNECTED", (x, filters, b.constant("b", np.asarray([bias], np.int32))), (y,), "FullyConnectedOptions"
    )
    return b.finish(y)


def test_no_power_of_two_vanishes_modulo_the_ring() -> None:
    """Weights and biases that differ by large powers of two, or by the sign alone."""
    for one, other in (([64], [-64]), ([-128], [0]), ([127, -128], [-128, 127]), ([0, 0], [-128, -128])):
        assert prove(weighted(one), weighted(other)).status is Status.DIFFERENT
    assert prove(weighted([1], 1 << 30), weighted([1], -(1 << 30))).status is Status.DIFFERENT
    assert prove(weighted([5, 0, 0]), weighted([5, 0, 0])).status is Status.PROVED


def squares(second: int) -> Model:
    """x times x, and x times another input: what a ring with divisors of zero could confuse."""
    b = ModelBuilder()
    tensors = [b.input("x", (1, 1, 4), F32), b.input("z", (1, 1, 4), F32)]
    y = b.tensor("y", (1, 1, 1), F32)
    b.operator("BATCH_MATMUL", (tensors[0], tensors[second]), (y,), "BatchMatMulOptions", adjY=True)
    return b.finish(y)


def test_products_of_activations_are_told_apart() -> None:
    assert prove(squares(0), squares(0)).proved
    assert prove(squares(0), squares(1)).status is Status.DIFFERENT


def test_sums_of_floats_are_equal_as_real_numbers_alone() -> None:
    proof = prove(float_sum(True), float_sum(False))
    assert proof.status is Status.REASSOCIATED
    assert prove(float_sum(True), float_sum(True)).status is Status.PROVED


def added_twice(other: int, name: str = "ADD") -> Model:
    b = ModelBuilder()
    tensors = [b.input(name, (4,), F32) for name in "xyz"]
    y, out = b.tensor("s", (4,), F32), b.tensor("out", (4,), F32)
    b.operator("ADD", (tensors[0], tensors[1]), (y,), "AddOptions")
    b.operator(name, (y, tensors[other]), (out,), f"{name.title()}Options")
    return b.finish(out)


def test_other_sums_of_real_numbers_are_different() -> None:
    assert prove(added_twice(2), added_twice(1)).status is Status.DIFFERENT
    assert prove(added_twice(2), added_twice(2, "SUB")).status is Status.DIFFERENT


def minus_zero(value: float) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 4), F32)
    y = b.tensor("y", (1, 4), F32)
    b.operator("ADD", (x, b.constant("c", np.full((1, 4), value, np.float32))), (y,), "AddOptions")
    return b.finish(y)


def no_sum() -> Model:
    b = ModelBuilder()
    return b.finish(b.reshape(b.input("x", (1, 4), F32), (1, 4)))


def test_adding_zero_changes_the_bits_of_minus_zero() -> None:
    """x + 0 is not x where x is -0; as real numbers it is."""
    assert prove(no_sum(), minus_zero(0.0)).status is Status.REASSOCIATED
    assert prove(no_sum(), minus_zero(-0.0)).status is Status.PROVED


def doubled(times: int, other: bool) -> Model:
    """Floats added to themselves again and again."""
    b = ModelBuilder()
    inputs = [b.input(name, (4,), F32) for name in "xz"]
    y = inputs[other]
    for number in range(times):
        total = b.tensor(f"y{number}", (4,), F32)
        b.operator("ADD", (y, y), (total,), "AddOptions")
        y = total
    return b.finish(y)


def test_floats_that_are_doubled_64_times_are_told_apart() -> None:
    assert prove(doubled(70, False), doubled(70, False)).status is Status.PROVED
    assert prove(doubled(70, False), doubled(70, True)).status is Status.DIFFERENT


def summed_with(*values: float) -> Model:
    b = ModelBuilder()
    y = b.input("x", (4,), F32)
    for number, value in enumerate(values):
        total = b.tensor(f"y{number}", (4,), F32)
        b.operator("ADD", (y, b.constant(f"c{number}", np.full(4, value, np.float32))), (total,), "AddOptions")
        y = total
    return b.finish(b.reshape(y, (2, 2)))


def limited_to(limit: float) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), F32), b.tensor("y", (1, 4), F32)
    b.operator("MINIMUM", (x, b.constant("limit", np.asarray(limit, np.float32))), (y,), "MaximumMinimumOptions")
    return b.finish(y)


@pytest.mark.parametrize("limit", [np.inf, np.nan, 2.5])
def test_a_limit_of_floats_is_no_integer(limit: float) -> None:
    assert prove(limited_to(limit), limited_to(limit)).status is Status.PROVED
    assert prove(limited_to(limit), limited_to(2.75)).status is Status.DIFFERENT


def test_infinity_is_no_real_number() -> None:
    assert not prove(summed_with(), summed_with(np.inf, -np.inf)).proved
    assert prove(summed_with(), summed_with(3e38, -3e38)).is_finite
    assert prove(summed_with(np.inf), summed_with(np.inf)).status is Status.PROVED


def divided(by: float) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (4,), F32), b.tensor("y", (4,), F32)
    b.operator("DIV", (x, b.constant("by", np.full(4, by, np.float32))), (y,), "DivOptions")
    return b.finish(y)


def test_zeros_of_both_signs_are_told_apart_where_a_function_may() -> None:
    assert prove(divided(0.0), divided(-0.0)).status is Status.DIFFERENT


def folded(is_folded: bool) -> Model:
    """A convolution and a sum behind it, or the sum as its bias: CONV_2D clamps what overflows to the largest float."""
    b = ModelBuilder()
    x, weights = b.input("x", (1, 2, 2, 1), F32), b.constant("w", np.full((1, 1, 1, 1), 3e38, np.float32))
    bias, fields = np.full(1, -3e38, np.float32), {"strideH": 1, "strideW": 1}
    y, z = b.tensor("y", x.shape, F32), b.tensor("z", x.shape, F32)
    operands = (x, weights, b.constant("b", bias)) if is_folded else (x, weights)
    b.operator("CONV_2D", operands, (y,), "Conv2DOptions", **fields)
    if is_folded:
        return b.finish(y)
    b.operator("ADD", (y, b.constant("b", bias)), (z,), "AddOptions")
    return b.finish(z)


def test_a_proof_of_finite_values_says_so_first() -> None:
    proof = prove(folded(False), folded(True))
    assert (proof.status, proof.is_finite) == (Status.PROVED, True)
    assert str(proof) == "proved for all inputs, for finite values that do not overflow"
    assert not prove(folded(False), folded(False)).is_finite


def test_other_interfaces_are_different() -> None:
    assert prove(weighted([1]), weighted([1, 2])).status is Status.DIFFERENT


def sliced(begin: int, size: int) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8))
    y = b.tensor("y", (1, 4))
    operands = (b.constant(name, np.asarray(v, np.int32)) for name, v in (("b", [0, begin]), ("s", [1, size])))
    b.operator("SLICE", (x, *operands), (y,), "SliceOptions")
    return b.finish(y)


@pytest.mark.parametrize(("begin", "size"), [(5, 4), (-1, 4), (-4, -1), (0, 9), (0, 3)])
def test_a_slice_outside_of_its_input_is_broken(begin: int, size: int) -> None:
    proof = prove(sliced(4, 4), sliced(begin, size))
    assert proof.status is Status.DIFFERENT
    assert proof.reason is not None
    assert "SLICE, 'y'" in proof.reason
    assert prove(sliced(begin, size), sliced(4, 4)).status is Status.UNKNOWN


def custom(codes: str, options: bytes = b"") -> Model:
    """Custom operators, one after the other, of two inputs."""
    b = ModelBuilder()
    x, z = b.input("x", (1, 4)), b.input("z", (1, 4))
    outputs = []
    for number, code in enumerate(codes):
        y = b.tensor(f"y{code}", (1, 4))
        b.operator("CUSTOM", ((x, z)[number % 2],), (y,))
        operator = b.graph.operators[-1]
        operator.opcode = replace(operator.opcode, custom_code=f"My{code}")
        operator.custom_options = np.frombuffer(options, np.uint8)
        outputs.append(y)
    return b.finish(*sorted(outputs, key=lambda tensor: tensor.name))


def test_custom_operators_are_functions_that_keep_their_order() -> None:
    assert prove(custom("A"), custom("A")).invocations is None
    assert prove(custom("A"), custom("B")).status is not Status.PROVED
    assert prove(custom("A"), custom("A", b"\1")).status is Status.DIFFERENT
    swapped = custom("AB")
    swapped.main.reorder((1, 0))
    assert prove(custom("AB"), swapped).status is Status.DIFFERENT


def test_another_first_state_is_different() -> None:
    changed = streaming_model()
    zeros = changed.graphs[1].operators[1].inputs[1]
    assert zeros is not None
    set_values(zeros, np.ones((1, 8), np.int8))
    assert prove(streaming_model(), changed).status is Status.DIFFERENT


def test_a_loop_over_values_is_the_function_of_its_subgraphs() -> None:
    changed = while_model()
    one = changed.graphs[2].operators[0].inputs[1]
    assert one is not None
    set_values(one, np.asarray([2**28], np.int32))
    assert prove(while_model(), while_model()).status is Status.PROVED
    assert prove(while_model(), changed).status is Status.DIFFERENT


def test_both_ways_of_an_unknown_condition_count() -> None:
    for number in (1, 2):
        changed = if_model()
        graph = changed.graphs[number]
        graph.outputs = (graph.operators[0].inputs[0],)  # type: ignore[assignment]
        assert prove(if_model(), changed).status is Status.DIFFERENT


def test_sequences_run_one_state_after_the_other() -> None:
    """An unknown number of invocations: by induction; and each one of a sequence against a chain that hands over."""
    model = streaming_model()

    def sequence(keys: Keys, notes: Notes) -> list[Any]:
        run = Run(model, keys, notes)
        return [y for at in range(3) for y in run.invoke(inputs_of(keys, model.main.inputs, at))]

    def handed_over(keys: Keys, notes: Notes) -> list[Any]:
        b = ModelBuilder()
        x, state = b.input("x", (1, 8)), b.input("state", (1, 8))
        step = b.finish(b.add(x, state))
        state_now: Any = np.zeros((1, 8), np.int8)
        found = []
        for at in range(3):
            (state_now,) = Run(step, keys, notes).invoke([*inputs_of(keys, model.main.inputs, at), state_now])
            found.append(state_now)
        return found

    assert prove_computed(sequence, handed_over).status is Status.PROVED


def test_parts_as_a_chain_are_the_whole() -> None:
    def whole() -> Model:
        b = ModelBuilder()
        x = b.input("x", (1, 6, 6, 3))
        a = b.conv(x, 4, kernel=3, seed=1)
        return b.finish(b.add(b.conv(a, 4, kernel=3, seed=2), a))

    def first() -> Model:
        b = ModelBuilder()
        return b.finish(b.conv(b.input("x", (1, 6, 6, 3)), 4, kernel=3, seed=1))

    def second(seed: int = 2) -> Model:
        b = ModelBuilder()
        a = b.input("a", (1, 6, 6, 4))
        return b.finish(b.add(b.conv(a, 4, kernel=3, seed=seed), a))

    def in_parts(seed: int) -> Callable[[Keys, Notes], Any]:
        def run(keys: Keys, notes: Notes) -> Any:
            parts = [Run(part, keys, notes) for part in (first(), second(seed))]
            return chained(parts, inputs_of(keys, whole().main.inputs))

        return run

    def alone(keys: Keys, notes: Notes) -> Any:
        return Run(whole(), keys, notes).invoke(inputs_of(keys, whole().main.inputs))

    assert prove_computed(alone, in_parts(2)).status is Status.PROVED
    assert prove_computed(alone, in_parts(3)).status is Status.DIFFERENT


def test_the_first_tensor_that_differs_is_named() -> None:
    proof = prove(*pair(two_branches, rescale))
    assert (proof.tensor, proof.operator, proof.outputs) == ("conv0", "CONV_2D", (0,))


def test_a_model_that_depends_on_what_memory_held_is_unknown() -> None:
    b = ModelBuilder()
    x, unwritten = b.input("x", (1, 8)), b.tensor("unwritten", (1, 8))
    model = b.finish(b.add(x, unwritten))
    proof = prove(model, copy_model(model))
    assert (proof.status, proof.tensor) == (Status.UNKNOWN, None)


def test_a_model_with_unknown_operators_is_unknown() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8)), b.tensor("y", (1, 8))
    b.operator("BUCKETIZE", (x,), (y,))
    model = b.finish(y)
    proof = prove(model, copy_model(model))
    assert proof.status is Status.UNKNOWN
    assert proof.reason is not None
    assert "BUCKETIZE" in proof.reason


def test_integers_in_place_of_floats_at_the_boundary_are_proved_if_asked() -> None:
    original = write_model(ALL["quantized_at_the_boundary"]())
    result = optimize(original, Options(verify=False, io="int8")).model
    models = read_model(original), read_model(result)
    assert models[1].main.inputs[0].dtype is I8
    assert prove(*models, converts=True).status is Status.PROVED
    assert prove(*models).status is Status.DIFFERENT
    models[1].main.inputs[0].quantization = per_tensor(0.051, 0)
    assert prove(*models, converts=True).status is Status.DIFFERENT


def test_weights_without_columns_are_not_proved() -> None:
    """LiteRT and TFLM run them, on none of the input."""
    b = ModelBuilder()
    y, weights = b.tensor("y", (1, 3)), b.constant("w", np.zeros((3, 0), np.int8), per_tensor(0.1, 0))
    b.operator("FULLY_CONNECTED", (b.input("x", (4, 2)), weights, None), (y,), "FullyConnectedOptions")
    model = b.finish(y)
    proof = prove(model, copy_model(model))
    assert (proof.status, "weights of shape [3, 0] do not fit" in str(proof)) == (Status.UNKNOWN, True)
