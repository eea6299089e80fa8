"""Rewriting measured: docs/benchmarks/rewrite.md, beside SERENITY's Figures 10, 12 and 13."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from scripts.makers.runs import run_models
from scripts.papers.tables import REWRITING
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.change import EXACTNESS, Exactness
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.head import in_head
from tflite_memopt.ir.model import Model, Operator
from tflite_memopt.memory.in_force import head_in_force
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.schedule_problem import schedule_problem
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.report.model import Report
from tflite_memopt.rewrite.pattern import match_at
from tflite_memopt.rewrite.rule import Proposal
from tflite_memopt.rewrite.rules.subsampled_slice import SUBSAMPLED_SLICE
from tflite_memopt.rewrite.table import SPLITS
from tflite_memopt.schedule.methods import solve

from .cells import cells_of
from .markdown_table import row, table
from .networks import named
from .rewrite_differences import differences

NETWORKS = (
    *("swiftnet", "darts_cell", "darts", "randwire1", "randwire2", "randwire3"),
    *("nasnet", "amoebanet", "inception_v3"),
    *("darts_cifar_s1_f8", "nasnet_cifar_s1_f8", "amoebanet_cifar_s1_f8"),
)
IN_CELLS = ("swiftnet", "randwire1", "randwire2", "randwire3")
"""Those that stand for networks of the paper's Table 1, which measures their cells; ``darts_cell`` is one already."""
RULES = (*SPLITS, SUBSAMPLED_SLICE)
"""Those that are there for memory; the others of the clean-up are not counted as patterns."""
INTEGERS = (DType.INT8, DType.INT16)


@dataclass(frozen=True)
class Ordered:
    """A model in the order of smallest peak: that peak, the head under TFLM's own planner, and the search's time."""

    peak: int
    stock_head: int
    operators: int
    seconds: float


@dataclass(frozen=True)
class Head:
    """Bytes of TFLM's head, as TFLM says itself or, where it does not load the model, as predicted."""

    size: int
    measured: bool

    def __str__(self) -> str:
        return f"{self.size:,}{'' if self.measured else ' (p)'}"


@dataclass(frozen=True)
class Run:
    """One network, or one cell of it, in one mode. ``patterns``: operators that a rule of ``RULES`` fits at once."""

    name: str
    mode: str
    patterns: int
    own_peak: int
    plain: Ordered
    rewritten: Ordered
    stock: Head
    planned: Head
    final: Head
    seconds: float
    report: Report

    @property
    def label(self) -> str:
        return f"{self.name}, {self.mode}"

    @property
    def extra(self) -> float:
        """How many times smaller rewriting makes the head of order and plan."""
        return self.planned.size / self.final.size

    @property
    def reduction(self) -> float:
        """How many times smaller than in TFLite's order with TFLM's planner."""
        return self.stock.size / self.final.size


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--kernels", default="portable", show_default=True, help="Kernel profile.")
@click.option("--time-limit", default=60.0, show_default=True, help="Seconds for each search.")
@click.option("--samples", default=1, show_default=True, help="Inputs on which equality is proved; 0: none.")
def rewrite(sources: tuple[Path, ...], output: Path | None, kernels: str, time_limit: float, samples: int) -> None:
    """Peak memory with and without rewriting, of the networks among SOURCES (files, or folders of .tflite)."""
    flags = f"--kernels {kernels} --time-limit {time_limit:g} --samples {samples}"
    command = f"scripts/bench rewrite {' '.join(map(named, sources))} {flags}"
    runs: list[Run] = []
    options = Options(kernels=kernels, time_limit=time_limit, objective="head", samples=samples, cascade=False)
    for run in _all_runs(_files(sources), options):
        runs.append(run)
        if output is not None:  # after each, since all of them take long
            output.write_text("\n".join(_document(runs, command)) + "\n")
    if output is None:
        click.echo("\n".join(_document(runs, command)))


def _all_runs(files: Sequence[Path], options: Options) -> Iterator[Run]:
    """The networks, then the cells of those that have cells."""
    for file in files:
        yield from _runs(file.stem, file.read_bytes(), options)
    for file in files:
        if file.stem.removesuffix("_int8") in IN_CELLS:
            for letter, cell in cells_of(file.read_bytes()):
                yield from _runs(f"{file.stem} {letter}", cell, options)


