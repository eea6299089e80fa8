"""The page of ``serve`` in a real browser, and what its server refuses."""

from __future__ import annotations

import http.client
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.models import mobile_chain
from tests.report.browser import installed_chromium
from tests.report.test_page import in_chromium
from tflite_memopt import verify
from tflite_memopt.errors import UsageError
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.serve import page as served
from tflite_memopt.serve.job import safe_name

DEMO = Path(__file__).parents[1] / "scripts" / "models" / "demo_int8.tflite"


@pytest.fixture
def port() -> Iterator[int]:
    pytest.importorskip("bottle")
    desk = served.Desk()
    with served.server(0, desk) as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        try:
            yield listening.server_port
        finally:
            listening.shutdown()
            desk.close()


def ask(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, str]:
    """Ask the server; a header given as an empty string is left out."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    given = {"Host": f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}"} | headers
    connection.putrequest(method, path, skip_host=True)
    for name, value in given.items():
        if value:
            connection.putheader(name.replace("_", "-"), value)
    if body is not None and "Content_Length" not in headers:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.getheader("Content-Security-Policy", "")


def test_it_answers_this_computer_alone(port: int) -> None:
    desk = served.Desk()
    with served.server(0, desk) as other:
        assert other.server_address[0] == "127.0.0.1"
    assert ask(port, "GET", "/")[0] == 200
    assert ask(port, "GET", "/", Host=f"localhost:{port}")[0] == 200
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert ask(port, "GET", "/job", Host=host)[0] == 403, host


def test_another_page_starts_and_ends_nothing(port: int) -> None:
    for origin in ("", "null", "http://example.org", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"):
        assert ask(port, "PUT", "/job?name=m.tflite", b"x", Origin=origin)[0] == 403, origin
        assert ask(port, "DELETE", "/job", Origin=origin)[0] == 403
    assert json.loads(ask(port, "GET", "/job")[1]) == {"state": "none"}


def test_what_is_too_large_or_empty_is_not_read(port: int) -> None:
    assert ask(port, "PUT", "/job?name=m.tflite", None, Content_Length=str(served.LARGEST + 1))[0] == 413
    assert ask(port, "PUT", "/job?name=m.tflite", b"")[0] == 413
    assert ask(port, "GET", "/result")[0] == 404


def test_no_name_leaves_its_folder_or_becomes_an_option() -> None:
    for name in ("../../x.tflite", "/etc/passwd", "-o.tflite", "a b;c.tflite", "", ".tflite", "ü" * 300, "..", "x\0y"):
        assert re.fullmatch(r"\w[\w-]{0,80}\.tflite", safe_name(name), re.ASCII), name
    assert safe_name("my_model-2.tflite") == "my_model-2.tflite"


def test_each_answer_allows_nothing_from_elsewhere(port: int) -> None:
    for path in ("/", "/page.js", "/page.css", "/targets", "/job"):
        status, _, policy = ask(port, "GET", path)
        assert (status, policy.startswith("default-src 'none'")) == (200, True), path
    assert ask(port, "GET", "/page.py")[0] == 404


def test_without_its_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "bottle", None)
    with pytest.raises(UsageError, match=r"tflite-memopt\[serve\]"):
        served.server(0, served.Desk())


# In a browser


@contextmanager
def opened(port: int) -> Iterator[Any]:
    """The page; a request to another address fails the test."""
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed_chromium(), args=["--no-sandbox"])
        try:
            page = browser.new_context(accept_downloads=True).new_page()
            page.on("request", lambda request: asked.append(request.url))
            said: list[str] = []
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector("body[data-ready]")
            yield page
            assert said == []
            assert [url for url in asked if not url.startswith((f"http://127.0.0.1:{port}/", "blob:"))] == []
        finally:
            browser.close()


def drop(page: Any, name: str, data: bytes) -> None:
    """Drop a file onto the page, as from a folder."""
    page.evaluate(
        """([name, bytes]) => {
            const given = new DataTransfer();
            given.items.add(new File([new Uint8Array(bytes)], name));
            document.querySelector("#drop").dispatchEvent(new DragEvent("drop", {bubbles: true, dataTransfer: given}));
        }""",
        [name, list(data)],
    )


@pytest.mark.slow
@in_chromium
def test_a_model_that_is_dropped_comes_back_smaller(port: int, tmp_path: Path) -> None:
    model = tmp_path / "my model.tflite"
    model.write_bytes(write_model(mobile_chain()))
    with opened(port) as page:
        assert page.is_disabled("#start")
        drop(page, model.name, model.read_bytes())
        assert model.name in page.inner_text("#chosen")
        page.fill("#target", "cortex-m4")
        page.fill("#budget", "64K")
        page.click("#start")
        page.wait_for_selector("body[data-state=running]", timeout=20_000)
        page.wait_for_selector("body[data-state=done]", timeout=200_000)
        assert page.inner_text("#answer").startswith("RAM ")
        assert "fits 64 KB" in page.inner_text("#answer")
        report = page.frame_locator("#report")
        report.locator("body[data-ready]").wait_for(timeout=20_000)
        assert "cortex-m4" in report.locator("dl").first.inner_text()
        with page.expect_download() as found:
            page.click("#result")
        small = tmp_path / "small.tflite"
        found.value.save_as(small)
        assert found.value.suggested_filename == "my_model_small.tflite"
    assert small.stat().st_size
    assert all(verdict.equal is not False for verdict in verify(model, small).values())


@pytest.mark.slow
@in_chromium
@pytest.mark.parametrize(
    ("data", "target", "said"),
    [
        (b"TFL3 but no model", "", "my.tflite"),
        (DEMO.read_bytes()[:3000], "", "my.tflite"),
        (None, "cortex-q9", "cortex-q9"),
    ],
)
def test_a_broken_file_and_a_wrong_target_are_told_in_a_line(
    data: bytes | None, target: str, said: str, port: int, tmp_path: Path
) -> None:
    (tmp_path / "my.tflite").write_bytes(DEMO.read_bytes() if data is None else data)
    with opened(port) as page:
        page.set_input_files("#file", tmp_path / "my.tflite")
        page.fill("#target", target)
        page.click("#start")
        page.wait_for_selector("body[data-state=failed]", timeout=60_000)
        assert said in page.inner_text("#error")
        assert not page.is_visible("#done")
        assert page.is_enabled("#start")


@pytest.mark.slow
@in_chromium
def test_a_canceled_run_leaves_no_process_and_no_file(port: int) -> None:
    with opened(port) as page:
        page.set_input_files("#file", DEMO)
        page.click("#start")
        page.wait_for_selector("body[data-state=running]", timeout=20_000)
        page.locator("#said", has_text="stripes").wait_for(timeout=60_000)
        page.click("#cancel")
        page.wait_for_selector("body[data-state=canceled]", timeout=20_000)
        assert "Canceled" in page.inner_text("#error")
        assert not page.is_visible("#done")
    assert ask(port, "GET", "/result")[0] == 404
    if os.name == "posix" and Path("/proc").is_dir():
        for each in Path("/proc").glob("[0-9]*"):
            if each.name != str(os.getpid()):
                assert b"demo_int8_small.tflite" not in _command(each)


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
