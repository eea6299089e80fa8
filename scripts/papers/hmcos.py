"""HMCOS's authors' code beside ours: built from a checkout of wzh99/HMCOS, and run on the plain graphs of Table II.

A graph goes to it as an ONNX file with one node for an operator: ``Concat`` for a concatenation, since there its cells
end, and ``Conv`` for all else, so that nothing counts as computed in place. Needs cmake, a C++ compiler, and the
headers of ONNX, protobuf, glog and fmt.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from scripts.benchmarks.kept_parts import KeptParts
from scripts.benchmarks.markdown_table import row, table
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.solvers.schedule.check import peak_of
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, memory_graph

from .as_printed.ilp_walk import order_from_outputs
from .claims import Rerun
from .graphs import files_in, plain_problem
from .ilp import NETWORKS
from .tables import PEAKS

SECONDS, GIGABYTES = 240, 3
"""What a run may spend: of the processor, and of memory."""
_FLAGS = r"-include memory -fpermissive -w -DDEFAULT_FONT=\"sans\" -DPYTHON_CMD=\"python3\""
_MENDS = (
    ("src/core/value.cpp", "t.field().begin()", "t.field().data()"),
    ("src/core/value.cpp", "t.field().end()", "t.field().data() + t.field().size()"),
    ("src/sched/sched.cpp", "relSeqs.insert(hier.opToSeq[", "if (!val->def.expired()) relSeqs.insert(hier.opToSeq["),
)
"""Iterators that newer protobufs do not cast to pointers; a network's input at the peak, which no operator makes."""
_BYTE = 2
"""ONNX's number of uint8: a tensor is so many bytes."""


@dataclass(frozen=True)
class Authors:
    """KB as they print them; None where a run came to no end. ``seconds``: wall time of their search, as they say."""

    rpo: int | None
    peak: int | None
    seconds: float | None
    ended: str


@dataclass(frozen=True)
class Beside:
    """One network: what the authors' code gives, and bytes of our reverse post-order, our `hmcos`, and the least peak.

    ``seconds``: processor time of our `hmcos`.
    """

    authors: Authors
    rpo: int
    ours: int
    seconds: float
    least: int


def built(source: Path, folder: Path) -> Path:
    """Their ``op_sched``, from a copy of the checkout. Raises CalledProcessError where it does not build."""
    if not (folder / "mended").exists():
        shutil.copytree(source, folder, dirs_exist_ok=True)
        for name, old, new in _MENDS:
            file = folder / name
            file.write_text(file.read_text().replace(old, new))
        (folder / "mended").touch()
    build = folder / "build"
    configure = [
        "cmake",
        "-S",
        str(folder),
        "-B",
        str(build),
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_FLAGS={_FLAGS}",
    ]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(build), "--target", "op_sched"], check=True, stdout=subprocess.DEVNULL)
    return build / "op_sched"


def onnx_text(problem: ScheduleProblem, concatenations: Collection[int]) -> Iterator[str]:
    """A graph in protobuf's text form; ``concatenations``: which of its steps are some."""
    made = {t for step in problem.steps for t in step.outputs}
    yield 'ir_version: 7 opset_import { version: 11 } graph { name: "g"'
    for number, step in enumerate(problem.steps):
        kind = "Concat" if number in concatenations else "Conv"
        ends = [f'input: "t{t}"' for t in step.inputs] + [f'output: "t{t}"' for t in step.outputs]
        yield f'node {{ name: "n{number}" op_type: "{kind}" {" ".join(ends)} }}'
    for t, size in enumerate(problem.sizes):
        place = "output" if t in problem.outputs else "value_info" if t in made else "input"
        shape = f"shape {{ dim {{ dim_value: {size} }} }}"
        yield f'{place} {{ name: "t{t}" type {{ tensor_type {{ elem_type: {_BYTE} {shape} }} }} }}'
    yield "}"


def run(program: Path, text: bytes, folder: Path, name: str) -> Authors:
    """Their search on one graph, within ``SECONDS`` and ``GIGABYTES``."""
    click.echo(f"{name}: the authors' code", err=True)
    encode = ["protoc", "--encode=onnx.ModelProto", "--proto_path=/usr/include", "/usr/include/onnx/onnx.proto"]
    file = folder / f"{name}.onnx"
    file.write_bytes(subprocess.run(encode, input=text, stdout=subprocess.PIPE, check=True).stdout)
    done = subprocess.run(
        [program, file, folder], capture_output=True, text=True, errors="replace", check=False, preexec_fn=_limit
    )
    said = done.stderr + done.stdout
    numbers = [re.search(pattern, said) for pattern in (r"RPO Peak: (\d+)", r"HMCOS Peak: (\d+)", r"(\d+) ms")]
    if done.returncode or not all(numbers):
        why = "memory" if "bad_alloc" in said else "time" if done.returncode < 0 else f"exit code {done.returncode}"
        return Authors(None, None, None, why)
    rpo, peak, milliseconds = (int(found[1]) for found in numbers if found)
    return Authors(rpo, peak, milliseconds / 1000, "")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))


