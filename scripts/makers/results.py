"""docs/results.md and its chart, made of docs/results/*.csv; ``scripts/bench NAME`` writes these.

python -m scripts.makers.results
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scripts.benchmarks.figures import ROOT, Figure, read
from scripts.benchmarks.markdown_table import row, table
from scripts.benchmarks.models import AFTER, BEFORE, READ_AFTER, READ_BEFORE, SLOWER

PAGE, CHART = ROOT / "docs" / "results.md", ROOT / "docs" / "images" / "models.svg"
TARGETS = {"": "any kernels", "cortex-m4": "Cortex-M4, M7", "cortex-m55": "Cortex-M55", "esp32s3": "ESP32-S3"}
_WIDTH, _NAMES, _LINE = 760, 260, 22


def page() -> str:
    """The text of the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.globals |= {"rows": rows, "pairs": pairs, "versions": versions, "read_weights": read_weights}
    return environment.get_template("results.md.jinja").render()


def versions(name: str) -> str:
    """The versions of the package that a table was measured with."""
    return ", ".join(dict.fromkeys(figure.version for figure in read(name)))


def rows(name: str, first: str, target: str = "", names: Sequence[str] = ()) -> str:
    """Return a table with one row per model; ``target``: the heading of a column of targets, empty for none."""
    figures = read(name)
    shown = list(names or dict.fromkeys(figure.name for figure in figures))
    found: dict[tuple[str, str], dict[str, str]] = {}
    for figure in figures:
        found.setdefault((figure.model, figure.target), {})[figure.name] = figure.value
    lines = list(table(" | ".join((first, *([target] if target else []), *shown))))
    for (model, core), values in found.items():
        lines.append(row(model, *([core] if target else []), *(values.get(each, "") for each in shown)))
    return "\n".join(lines)


def pairs() -> str:
    """RAM before and after by model and target."""
    by_model = _by_model()
    lines = list(table(" | ".join(("model", *TARGETS.values()))))
    for model, figures in by_model.items():
        lines.append(row(model, *(_pair(figures, target) for target in TARGETS)))
    return "\n".join(lines)


def read_weights() -> str:
    """Weights read and run time added on chips that execute from slow flash; models whose weights take 50 KB."""
    chips = {"esp32s3": "ESP32-S3", "pico": "Raspberry Pi Pico"}
    heads = [f"{chip}: weights; run time" for chip in chips.values()]
    lines = list(table(" | ".join(("model", *heads))))
    for model, figures in _by_model().items():
        cells = []
        if any((chip, READ_BEFORE) not in figures for chip in chips):
            continue
        for chip in chips:
            before, after = (int(figures[chip, name].value) for name in (READ_BEFORE, READ_AFTER))
            cells.append(f"{before:,} -> {after:,}; {float(figures[chip, SLOWER].value):+.1f} %")
        if int(figures["pico", READ_BEFORE].value) >= 50_000:
            lines.append(row(model, *cells))
    return "\n".join(lines)


def _by_model() -> Mapping[str, Mapping[tuple[str, str], Figure]]:
    found: dict[str, dict[tuple[str, str], Figure]] = {}
    for figure in read("models"):
        found.setdefault(figure.model, {})[figure.target, figure.name] = figure
    return found


def _pair(figures: Mapping[tuple[str, str], Figure], target: str) -> str:
    if (target, BEFORE) not in figures:
        return ""
    before, after = (int(figures[target, name].value) for name in (BEFORE, AFTER))
    return f"{before:,} -> {after:,} ({100 * (after / before - 1):+.0f} %)"


def chart() -> str:
    """Bars of the RAM after optimization, as a share of that before, for a Cortex-M4; the least share first."""
    shares = {
        model: int(figures["cortex-m4", AFTER].value) / int(figures["cortex-m4", BEFORE].value)
        for model, figures in _by_model().items()
    }
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
    """Write the page and the chart."""
    PAGE.write_text(page())
    CHART.write_text(chart())


if __name__ == "__main__":
    main()
