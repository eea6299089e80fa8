"""How large the page of a long network is, and how soon it can be used, in headless Chromium.

    python -m scripts.benchmarks.page [OPERATORS]

Bytes of the file; milliseconds from opening it until its first picture is there and can be used, and until the last is
drawn (the middle of five times); requests to a network; words on the console. Needs Chromium.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import tflite_memopt
from tests.report.browser import opened
from tests.report.test_page import long_chain
from tflite_memopt import Options
from tflite_memopt.io.writer import write_model
from tflite_memopt.report.pictures.pages import analysis_page, report_page

from .markdown_table import row, table

_TIMES = 5
_COLUMNS = "page | operators | bytes | ms until usable | ms until all is drawn | network requests | console messages"
_MARKS = "['interactive', 'drawn'].map(name => performance.getEntriesByName(name)[0].startTime)"


def main(operators: int) -> None:
    """Measure the pages of ``analyze`` and ``optimize``."""
    data = write_model(long_chain(operators))
    report = tflite_memopt.optimize(data, Options(verify=False, cascade=False)).report
    pages = {"analyze": analysis_page(tflite_memopt.analyze(data)), "optimize": report_page(report)}
    print(*table(_COLUMNS), sep="\n")
    for name, page in pages.items():
        print(row(f"`{name} --report page.html`", operators, len(page), *measured(page)))


def measured(page: bytes) -> tuple[int, ...]:
    """Milliseconds, requests, messages."""
    times: list[list[float]] = []
    requests = said = 0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_bytes(page)
        for _ in range(_TIMES):
            with opened(path, viewport={"width": 1280, "height": 900}) as found:
                times.append(found.page.evaluate(_MARKS))
                requests += sum(not each.startswith("file:") for each in found.requests)
                said += len(found.said)
    return *(round(median(each)) for each in zip(*times, strict=True)), requests, said


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 600)
