"""Open a model and its node data in Google's Model Explorer, in a headless Chromium: what it shows of them, as text.

python scripts/viewers/look_in_model_explorer.py MODEL.tflite NODE_DATA_FOLDER [CHROMIUM]

Needs ai-edge-model-explorer and playwright, in an environment of their own: they bring TensorFlow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

PORT = 8199
_SERVE = "import model_explorer as m; m.visualize_from_config(host='127.0.0.1', port={port}, no_open_in_browser=True)"
_SECONDS_TO_START, _MILLISECONDS_TO_DRAW = 120, 20_000


def address(model: Path, node_data: list[Path]) -> str:
    """The page of this model with these files of node data."""
    data = {
        "models": [{"url": str(model.resolve())}],
        "nodeData": [str(path.resolve()) for path in node_data],
        "nodeDataTargets": [""] * len(node_data),
    }
    return f"http://127.0.0.1:{PORT}/?data={urllib.parse.quote(json.dumps(data))}"


def wait_until_served() -> None:
    """Raises TimeoutError where nobody answers."""
    for _ in range(_SECONDS_TO_START):
        if _is_served():
            return
        time.sleep(1)
    raise TimeoutError("Model Explorer does not answer")


def _is_served() -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}").close()
    except urllib.error.URLError:
        return False
    return True


def shown(page_address: str, chromium: str | None) -> str:
    """The text of the page from the list of node data on: the files, and their values node by node."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(page_address)
        page.wait_for_timeout(_MILLISECONDS_TO_DRAW)
        text = page.inner_text("body")
        browser.close()
    return text[text.index("NODE DATA PROVIDERS") :]


if __name__ == "__main__":
    files = sorted(Path(sys.argv[2]).glob("*.json"))
    server = subprocess.Popen([sys.executable, "-c", _SERVE.format(port=PORT)], stdout=subprocess.DEVNULL)
    try:
        wait_until_served()
        print(shown(address(Path(sys.argv[1]), files), sys.argv[3] if len(sys.argv) > 3 else None))
    finally:
        server.terminate()
