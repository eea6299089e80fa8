"""docs/images/searches.svg, made of docs/results/searches.csv: what two searches find, against RAM.

python -m scripts.makers.fronts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.benchmarks.figures import ROOT, Figure, read
from scripts.benchmarks.searches import ACCURACY, MACS, WAYS

IMAGE = ROOT / "docs" / "images" / "searches.svg"
_BYTES = dict(zip(WAYS, ("bytes as it stands", "bytes optimized"), strict=True))
_COLORS = dict(zip(WAYS, ("#b0662e", "#2f6f9f"), strict=True))
_WIDTH, _HEIGHT, _LEFT, _TOP = 330, 220, 40, 40
_KIB = (16, 128)
Point = tuple[float, float]
"""KiB, and what is better the larger it is."""


def picture() -> str:
    """Return two panels, each with a front of the networks as they stand and one of them optimized."""
    panels = (
        ("million products", MACS, 1e6, (0, 5, 10, 15, 20, 25)),
        ("accuracy, %", ACCURACY, 1, (60, 70, 80, 90, 100)),
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * (_WIDTH + 50) + 10} {_HEIGHT + 85}" '
        'font-family="sans-serif" font-size="13">',
        "<title>What a search finds that counts RAM as it stands, and optimized</title>",
    ]
    for number, (title, name, unit, ticks) in enumerate(panels):
        fronts = {way: front([(nbytes / 1024, value / unit) for nbytes, value in _found(way, name)]) for way in WAYS}
        lines.append(f'<g transform="translate({_LEFT + number * (_WIDTH + 50)} {_TOP})">')
        lines += [*_panel(title, fronts, ticks), "</g>"]
    return "\n".join((*lines, "</svg>", ""))


def _found(way: str, name: str) -> Iterator[Point]:
    """Yield the bytes of each network and a figure of it, where there is one; by the optimized size, of all."""
    figures = {(figure.options.removesuffix(", trained"), figure.name): float(figure.value) for figure in _numbers()}
    for (run, of), value in figures.items():
        if of == name and (way == WAYS[1] or run.endswith(way)):
            yield figures[run, _BYTES[way]], value


def _numbers() -> Iterator[Figure]:
    return (figure for figure in read("searches") if figure.name in (MACS, ACCURACY, *_BYTES.values()))


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other one beats, from the least RAM on.

    >>> front([(3, 5), (1, 2), (2, 1)])
    [(1, 2), (3, 5)]
    """
    ordered = sorted(points, key=lambda point: (point[0], -point[1]))
    return [point for at, point in enumerate(ordered) if all(point[1] > other for _, other in ordered[:at])]


def _panel(title: str, fronts: dict[str, list[Point]], ticks: Sequence[int]) -> Iterator[str]:
    lowest, highest = ticks[0], ticks[-1]

    def place(point: Point) -> tuple[str, str]:
        x = _WIDTH * (point[0] - _KIB[0]) / (_KIB[1] - _KIB[0])
        return f"{x:.1f}", f"{_HEIGHT * (highest - point[1]) / (highest - lowest):.1f}"

    yield f'<text x="0" y="-14" fill="#444">{title}</text>'
    yield f'<path d="M0 0V{_HEIGHT}H{_WIDTH}" fill="none" stroke="#888"/>'
    for kib in range(_KIB[0], _KIB[1] + 1, 16):
        yield f'<text x="{place((kib, lowest))[0]}" y="{_HEIGHT + 18}" fill="#444" text-anchor="middle">{kib}</text>'
    yield f'<text x="{_WIDTH}" y="{_HEIGHT + 36}" fill="#444" text-anchor="end">KiB of RAM, Cortex-M7</text>'
    for value in ticks:
        yield f'<text x="-6" y="{place((0, value))[1]}" dy="4" fill="#444" text-anchor="end">{value}</text>'
    for number, (way, points) in enumerate(fronts.items()):
        places, color = [place(point) for point in points], _COLORS[way]
        path = "".join(f"M{x} {y}" if at == 0 else f"H{x}V{y}" for at, (x, y) in enumerate(places))
        yield f'<path d="{path}H{_WIDTH}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield from (f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"/>' for x, y in places)
        yield f'<text x="{150 + 100 * number}" y="-14" fill="{color}">{way}</text>'


if __name__ == "__main__":
    IMAGE.write_text(picture())
