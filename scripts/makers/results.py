"""docs/results.md, its chart, and the table of README.md, made of docs/results/*.csv, which ``scripts/bench`` writes.

python -m scripts.makers.results
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scripts.benchmarks import ablations, faults, programs, recurrent, slide
from scripts.benchmarks.converters import COUNTED
from scripts.benchmarks.figures import ROOT, read
from scripts.benchmarks.markdown_table import row, table
from scripts.benchmarks.models import AFTER, BEFORE, READ_AFTER, READ_BEFORE, REFUSED, SLOWER
from scripts.benchmarks.others_published import published

PAGE, CHART, README = ROOT / "docs" / "results.md", ROOT / "docs" / "images" / "models.svg", ROOT / "README.md"
TARGETS = {"": "any kernels", "cortex-m4": "Cortex-M4, M7", "cortex-m55": "Cortex-M55", "esp32s3": "ESP32-S3"}
NUMBERS = ("float", "int8", "int16x8")
IN_README = {
    "mlperf_ic_int8": "MLPerf Tiny image classification",
    "tflm_person_detect": "TFLM person detection",
    "mlperf_vww_int8": "MLPerf Tiny visual wake words, of which 964 of 1,498 channels are dead",
    "mcunet_vww": "MCUNet visual wake words",
    "mlperf_kws_int8": "MLPerf Tiny keyword spotting",
}
KEPT_ASIDE = ("yolo", "mobilenet_v3", "convnext", "crnn", "denoiser", "_seed")
"""In the names of files of PyTorch that no rule is made on (scripts/zoo_networks/README.md)."""
_WIDTH, _NAMES, _LINE = 760, 260, 22


@dataclass(frozen=True)
class Run:
    """The figures of one run, by name."""

    model: str
    target: str
    options: str
    values: Mapping[str, str]

    def __call__(self, name: str) -> str:
        """A figure as a cell, grouped by thousands; empty where there is none."""
        value = self.values.get(name, "")
        return f"{int(value):,}" if re.fullmatch(r"-?\d+", value) else value

    def percent(self, name: str = SLOWER) -> str:
        """A change in percent, with its sign; empty where there is none."""
        return _signed(float(self.values[name]), 1) if name in self.values else self(name)

    def cut(self, after: str = AFTER) -> str:
        """Bytes after, and their change in percent; "refused" where there are none."""
        if after not in self.values:
            return "refused" if REFUSED in self.values else ""
        return f"{self(after)} ({self.share(after)})"

    def share(self, after: str = AFTER) -> str:
        """The change of bytes in percent."""
        change = 100 * (int(self.values[after]) / int(self.values[BEFORE]) - 1)
        return _signed(change, 0 if abs(change) >= 1 else 1)


def _signed(percent: float, digits: int) -> str:
    """Such as "-30%", and "0%" for what rounds to it."""
    return f"{percent:+.{digits}f}%" if round(percent, digits) else "0%"


def _runs(name: str) -> list[Run]:
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for figure in read(name):
        found.setdefault(figure.run, {})[figure.name] = figure.value
    return [Run(*key, values) for key, values in found.items()]


def _by_model(name: str) -> Mapping[str, Mapping[tuple[str, str], Run]]:
    """Runs by model, then by target and options."""
    found: dict[str, dict[tuple[str, str], Run]] = {}
    for run in _runs(name):
        found.setdefault(run.model, {})[run.target, run.options] = run
    return found


Columns = dict[str, Callable[[Run], str]]
"""What a run has in a column, by the heading."""
_MODEL: Columns = {"model": lambda run: run.model}
_TARGET: Columns = {"target": lambda run: run.target}
_BEFORE: Columns = {"as it came": lambda run: run(BEFORE)}


def _figure(name: str, run: Run) -> str:
    return run(name)


def _figures(names: Mapping[str, str]) -> Columns:
    """Columns that show figures, by heading."""
    return {heading: partial(_figure, name) for heading, name in names.items()}


def _table(runs: Iterable[Run], columns: Columns) -> Iterator[str]:
    """One row per run."""
    yield from table(" | ".join(columns))
    for run in runs:
        yield row(*(cell(run) for cell in columns.values()))


def versions(name: str) -> str:
    """The versions of the package that a table was measured with."""
    return ", ".join(dict.fromkeys(figure.version for figure in read(name)))


def _names(name: str) -> list[str]:
    """The names of a table's figures."""
    return list(dict.fromkeys(figure.name for figure in read(name)))


