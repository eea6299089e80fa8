"""Storages, atoms and the relations of an order: what views come to for the planner and the scheduler."""

from __future__ import annotations

from tests.model_builder import ModelBuilder
from tflite_memopt.kernels.profiles import PORTABLE, REFERENCE
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.memory.storage import cut_into_atoms, saved_bytes, storages
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Graph, Tensor
from tflite_memopt.operators.reuse import KernelReuse
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize
from tflite_memopt.solvers.plan.problem import Relation
from tflite_memopt.solvers.schedule.methods import solve


def rows(b: ModelBuilder, name: str, count: int) -> Tensor:
    return b.input(name, (1, count, 4, 16))


def views_of(graph: Graph) -> list[KernelReuse]:
    return [reuse for operator in graph.operators for reuse in PORTABLE.relations(operator)]


def test_parts_of_a_concatenation_lie_in_it() -> None:
    b = ModelBuilder()
    parts = [rows(b, f"x{n}", n) for n in (1, 2)]
    joined = b.concat(parts, axis=1)
    (storage,) = storages(views_of(b.finish(joined).main))
    assert storage.keys() == {joined, *parts}
    assert [storage[part] - storage[joined] for part in parts] == [0, 64]


def test_two_concatenations_cannot_both_hold_a_shared_input() -> None:
    """Their other parts would lie on the same bytes and differ."""
    b = ModelBuilder()
    shared, first, second = (rows(b, name, 2) for name in ("shared", "first", "second"))
    one, two = b.concat((shared, first), axis=1), b.concat((shared, second), axis=1)
    found = storages(views_of(b.finish(one, two).main))
    assert len(found) == 2
    assert not any(one in storage and two in storage for storage in found)


def test_a_tensor_joined_with_itself_is_one_part_of_it() -> None:
    b = ModelBuilder()
    x = rows(b, "x", 2)
    joined = b.concat((x, x), axis=1)
    (storage,) = storages(views_of(b.finish(joined).main))
    assert storage[x] - storage[joined] in (0, 128)


def test_atoms_count_shared_bytes_once() -> None:
    """Two reshapes of one tensor, and a concatenation of what an operator made of each half."""
    b = ModelBuilder()
    x = rows(b, "x", 4)
    flat, tall = b.reshape(x, (16, 16)), b.reshape(x, (1, 16, 1, 16))
    model = b.finish(flat, tall)
    layout = memory_layout(model, PORTABLE)
    atoms = cut_into_atoms([x, flat, tall], layout.reuses)
    assert (atoms.sizes, set(atoms.of.values()), atoms.source) == ((256,), {(0,)}, (x,))
    problem = schedule_problem(model.main, layout)
    assert solve(problem).peak_bytes == 256
    pairs = {(r.first, r.second, r.distance, r.exact) for r in layout.problem.relations}
    assert len(pairs) == 3
    assert all(distance == 0 and exact for _, _, distance, exact in pairs)


def test_a_view_is_read_after_it_was_made() -> None:
    b = ModelBuilder()
    x = rows(b, "x", 4)
    flat = b.reshape(x, (1, 4, 4, 16))
    model = b.finish(b.conv(flat, 4), b.conv(x, 8))
    problem = schedule_problem(model.main, memory_layout(model, PORTABLE))
    assert problem.steps[1].after == (0,)
    assert problem.steps[2].after == ()


def test_an_input_with_a_later_reader_is_not_overwritten() -> None:
    b = ModelBuilder()
    x = rows(b, "x", 4)
    y = b.tensor("y", x.shape)
    b.operator("RELU", (x,), (y,))
    model = b.finish(y, b.add(x, y))
    relations = memory_layout(model, REFERENCE).problem.relations
    numbers = {t: n for n, t in enumerate(memory_layout(model, REFERENCE).tensors)}
    assert not [r for r in relations if {r.first, r.second} == {numbers[x], numbers[y]}]
    assert Relation(numbers[x], numbers[model.main.outputs[1]], 0, True) in relations


def test_an_output_of_the_graph_is_not_overwritten_by_the_last_operator() -> None:
    b = ModelBuilder()
    x = rows(b, "x", 4)
    first = b.conv(x, 16, seed=1)
    last = b.tensor("last", first.shape)
    b.operator("RELU", (first,), (last,))
    model = b.finish(first, last)
    relations = memory_layout(model, REFERENCE).problem.relations
    numbers = {t: n for n, t in enumerate(memory_layout(model, REFERENCE).tensors)}
    assert not [r for r in relations if {r.first, r.second} == {numbers[first], numbers[last]}]
    report = optimize(write_model(model), Options(kernels="reference", runtimes=("tflm",), samples=3)).report
    assert report.equivalence["tflm"].equal


def test_saved_bytes_are_those_of_the_best_place() -> None:
    def reuse(first: int, second: int, distance: int, kind: str = "overlap") -> KernelReuse:
        b = ModelBuilder()
        a, c = b.tensor("a", (first,), DType.INT8), b.tensor("c", (second,), DType.INT8)
        return KernelReuse(a, c, distance, kind)  # type: ignore[arg-type]

    assert saved_bytes(reuse(160, 160, 0, "in-place")) == 160
    assert saved_bytes(reuse(160, 160, 20)) == 160 - 32
    assert saved_bytes(reuse(64, 256, 192)) == 64
    assert saved_bytes(reuse(256, 64, -32)) == 64
    assert saved_bytes(reuse(64, 64, 64)) == 0


def test_reference_kernels_share_and_the_report_says_so() -> None:
    b = ModelBuilder()
    x = rows(b, "x", 16)
    y = b.conv(b.depthwise(b.conv(x, 16, seed=1), seed=2), 16, seed=3)
    data = write_model(b.finish(y))
    portable = optimize(data, Options(verify=False)).report
    report = optimize(data, Options(kernels="reference", runtimes=("tflm",), samples=3)).report
    assert report.after.arena_bytes < portable.after.arena_bytes == 2 * 1024
    assert report.after.tflm["head"] == report.after.arena_bytes
    assert report.equivalence["tflm"].equal
    assert {use.kind for use in report.sharing} == {"overlap"}
    assert any("links these kernels" in warning for warning in report.warnings)
    assert portable.sharing == ()