def _files(sources: Sequence[Path]) -> list[Path]:
    """The files of the networks, float before int8, in the order of ``NETWORKS``."""
    found = [file for path in sources for file in (path.glob("*.tflite") if path.is_dir() else [path])]
    by_stem = {file.stem: file for file in found}
    return [by_stem[stem] for name in NETWORKS for stem in (name, f"{name}_int8") if stem in by_stem]


def _runs(name: str, data: bytes, options: Options) -> Iterator[Run]:
    """A float model once; an integer one by exact rules alone, and by all."""
    if not any(in_head(tensor) and tensor.dtype in INTEGERS for tensor in read_model(data).main.tensors):
        yield _run(name, "float", data, options)
        return
    name = name.replace("_int8", "")
    yield _run(name, "int8, exact only", data, options)
    yield _run(name, "int8, --allow-approximate", data, replace(options, allow_approximate=True))


def _run(name: str, mode: str, data: bytes, options: Options) -> Run:
    click.echo(f"{name}, {mode}", err=True)
    plain = optimize(data, replace(options, rewrite=False, verify=False))
    final = optimize(data, replace(options, verify=options.samples > 0))
    model = read_model(data)
    before, after = plain.report.before, final.report.after
    measured = _heads({"stock": data, "planned": plain.model, "final": final.model}, model)
    problem = schedule_problem(model.main, memory_layout(model, options.profile))
    return Run(
        name=name,
        mode=mode,
        patterns=_patterns(model, EXACTNESS if options.allow_approximate else EXACTNESS[:2]),
        own_peak=solve(problem, "as_is").peak_bytes,
        plain=_ordered(read_model(plain.model), options),
        rewritten=_ordered(read_model(final.model), options),
        stock=measured.get("stock", Head(before.arena_bytes, False)),
        planned=measured.get("planned", Head(plain.report.after.arena_bytes, False)),
        final=measured.get("final", Head(after.arena_bytes, False)),
        seconds=final.report.timing["rewrite"],
        report=final.report,
    )


def _ordered(model: Model, options: Options) -> Ordered:
    """Of a model without an offline plan: the plan in the file is not looked at."""
    profile = options.profile
    problem = schedule_problem(model.main, memory_layout(model, profile))
    # The file is in a good order already: where the search is out of time, that one stays.
    found = (solve(problem, "as_is"), solve(problem, limit=SearchLimit(options.time_limit)))
    schedule = min(reversed(found), key=lambda each: each.peak_bytes)
    model.main.reorder(schedule.order)
    head = head_in_force(memory_layout(model, profile), {})
    return Ordered(schedule.peak_bytes, head, len(model.main.operators), schedule.seconds)


def _heads(models: Mapping[str, bytes], largest: Model) -> dict[str, Head]:
    """TFLM's own figures of those that it loads; nothing is run."""
    found = run_models("tflm", models, [], 2 * arena_for(largest))
    return {name: Head(run.facts["head"], True) for name, run in found.items() if run.ran}


def _patterns(model: Model, allowed: Collection[Exactness]) -> int:
    return sum(_has_pattern(model, operator, allowed) for operator in model.main.operators)


def _has_pattern(model: Model, operator: Operator, allowed: Collection[Exactness]) -> bool:
    matches = ((rule, match_at(rule.pattern, model.main, operator)) for rule in RULES)
    proposals = (rule.propose(match) for rule, match in matches if match is not None)
    return any(isinstance(each, Proposal) and each.exactness in allowed for each in proposals)


def _document(runs: Sequence[Run], command: str) -> Iterator[str]:
    yield "# Graph rewriting\n"
    yield f"Made by `{command}`. Bytes; `(p)`: predicted, TFLM does not load that model. The objective is the head;"
    yield "cascading is off."
    yield "Patterns are operators behind a channel concatenation that a rule would take apart at once, and pointwise"
    yield "ones that skip pixels of a slice; where there are none, the network does not count in the means of what"
    yield "rewriting gains."
    yield "The paper measures cells, since in a whole network a stem of large images may need the most: so cells A, B"
    yield "and C are what is between two tensors through which everything passes, as models of their own.\n"
    yield from _without_allocator(runs)
    yield from _with_allocator(runs)
    yield from _means(runs)
    yield from _scheduling(runs)
    yield from differences((run.label, run.report) for run in runs)