def models() -> Iterator[str]:
    """RAM by model and target."""
    yield from table(" | ".join(("model", "as it came", *TARGETS.values())))
    for model, runs in _by_model("models").items():
        by_target = {target: run for (target, _), run in runs.items()}
        cells = (by_target[target].cut() if target in by_target else "" for target in TARGETS)
        yield row(model, by_target["cortex-m4"](BEFORE), *cells)


def readme() -> Iterator[str]:
    """The table of README.md."""
    yield from table("model | original arena | optimized for Cortex-M4 or M7 (CMSIS-NN)")
    runs = {run.model: run for run in _runs("models") if run.target == "cortex-m4"}
    for model, name in IN_README.items():
        run = runs[model]
        yield row(name, run(BEFORE), f"{run.cut()} at {run.percent()} run time")


def people() -> Iterator[str]:
    """RAM of trained networks by type of numbers."""
    yield from table(" | ".join(("network", *NUMBERS)))
    runs = {run.model.removeprefix("people_"): run for run in _runs("people")}
    for network in dict.fromkeys(name.rpartition("_")[0] for name in runs):
        cells = (runs.get(f"{network}_{numbers}") for numbers in NUMBERS)
        yield row(network, *("" if run is None else run.cut() for run in cells))


def converters(is_aside: bool = False) -> Iterator[str]:
    """RAM of networks of PyTorch, and how many operators of a kind that only moves data there are.

    ``is_aside``: of those that no rule is made on, by name or by their seed.
    """

    def moved(kind: str) -> Callable[[Run], str]:
        return lambda run: f"{run(f'{kind} before')} -> {run(f'{kind} after')}" if f"{kind} after" in run.values else ""

    counts = {kind: moved(kind) for kind in COUNTED}
    named: Columns = {"proof": lambda run: run("proof"), "s": lambda run: run("processor, s")}
    runs = (run for run in _runs("converters") if not run.target and not run.options)
    plain = (run for run in runs if is_aside is _is_aside(run.model))
    return _table(plain, {**_MODEL, **_BEFORE, "RAM": Run.cut, **counts, **named})


def aside() -> Iterator[str]:
    """RAM of networks of PyTorch that no rule is made on."""
    return converters(is_aside=True)


def turned() -> Iterator[str]:
    """RAM and run time of networks of PyTorch for targets, and with channels last; sums of those that run in each."""
    by_model = _by_model("converters").items()
    found = {model: kept for model, runs in by_model if (kept := {case: runs[case] for case in runs if any(case)})}
    cases = list(dict.fromkeys(case for runs in found.values() for case in runs))
    yield from table(
        " | ".join(("model", *(f"{target or 'any kernels'} {options}".strip() for target, options in cases), "proof"))
    )
    for model, runs in found.items():
        cells = (
            f"{runs[case].cut()} at {runs[case].percent()}" if AFTER in runs[case].values else "refused"
            for case in cases
        )
        yield row(model, *cells, ", ".join({run("proof"): None for run in runs.values()}))
    for name, is_aside in (("sum", False), ("sum of those that no rule is made on", True)):
        summed = [runs for model, runs in found.items() if is_aside is _is_aside(model)]
        summed = [runs for runs in summed if all(AFTER in run.values for run in runs.values())]
        pairs = ([sum(int(runs[case].values[when]) for runs in summed) for when in (BEFORE, AFTER)] for case in cases)
        yield row(f"{name}, {len(summed)} files", *(f"{before:,} -> {after:,}" for before, after in pairs), "")


def _is_aside(model: str) -> bool:
    return any(name in model for name in KEPT_ASIDE)


def strangers() -> Iterator[str]:
    """RAM and run time of public files."""
    return _table(_runs("strangers"), {**_MODEL, **_BEFORE, "RAM": Run.cut, "run time": Run.percent})