def measured(sources: Sequence[Path], source: Path, folder: Path, kept: KeptParts) -> dict[str, Beside]:
    """The nine networks of Table II."""
    folder.mkdir(parents=True, exist_ok=True)
    program, files = built(source, folder / "hmcos"), files_in(sources)
    found = {}
    for name, zoo_name in NETWORKS.items():
        model = read_model(files[zoo_name].read_bytes())
        drop_dead_tensors(model)
        joins = {number for number, each in enumerate(model.main.operators) if each.name == "CONCATENATION"}
        raw = kept.part(f"{name}_hmcos", partial(_beside, name, plain_problem(model), joins, program, folder))
        found[name] = Beside(**raw | {"authors": Authors(**raw["authors"])})
    return found


def _beside(name: str, problem: ScheduleProblem, joins: Collection[int], program: Path, folder: Path) -> dict[str, Any]:
    authors = run(program, "\n".join(onnx_text(problem, joins)).encode(), folder, name)
    started = time.process_time()
    ours = solve(problem, "hmcos")
    seconds = time.process_time() - started
    rpo = peak_of(problem, order_from_outputs(memory_graph(problem)))
    return asdict(Beside(authors, rpo, ours.peak_bytes, seconds, solve(problem).peak_bytes))


def reruns(found: Mapping[str, Beside]) -> Iterator[Rerun]:
    """Table II's column of HMCOS, where the authors' code comes to an end."""
    for name, each in found.items():
        published = PEAKS[NETWORKS[name].removesuffix("_narrow")][2]
        peak = each.authors.peak
        shown = "no end" if peak is None else str(peak)
        holds = peak is not None and abs(peak / published - 1) <= _CLOSE
        reason = _no_end(name, each) if peak is None else _other_graph(each, published)
        yield Rerun(name, shown, f"{each.ours // 1024}", holds, peak, "" if holds else reason)


_CLOSE = 0.01


def _no_end(name: str, each: Beside) -> str:
    return (
        f"The run spent its {each.authors.ended} ({SECONDS} s of the processor, {GIGABYTES} GB) before it printed a "
        f"schedule. {name} as the TFLite converter writes it has no concatenation, so that their passes make no cells "
        "of it, and their dynamic program runs over the whole graph. The graph that they published figures of is not "
        f"at hand. The least peak of any order here is {each.least // 1024} KB, proved."
    )


def _other_graph(each: Beside, published: int) -> str:
    return (
        f"The graph is another one: their own code gives {each.authors.peak} KB here, and no order of this graph needs "
        f"less than {each.least // 1024} KB, proved. Its reverse post-order has {each.rpo // 1024} KB. So the "
        f"published {published} KB say nothing of the method that this run could confirm or refute."
    )


def tables(found: Mapping[str, Beside]) -> Iterator[str]:
    """The authors' code and ours, network by network."""
    yield _TEXT
    yield from table(
        "network | their rpo | ours | their schedule | our `hmcos` | least | their seconds | ours, seconds"
    )
    for name, each in found.items():
        authors = each.authors
        theirs = ("-", authors.ended, "-") if authors.peak is None else (authors.rpo, authors.peak, authors.seconds)
        ours = each.rpo // 1024, each.ours // 1024, each.least // 1024
        yield row(name, theirs[0], ours[0], theirs[1], ours[1], ours[2], theirs[2], f"{each.seconds:.2f}")
    yield _BUILDING


_TEXT = f"""## The authors' code and ours

wzh99/HMCOS at cf547ee. KB; seconds of the clock as their program prints them, and of the processor for ours. A run may
spend {SECONDS} s of the processor and {GIGABYTES} GB: where it came to no end, what it spent. Their graphs are ONNX
files with one node for an operator: `Concat` for a concatenation, since there their cells end, and `Conv` for all else,
so that nothing counts as computed in place.
"""
_BUILDING = """
It builds with GCC 12, ONNX 1.12 and protobuf 3.21 only with these changes, which `scripts/papers/hmcos.py` makes to a
copy: a header that it forgets (`memory`), a font and a Python command that it names for Windows and macOS only, a
member that is called like its type (`-fpermissive`), and pointers in place of two iterator casts. Without a guard it
ends with a segmentation fault where the peak holds the network's input, which no operator makes."""
