"""The page and what it asks for. Only this computer's browser gets an answer, and only from the page itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from socketserver import ThreadingMixIn
from threading import Lock
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ..errors import imported
from ..kernels.boards import BOARDS
from ..kernels.chips import CHIPS
from ..kernels.targets import TARGETS
from .job import PageJob

HOST = "127.0.0.1"
LARGEST = 64 << 20
"""Bytes of a file that is taken."""
_PAGE = Path(__file__).parent / "page.html"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_OF_REPORT = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)


class Desk:
    """The one job of a server."""

    def __init__(self) -> None:
        self.job: PageJob | None = None
        self._lock = Lock()

    def told(self) -> dict[str, object]:
        """Return the state of the job as the page shows it."""
        with self._lock:  # a job's words are files, which end with it
            job = self.job
            if job is None:
                return {"state": "none"}
            return {
                "state": job.state,
                "name": job.name,
                "result": job.result.name,
                "said": job.progress,
                "answer": job.answer,
            }

    def begin(self, name: str, data: bytes, options: list[str]) -> None:
        """Start a job in place of the last one."""
        with self._lock:
            self._end()
            self.job = PageJob(name, data, options)

    def close(self) -> None:
        """End the job and delete its files."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self.job is not None:
            self.job.forget()
            self.job = None


class PageSite:
    """What the server answers. ``port``: of the server, once it listens."""

    def __init__(self, port: Callable[[], int], desk: Desk) -> None:
        self._port, self._desk = port, desk
        self._bottle = imported("bottle", "serve needs bottle: run pip install 'tflite-memopt[serve]'")
        self.app = self._bottle.Bottle()
        self.app.add_hook("before_request", self._check)
        self.app.add_hook("after_request", self._protect)
        for path, method, answer in (
            ("/", "GET", lambda: self._file(_PAGE, "text/html; charset=utf-8")),
            ("/page.js", "GET", lambda: self._file(_PAGE.with_suffix(".js"), "text/javascript")),
            ("/page.css", "GET", lambda: self._file(_PAGE.with_suffix(".css"), "text/css")),
            ("/targets", "GET", lambda: {"names": sorted({*TARGETS, *CHIPS, *BOARDS})}),
            ("/job", "GET", desk.told),
            ("/job", "PUT", self._begin),
            ("/job", "DELETE", self._cancel),
            ("/report", "GET", self._report),
            ("/result", "GET", self._result),
        ):
            self.app.route(path, method, answer)

    def _refused(self, said: str, status: int) -> Any:
        return self._bottle.HTTPResponse(said, status)

    def _check(self) -> None:
        """Refuse a request that names another host, as after DNS rebinding, or comes from another page."""
        request, hosts = self._bottle.request, {f"{name}:{self._port()}" for name in (HOST, "localhost")}
        if request.get_header("Host") not in hosts:
            raise self._refused("wrong host", 403)
        if request.method not in ("GET", "HEAD") and request.get_header("Origin") not in {f"http://{h}" for h in hosts}:
            raise self._refused("wrong origin", 403)

    def _protect(self) -> None:
        for name, value in _HEADERS.items():
            if name not in self._bottle.response.headers:
                self._bottle.response.set_header(name, value)

    def _file(self, path: Path, kind: str, headers: Mapping[str, str] = {}) -> bytes:
        if not path.is_file():
            raise self._refused("not there", 404)
        for name, value in ({"Content-Type": kind} | dict(headers)).items():
            self._bottle.response.set_header(name, value)
        return path.read_bytes()

    def _begin(self) -> Mapping[str, object]:
        request = self._bottle.request
        if not 0 < request.content_length <= LARGEST:
            raise self._refused(f"a file of 1 byte to {LARGEST >> 20} MB is wanted", 413)
        fields = {name: request.query.getunicode(name, "").strip() for name in ("name", "target", "budget")}
        options = [f"--{name}={fields[name]}" for name in ("target", "budget") if fields[name]]
        self._desk.begin(fields["name"], request.body.read(), options)
        return self._desk.told()

    def _cancel(self) -> Mapping[str, object]:
        if self._desk.job is not None:
            self._desk.job.cancel()
        return self._desk.told()

    def _job(self) -> PageJob:
        if self._desk.job is None:
            raise self._refused("no job", 404)
        return self._desk.job

    def _report(self) -> bytes:
        return self._file(self._job().report, "text/html; charset=utf-8", {"Content-Security-Policy": _OF_REPORT})

    def _result(self) -> bytes:
        path = self._job().result
        shown = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return self._file(path, "application/octet-stream", shown)


class _Server(ThreadingMixIn, WSGIServer):
    """A browser keeps a connection open before it asks: each gets a thread."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        """Say nothing."""


def server(port: int, desk: Desk) -> WSGIServer:
    """Return a server on the loopback address; port 0: a free one. Raises OSError if the port is taken."""
    made: list[WSGIServer] = []
    site = PageSite(lambda: made[0].server_port, desk)
    made.append(make_server(HOST, port, site.app, _Server, _Handler))
    return made[0]