def in_parts() -> Iterator[str]:
    """RAM and run time as one model, in parts, and fed, for Cortex-M7."""
    ways = {"as one": programs.AS_ONE, "in parts": programs.PARTS, "fed by rows": programs.FED}
    yield from table(" | ".join(("model", *_BEFORE, *ways)))
    by_model: dict[str, dict[str, Run]] = {}
    for run in _runs("programs"):
        if run.target == "cortex-m7":
            by_model.setdefault(run.model, {})[run.options.removesuffix("--no-verify").strip()] = run
    for model, runs in by_model.items():
        found = (runs.get(way) for way in ways.values())
        cells = ("-" if run is None or AFTER not in run.values else f"{run(AFTER)} {run.percent()}" for run in found)
        yield row(model, runs[programs.AS_ONE](BEFORE), *cells)


def against() -> Iterator[str]:
    """Figures that others publish of files that were measured here, and the least of ours counted the same way."""
    yield from table("file | other tool | theirs | ours as one, in parts | ours fed")
    for figure in published():
        name = {"all": AFTER, "tensors": programs.HEAD}.get(figure.counts, "")
        ours = [run for run in _runs("programs") if run.model == figure.network and name in run.values]
        ours = [run for run in ours if run.target != "cortex-m7"]
        if ours:
            theirs = f"{figure.bytes:,}{' t' if figure.counts == 'tensors' else ''}"
            split = [
                [int(run.values[name]) for run in ours if ("--feed" in run.options) == fed] for fed in (False, True)
            ]
            yield row(figure.network, figure.tool, theirs, *(f"{min(each):,}" if each else "-" for each in split))


def windows() -> Iterator[str]:
    """Sliding windows by hop."""

    def fed(run: Run) -> str:
        return f"{run(slide.FED)}, {run.percent(slide.FED_SLOWER)}" if slide.FED in run.values else "none"

    columns: Columns = {
        "hop of window": lambda run: f"{run.options.split()[1]} of {run(slide.WINDOW)}",
        **_BEFORE,
        "RAM per hop": Run.cut,
        "run time per hop": Run.percent,
        "right from call": lambda run: run(slide.CALLS),
        "RAM, run time with `--feed`": fed,
    }
    return _table((run for run in _runs("slide") if REFUSED not in run.values), _MODEL | columns)


def layers() -> Iterator[str]:
    """RAM and instructions of networks with one recurrent layer, the sequence in one call and one step per call."""

    def in_a_call(run: Run) -> str:
        return f"{run(AFTER)} in {int(run.values[recurrent.INSTRUCTIONS]) / 1e6:.2f} M"

    yield from table("network | as it came | the sequence in one call | one step per call, `--step`")
    for model, runs in _by_model("recurrent").items():
        whole, step = runs.values()
        came = whole(BEFORE) if whole.values[recurrent.BEFORE_RUNS] == "yes" else "does not run"
        yield row(f"`{model}`", came, in_a_call(whole), in_a_call(step))


def executed() -> Iterator[str]:
    """Estimated and executed instructions."""
    columns: Columns = {
        "RAM": Run.cut,
        "estimated": lambda run: run.percent("instructions estimated, %"),
        "executed": lambda run: run.percent("instructions executed, %"),
    }
    return _table(_runs("executed"), _MODEL | _TARGET | columns)


def read_weights() -> Iterator[str]:
    """Weights read and run time added on chips that execute from slow flash; models whose weights take 50 KB."""
    chips = {"esp32s3": "ESP32-S3", "pico": "Raspberry Pi Pico"}
    yield from table(" | ".join(("model", *(f"{chip}: weights; run time" for chip in chips.values()))))
    for model, runs in _by_model("models").items():
        found = [run for (target, _), run in runs.items() if target in chips]
        if found and all(int(run.values[READ_BEFORE]) >= 50_000 for run in found):
            yield row(model, *(f"{run(READ_BEFORE)} -> {run(READ_AFTER)}; {run.percent()}" for run in found))


def devices() -> Iterator[str]:
    """What ran on TFLM built for cores."""
    return _table(_runs("devices"), _MODEL | _figures({name: name for name in _names("devices")}))


def met() -> Iterator[str]:
    """Operators that meet faults of kernel libraries."""
    names = {"as it comes": faults.MET, "as written": faults.LEFT, "RAM": AFTER, "RAM if not known": faults.UNAWARE}
    return _table((run for run in _runs("faults") if faults.MET in run.values), _MODEL | _TARGET | _figures(names))


def tools() -> Iterator[str]:
    """What other tools say."""
    return _table(_runs("tools"), _MODEL | _figures({name: name for name in _names("tools")}))


