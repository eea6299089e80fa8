"""Open a model in Netron, in a headless Chromium: what it shows among the model's properties, as text.

python scripts/viewers/look_in_netron.py MODEL.tflite [CHROMIUM [PICTURE.png]]

Needs netron and playwright. Ends with 1 where an entry that optimize writes is not shown.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PORT = 8198
_SERVE = "import netron; netron.main()"
ENTRIES = ("OfflineMemoryAllocation", "tflite_memopt.plan")
_MILLISECONDS_TO_DRAW = 60_000
_MILLISECONDS_TO_OPEN = 2_000
_LOCAL = re.compile(r"http://127\.0\.0\.1")


def shown(address: str, chromium: str | None, picture: Path | None) -> dict[str, str]:
    """The model's properties, by name."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.route(lambda url: not _LOCAL.match(url), lambda route: route.abort())
        page.goto(address)
        page.click("text=Accept", timeout=_MILLISECONDS_TO_DRAW)  # that it uses cookies
        page.wait_for_selector(".node", timeout=_MILLISECONDS_TO_DRAW, state="attached")
        page.click("#sidebar-model-button")
        page.wait_for_timeout(_MILLISECONDS_TO_OPEN)
        names = [each.get_attribute("title") for each in page.query_selector_all(".sidebar-item-name input")]
        values = [each.inner_text().strip() for each in page.query_selector_all(".sidebar-item-value-list")]
        if picture:
            page.screenshot(path=picture)
        browser.close()
    return dict(zip(map(str, names), values, strict=True))


def main(model: str, chromium: str | None = None, picture: str | None = None) -> int:
    """Print what is shown; the exit code says whether our entries are among it."""
    serve = [sys.executable, "-u", "-c", _SERVE, "--host", "127.0.0.1", "--port", str(PORT), model]
    server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        server.stderr.readline()  # that it serves now
        found = shown(f"http://127.0.0.1:{PORT}", chromium, Path(picture) if picture else None)
    finally:
        server.terminate()
    for name, value in found.items():
        print(f"{name}: {value}")
    missing = [name for name in ENTRIES if name not in found]
    for name in missing:
        print(f"not shown: {name}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
