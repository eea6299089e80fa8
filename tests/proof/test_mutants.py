"""Changed results: what is proved all the same computes the same on LiteRT and TFLM."""

from __future__ import annotations

import random

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from scripts.fuzzing import judge, streams
from scripts.fuzzing.mutants import mutant, packed, root_of, sites_of
from scripts.fuzzing.plans import planned
from scripts.fuzzing.proofs import Attack, attacked, attacked_plans, attacked_streams
from tests.memory.loops import looped, plain
from tests.profiles import share
from tests.test_random_models import random_model
from tests.tflm import needs_wheel
from tflite_memopt.evidence.proof import Proof, Status, prove
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.problems import labeled_ties, tie_positions
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Buffer, Model
from tflite_memopt.search.cascade.loop import LoopForm


@pytest.mark.parametrize("form", ["clamped", "masked"])
def test_a_loop_is_proved(form: LoopForm) -> None:
    assert prove(plain(), looped(form)).status is Status.PROVED


def test_a_loop_that_never_ends_is_broken() -> None:
    changed = looped("masked")
    (tensor,) = (tensor for tensor in changed.graphs[2].tensors if tensor.name == "next")
    tensor.buffer = Buffer(np.zeros(tensor.nbytes, np.uint8))
    proof = prove(plain(), changed)
    assert proof.status is Status.DIFFERENT
    assert "never ends" in str(proof)


def test_loops_over_other_rows_are_proved() -> None:
    for rows in (1, 2, 3):
        assert prove(plain(), looped("clamped", rows)).status is Status.PROVED


@pytest.mark.parametrize("name", ["masked", "random"])
def test_every_field_of_the_schema_is_changed(name: str) -> None:
    """Fields are those of the tables that are in a file, whatever they hold."""
    root = root_of(write_model(looped("masked") if name == "masked" else random_model(3)))
    sites = sites_of(root)
    tables = {"ModelT", "SubGraphT", "OperatorT", "OperatorCodeT", "TensorT", "BufferT", "QuantizationParametersT"}
    for table in tables:
        fields = set(vars(getattr(schema, table)()))
        assert {site.name for site in sites if site.table == table} == fields, table
    assert len(sites) == len(set(sites))


@pytest.mark.slow
def test_a_mutant_is_one_field_and_the_model_stays() -> None:
    data = write_model(random_model(3))
    root, draw = root_of(data), random.Random(0)
    sites, first = sites_of(root), packed(root)
    count = share(200)
    files = [found[1] for _ in range(count) if (found := mutant(root, sites, draw)) is not None]
    assert packed(root) == first
    assert len(set(files)) > count // 2


@pytest.mark.slow
@needs_wheel
def test_no_mutant_that_computes_otherwise_is_proved() -> None:
    counts = attacked(Attack(seed=5, samples=share(24), seconds=1e9, keep=None), share(300))
    assert counts.false == []
    assert counts.ends["proved"] > share(50)
    assert counts.ends["different"] > share(20)


@pytest.mark.slow
@needs_wheel
def test_no_stream_that_computes_otherwise_is_proved() -> None:
    """Of every sort: hops, steps, parts, and what is fed; fields, labels, and manifests."""
    counts = attacked_streams(Attack(seed=5, samples=3, seconds=1e9, keep=None), 300)
    assert counts.false == []
    assert {kind for kind, count in counts.proved.items() if count} == {"slide", "step", "parts", "fed"}
    assert {each.split(" ")[0] for each in counts.fields} >= {"label", "end", "program.json", "part"}
    assert min(counts.ends[end] for end in ("refused", "different", "differs", "proved")) > 5


@pytest.mark.slow
@needs_wheel
def test_a_false_stream_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every result is proved, the runtimes and the files themselves say otherwise."""
    monkeypatch.setattr(streams, "judged_calls", lambda *_: (Proof(Status.PROVED), ()))
    counts = attacked_streams(Attack(seed=6, samples=3, seconds=1e9, keep=None), 60)
    assert any("is another one in the file" in each for each in counts.false)
    assert any("differs" in each or "does not run" in each for each in counts.false)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "field"),
    [
        ("ModelT", "externalBuffers"),
        ("BufferT", "offset"),
        ("QuantizationParametersT", "details"),
        ("TensorT", "variantTensors"),
        ("OperatorT", "builtinOptions2"),
        ("OperatorT", "intermediates"),
        ("SubGraphT", "debugMetadataIndex"),
    ],
)
def test_what_a_file_does_not_have_is_made_by_its_type(table: str, field: str) -> None:
    root, draw = root_of(write_model(random_model(3))), random.Random(0)
    sites = [each for each in sites_of(root) if (each.table, each.name) == (table, field)]
    before = packed(root)
    made = [found[1] for _ in range(share(20)) if (found := mutant(root, sites, draw)) is not None]
    held = getattr(getattr(schema, table)(), field)
    assert any(data != before for data in made)
    assert all(root_of(data) is not None for data in made)
    assert held in (None, 0, -1)


@pytest.mark.slow
@needs_wheel
def test_no_plan_that_computes_otherwise_is_proved() -> None:
    """Of every sort: chains, loops, and what is tied, fed in rows, or in parts."""
    counts = attacked_plans(Attack(seed=5, samples=3, seconds=1e9, keep=None), 300)
    assert counts.false == []
    assert counts.ends["different"] > 50
    sorts = {kind.split(",")[0] for kind, count in counts.proved.items() if count}
    assert sorts >= {"tied", "fed", "part 1", "chain of layers", "loop", "rows", "cells", "while_model"}


@pytest.mark.slow
def test_a_tie_is_kept_in_the_file_that_has_it() -> None:
    """The plan of a file is proved with the ties that it was made with: one end alone is nowhere else."""
    tied = next(each for each in planned(0, 0) if each.kind.startswith("tied"))
    assert tied.proof(tied.data).status is Status.PROVED
    step = read_planned(tied.data)
    output, source = (side[at] for side, at in zip((step.main.outputs, step.main.inputs), _tie(step), strict=True))
    ways = [(said.split(" to ")[0].count("'"), said, data) for said, data in tied.moved(random.Random(0))]
    alone = [data for quotes, said, data in ways if quotes == 2 and f"'{output.name}'" in said]
    both = [data for quotes, said, data in ways if quotes == 4 and f"'{source.name}'" in said]
    assert {tied.proof(data).status for data in alone} == {Status.DIFFERENT}
    assert Status.PROVED in {tied.proof(data).status for data in both}


def _tie(step: Model) -> tuple[int, int]:
    return tie_positions(step, labeled_ties(step))[0]


@needs_wheel
def test_a_false_proof_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the proof says that what differs is equal, the runtimes do not. What is unknown is not given to them."""

    def false(*models: Model) -> Proof:
        found = prove(*models)
        return Proof(Status.PROVED) if found.status is Status.DIFFERENT else found

    monkeypatch.setattr(judge, "prove", false)
    counts = attacked(Attack(seed=5, samples=4, seconds=1e9, keep=None), 60)
    assert any("differs" in each for each in counts.false)