def tail() -> Iterator[str]:
    """The tail by kind, before/after."""

    def pair(kind: str, run: Run) -> str:
        return f"{run(f'{kind} before, bytes')}/{run(f'{kind} after, bytes')}"

    kinds = [name.removesuffix(" before, bytes") for name in _names("tail") if name.endswith(" before, bytes")]
    columns: Columns = {kind: partial(pair, kind) for kind in kinds}
    return _table(_runs("tail"), _MODEL | columns | _figures({"least": "least, bytes"}))


def without() -> Iterator[str]:
    """RAM with all mechanisms, and the percent more without one."""

    def more(name: str, run: Run) -> str:
        part = int(run.values[f"{ablations.WITHOUT}{name}, bytes"])
        return "" if f"{part}" == run.values[AFTER] else f"{100 * (part / int(run.values[AFTER]) - 1):+.1f}%"

    names: Columns = {f"without {name}": partial(more, name) for name in ablations.MECHANISMS}
    return _table(_runs("ablations"), _MODEL | _BEFORE | _figures({"all": AFTER}) | names)


def constants() -> Iterator[str]:
    """Numbers that searches are tuned by: those of which half or twice changes the RAM of the networks."""
    changes = {name: name for name in _names("constants") if name.endswith("RAM, %")}
    runs = (run for run in _runs("constants") if any(float(run.values[name]) for name in changes))
    of: Columns = {"constant": lambda run: f"`{run.model}`", "networks": lambda run: run.options.split(", ")[1]}
    return _table(runs, of | _figures({"value": "value"} | changes))


def proofs() -> Iterator[str]:
    """Networks that were proved."""
    return _table(_runs("proofs"), _MODEL | _figures({name: name for name in _names("proofs")}))


def attacks() -> Iterator[str]:
    """Attacks on the checker of the proof."""
    return _table(_runs("attacks"), _MODEL | _figures({name: name for name in _names("attacks")}))


TABLES = (
    *(
        models,
        people,
        strangers,
        converters,
        aside,
        turned,
        layers,
        in_parts,
        windows,
        executed,
        read_weights,
        devices,
        met,
        against,
        tools,
    ),
    *(proofs, attacks, tail, without, constants),
)


def page() -> str:
    """The text of the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.globals |= {each.__name__: lambda each=each: "\n".join(each()) for each in TABLES}
    environment.globals["versions"] = versions
    environment.globals["constant_count"] = lambda: len({run.model for run in _runs("constants")})
    return environment.get_template("results.md.jinja").render()


def readme_with_table() -> str:
    """README.md with its table of results as the data have it."""
    before, heading, after = README.read_text().partition("\n## Results\n\n")
    _, blank, rest = after.partition("\n\n")
    return before + heading + "\n".join(readme()) + blank + rest


def chart() -> str:
    """Bars of the RAM after optimization, as a share of that before, for a Cortex-M4; the least share first."""
    runs = [run for run in _runs("models") if run.target == "cortex-m4"]
    shares = {run.model: int(run.values[AFTER]) / int(run.values[BEFORE]) for run in runs}
    ordered = sorted(shares, key=lambda model: shares[model])
    height = _LINE * (len(ordered) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        'font-size="13">',
        "<title>RAM after optimization for a Cortex-M4, in percent of the RAM before</title>",
    ]
    for number, model in enumerate(ordered):
        top, whole = _LINE * number + 4, _WIDTH - _NAMES - 60
        lines += [
            f'<text x="0" y="{top + 13}" fill="#444">{escape(model)}</text>',
            f'<rect x="{_NAMES}" y="{top}" width="{whole}" height="16" fill="#d8dee6"/>',
            f'<rect x="{_NAMES}" y="{top}" width="{whole * shares[model]:.1f}" height="16" fill="#2f6f9f"/>',
            f'<text x="{_NAMES + whole + 8}" y="{top + 13}" fill="#444">{100 * shares[model]:.0f} %</text>',
        ]
    return "\n".join((*lines, "</svg>", ""))


def main() -> None:
    """Write the page, the chart, and the table of README.md."""
    PAGE.write_text(page())
    README.write_text(readme_with_table())
    CHART.write_text(chart())


if __name__ == "__main__":
    main()
