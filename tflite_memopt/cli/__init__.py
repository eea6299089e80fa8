"""The command line: arguments, exit codes, and the only place that prints. One file a command.

Results go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import click

from ..errors import EquivalenceError, MemoptError, OptionError, printable
from ..version import __version__
from .exit_codes import BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, NOT_EQUAL, exit_code_table

COMMANDS = ("optimize", "explore", "analyze", "verify", "compare", "codegen", "check", "batch", "serve", "targets")
"""Names of the commands and of their files, in the order of the help."""


def load(names: Sequence[str]) -> list[click.Command]:
    """Return the commands of these names; unknown names are skipped."""
    return [getattr(importlib.import_module(f".{name}", __name__), name) for name in names if name in COMMANDS]


class _Commands(click.Group):
    """Load each command on first use, so that the version and usage errors print at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx  # click passes it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            return load([cmd_name])[0]
        close = importlib.import_module("difflib").get_close_matches(cmd_name, COMMANDS, 1)
        if close:
            ctx.fail(f"no command '{cmd_name}': did you mean '{close[0]}'?")
        return None


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"\b\nExit codes:\n{exit_code_table()}",
)
@click.option(
    "--cmake-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, is_asked: _tell_cmake_folder(context) if is_asked else None,
    help="Print the folder of the files for CMake and ESP-IDF, and exit.",
)
@click.version_option(__version__, prog_name="tflite-memopt")
@click.pass_context
def cli(context: click.Context) -> None:
    """Reduce the RAM that a .tflite model needs on stock TensorFlow Lite Micro, without changing its outputs.

    \b
    What does my model need now?   tflite-memopt analyze model.tflite
    Make it need less:             tflite-memopt optimize model.tflite -o small.tflite
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _tell_cmake_folder(context: click.Context) -> None:
    click.echo((Path(__file__).parents[1] / "firmware" / "build_systems").as_posix())
    context.exit()


def main() -> NoReturn:
    """Run the command line; errors become one line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    if isinstance(sys.stdout, TextIOWrapper):  # escape letters of a name that the console lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    # Keep Python from traversing all objects of a search once more at exit.
    atexit.register(gc.freeze)
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted; nothing was written", INTERRUPTED)
    except click.ClickException as error:
        hint = f"; see {error.ctx.command_path} --help" if isinstance(error, click.UsageError) and error.ctx else ""
        _fail(error.format_message().removesuffix(".") + hint, BAD_INPUT)
    except MemoptError as error:
        _fail(_message_of(error), NOT_EQUAL if isinstance(error, EquivalenceError) else BAD_INPUT)
    except KeyboardInterrupt:
        _fail("interrupted; nothing was written", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe is gone; Python would complain at exit
        sys.exit(0)
    except OSError as error:
        _fail(_unwritten(error), BAD_INPUT)
    except Exception as error:
        _fail(_report_wanted(error), INTERNAL_ERROR)
    sys.exit(code if isinstance(code, int) else 0)


def _message_of(error: MemoptError) -> str:
    """Return the message of an error; an option by its flag."""
    if not isinstance(error, OptionError):
        return str(error)
    flag_name = importlib.import_module(".flags", __name__).flag_name
    return f"{flag_name(error.field)}: {error.advice}"


def _unwritten(error: OSError) -> str:
    """Say what failed; files are written by functions that say so, and before the answer is printed."""
    if error.filename is not None:
        return f"{error.strerror or error}: '{error.filename}'; nothing was written"
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what is left is lost, and Python would complain of it at exit)
    return f"cannot print the answer ({error.strerror or error}); the output files are written"


def _interrupt(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _report_wanted(error: Exception) -> str:
    """Return one line on an internal error: the exception and its location in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "unknown"
    return (
        f"internal error: {type(error).__name__}: {error} ({where}). This is a bug in tflite-memopt {__version__}; "
        "please report it with the model, or with the output of `tflite-memopt analyze --json`"
    )


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"tflite-memopt: {printable(' '.join(message.split()))}", err=True)
    sys.exit(code)
