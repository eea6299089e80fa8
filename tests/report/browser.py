"""A headless Chromium, when one is installed, that may not reach any network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MARKS = ".mark"


def installed_chromium() -> str | None:
    """Return its path, or None."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@dataclass
class Opened:
    """A page that is open, and what it said and asked for meanwhile."""

    page: Any
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Opened]:
    """The page once it has drawn everything; ``options`` are playwright's, such as ``color_scheme``."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed_chromium(), args=["--no-sandbox"])
        try:
            context = browser.new_context(offline=True, **options)
            found = Opened(context.new_page())
            found.page.on("console", lambda message: found.said.append(message.text))
            found.page.on("pageerror", lambda error: found.said.append(str(error)))
            found.page.on("request", lambda request: found.requests.append(request.url))
            found.page.goto(path.as_uri())
            found.page.wait_for_selector("body[data-ready]", timeout=60_000)
            yield found
        finally:
            browser.close()
