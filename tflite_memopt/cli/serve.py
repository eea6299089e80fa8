"""The command ``serve``."""

from __future__ import annotations

import webbrowser

import click

from .flags import GroupedCommand, flag
from .types import WholeNumber


@click.command(cls=GroupedCommand, short_help="Open a page where a model is dropped and optimized.")
@flag("--port", type=WholeNumber(0, 65535), default=0, help="Port of the page. [default: a free one]")
@flag("--no-browser", is_flag=True, help="Only print the address.")
def serve(port: int, no_browser: bool) -> None:
    """Serve a page on this computer, for this computer alone: drop a model, get the report and the optimized file.

    Nothing is sent elsewhere. Files are deleted when the next model is dropped, and when Ctrl-C ends the command. It
    needs tflite-memopt[serve].
    """
    from ..serve.page import HOST, Desk, server

    desk = Desk()
    with server(port, desk) as listening:
        address = f"http://{HOST}:{listening.server_port}/"
        click.echo(f"{address} (Ctrl-C ends it)")
        if not no_browser:
            webbrowser.open(address)
        try:
            listening.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended", err=True)
        finally:
            desk.close()