def _without_allocator(runs: Sequence[Run]) -> Iterator[str]:
    published = REWRITING["peak"]
    yield "## Without the allocator: the largest working set (Figure 12 b)\n"
    yield f"Published for SwiftNet's cell A: best order {published[0]} KB, with rewriting {published[1]} KB.\n"
    yield from table("network | patterns | TFLite's order | best order | + rewriting | extra reduction")
    for run in runs:
        gain = 100 * (1 - run.rewritten.peak / run.plain.peak)
        yield row(run.label, run.patterns, run.own_peak, run.plain.peak, run.rewritten.peak, f"{gain:.1f} %")
    yield ""


def _with_allocator(runs: Sequence[Run]) -> Iterator[str]:
    published = REWRITING["arena"]
    yield "## With the allocator: TFLM's head (Figures 10 and 12 a)\n"
    yield f"Published for SwiftNet's cell A: TensorFlow Lite {published[0]} KB, best order {published[1]} KB, with"
    yield f"rewriting {published[2]} KB.\n"
    yield from table(
        "network | TFLite's order, TFLM's planner | best order, TFLM's planner | best order + plan | + rewriting |"
        " extra reduction | stock / rewritten | equal"
    )
    for run in runs:
        cells = (run.stock, Head(run.plain.stock_head, False), run.planned, run.final)
        gain = f"{100 * (1 - 1 / run.extra):.1f} %"
        yield row(run.label, *cells, gain, f"{run.reduction:.2f}", _verification(run.report))
    yield ""


def _verification(report: Report) -> str:
    words = {True: "yes", False: "NO", None: "-"}
    return ", ".join(f"{name} {words[verdict.equal]}" for name, verdict in report.equivalence.items()) or "not run"


def _means(runs: Sequence[Run]) -> Iterator[str]:
    factors = REWRITING["factor"]
    yield "## Geometric means\n"
    yield f"Published: {factors[0]} times smaller than TensorFlow Lite by order alone, {factors[1]} times with"
    yield f"rewriting, which is {100 * (factors[1] / factors[0] - 1):.1f} % on top. `planned / rewritten` is that"
    yield "second step here, over the networks with patterns; `stock / rewritten` is over all.\n"
    yield from table("networks | with patterns | planned / rewritten | extra reduction | stock / rewritten")
    for title, chosen in _groups(runs):
        with_patterns = [run.extra for run in chosen if run.patterns]
        extra = _mean(with_patterns)
        yield row(
            f"{title} ({len(chosen)})",
            len(with_patterns),
            f"{extra:.3f}",
            f"{100 * (1 - 1 / extra):.1f} %",
            f"{_mean([run.reduction for run in chosen]):.2f}",
        )
    yield ""


def _groups(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """Of each mode the whole networks, then the cells."""
    for mode in dict.fromkeys(run.mode for run in runs):
        for title, is_cell in (("networks", False), ("cells", True)):
            chosen = [run for run in runs if run.mode == mode and (_is_cell(run) == is_cell)]
            if chosen:
                yield f"{title}, {mode}", chosen


def _is_cell(run: Run) -> bool:
    return " " in run.name or run.name == "darts_cell"


def _mean(factors: Sequence[float]) -> float:
    return statistics.geometric_mean(factors) if factors else 1.0


def _scheduling(runs: Sequence[Run]) -> Iterator[str]:
    seconds = REWRITING["seconds"]
    yield "## Scheduling time (Figure 13)\n"
    yield f"Published, on average: {seconds[0]} s without rewriting and {seconds[1]} s with it; SwiftNet grows from"
    yield "62 to 92 nodes. Seconds are wall time of the search for the order, and of the search for what to rewrite.\n"
    yield from table("network | operators | rewritten | seconds | rewritten | seconds for rewriting | rules")
    for run in runs:
        plain, after = run.plain, run.rewritten
        counts = (plain.operators, after.operators, f"{plain.seconds:.3f}", f"{after.seconds:.3f}")
        yield row(run.label, *counts, f"{run.seconds:.1f}", _rules_used(run.report))
    yield ""


def _rules_used(report: Report) -> str:
    """Names of the rules, in the order in which they were first used."""
    names = (use.rule for use in report.rewrites if use.rule not in ("dead_tensors", "share_constants"))
    return ", ".join(dict.fromkeys(names)) or "-"
