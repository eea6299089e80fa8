"""The command line: arguments, exit codes, and the only place that prints.

Exit codes: 0 done; 1 the answer is no (not equal, over budget); 2 bad input or usage; 130 interrupted.
Results go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .errors import EquivalenceError, InfeasibleError, MemoptError
from .options import HALOS, IO, RUNTIMES, Options
from .plan.methods import BEST as BEST_PLANNER
from .plan.methods import NAMES as PLANNERS
from .schedule.methods import DEFAULT as DEFAULT_SCHEDULER
from .schedule.methods import METHODS as SCHEDULERS
from .version import __version__

if TYPE_CHECKING:
    from rich.console import RenderableType

NO, BAD_INPUT, INTERRUPTED = 1, 2, 130
_AS_IS = "as_is"
_UNITS = {"": 1, "B": 1, "K": 1024, "KB": 1024, "M": 1024**2, "MB": 1024**2}
ModelPath = click.Path(path_type=Path)


# ParamType takes a type argument in the newest click only.
class Bytes(click.ParamType):  # type: ignore[type-arg]
    """A size such as ``65536``, ``64K`` or ``1M`` (powers of 1024)."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().upper()
        digits = text.rstrip("BKM")
        unit = text[len(digits) :]
        if not digits.isdigit() or unit not in _UNITS:
            self.fail(f"'{value}' is not a size; write bytes, or 64K, or 1M", param, ctx)
        return int(digits) * _UNITS[unit]


# As above.
class Percent(click.ParamType):  # type: ignore[type-arg]
    """A share such as ``10%``, or a fraction below 1; ``10`` could be either, and is refused."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        digits = text.removesuffix("%")
        is_number = digits.replace(".", "", 1).isdecimal()
        if not is_number or (digits == text and float(digits) >= 1):
            self.fail(f"'{value}' is not a percentage; write for example 10%, or 0.1", param, ctx)
        return float(digits) if digits == text else float(digits) / 100


KERNELS = click.option(
    "--kernels", default="portable", show_default=True, help="Kernel profile that the firmware links."
)
TIME_LIMIT = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit of each search.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")


# As above.
class Pin(click.ParamType):  # type: ignore[type-arg]
    """A tensor's name and its offset, such as ``image=0`` or ``image=4K``."""

    name = "pin"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, equals, offset = str(value).rpartition("=")
        if not equals or not name:
            self.fail(f"'{value}' is not TENSOR=OFFSET", param, ctx)
        return name, Bytes().convert(offset, param, ctx)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tflite-memopt")
def cli() -> None:
    """Make a .tflite model need less RAM on stock TensorFlow Lite Micro, and prove that it computes the same."""


@cli.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option("-o", "--output", required=True, type=ModelPath, metavar="OUT.tflite", help="Where to write the result.")
@KERNELS
@click.option(
    "--scheduler",
    type=click.Choice(list(SCHEDULERS)),
    default=DEFAULT_SCHEDULER,
    show_default=True,
    help="Order of operators.",
)
@click.option(
    "--planner", type=click.Choice(PLANNERS), default=BEST_PLANNER, show_default=True, help="Offsets of tensors."
)
@click.option("--no-reorder", is_flag=True, help="Keep the order of operators, as --scheduler as_is does.")
@click.option("--no-rewrite", is_flag=True, help="Keep the operators as they are; only order and plan them.")
@click.option(
    "--allow-approximate",
    is_flag=True,
    help="Also rewrite where integers are requantised once more; the report says how far outputs differ.",
)
@click.option("--no-cascade", is_flag=True, help="Run no region stripe by stripe.")
@click.option(
    "--max-extra-macs",
    type=Percent(),
    default="10%",
    show_default=True,
    help="Multiply-accumulates that stripes may add, of the model's.",
)
@click.option(
    "--max-extra-operators", type=click.IntRange(min=0), help="Operators that stripes may add. [default: any]"
)
@click.option(
    "--halo",
    type=click.Choice([*HALOS, "both"]),
    default="both",
    show_default=True,
    help="Rows that two stripes need: computed twice, or kept; both: what is cheaper.",
)
@click.option(
    "--io",
    type=click.Choice(IO),
    default="keep",
    show_default=True,
    help="Types of inputs and outputs; int8: drop QUANTIZE and DEQUANTIZE there, the application gives integers.",
)
@click.option(
    "--pin",
    "pins",
    type=Pin(),
    multiple=True,
    metavar="TENSOR=OFFSET",
    help="Keep a tensor at this offset, a multiple of 16; repeat for more.",
)
@click.option(
    "--objective",
    type=click.Choice(["total", "head"]),
    default="total",
    show_default=True,
    help="What the budget limits: the arena to reserve (32-bit), or its head alone.",
)
@click.option("--budget", type=Bytes(), help="Exit with 1 when the result needs more than this, for example 64K.")
@TIME_LIMIT
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of searches and random inputs.")
@click.option(
    "--samples", type=click.IntRange(min=1), default=10, show_default=True, help="Inputs per runtime in the proof."
)
@click.option("--inputs", type=ModelPath, metavar="X.npz", help="Your own inputs for the proof, arrays by input name.")
@click.option("--no-verify", is_flag=True, help="Skip the proof of equality (and TFLM's measurement).")
@click.option("--explain", is_flag=True, help="Also show which rewrites were applied, and which were not and why.")
@click.option("--report", "report_path", type=ModelPath, metavar="R.json", help="Write the JSON report.")
@click.option("--force", is_flag=True, help="Replace existing files, the input among them.")
@QUIET
def optimize(
    source: Path, output: Path, report_path: Path | None, force: bool, quiet: bool, explain: bool, **chosen: Any
) -> None:
    """Optimise IN.tflite, prove the result equal, and write it to OUT.tflite.

    Exits with 1, and writes no model, when the result is not equal.
    """
    from .io.files import check_target, write_files
    from .pipeline import optimize as run
    from .report.console import render_report
    from .report.model import to_json

    targets = [path for path in (output, report_path) if path is not None]
    if report_path is not None and report_path.absolute() == output.absolute():
        raise click.UsageError("--report and --output name the same file")
    for path in targets:
        check_target(path, (source,), force)
    result = run(source, _options(**chosen), _progress(quiet))
    files = {output: result.model}
    if report_path is not None:
        files[report_path] = to_json(result.report).encode()
    write_files(files)
    _show(render_report(result.report, explain))
    if result.report.within_budget is False:
        sys.exit(NO)


@cli.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@KERNELS
@click.option("--json", "as_json", is_flag=True, help="Print JSON, every operator's working set included.")
def analyze(source: Path, kernels: str, as_json: bool) -> None:
    """Show what IN.tflite needs as it stands: arena, bounds, and the operators where memory peaks."""
    from .pipeline import analyze as run
    from .report.model import to_json

    analysis = run(source, kernels)
    if as_json:
        click.echo(to_json(analysis), nl=False)
        return
    from .report.console import render_analysis

    _show(render_analysis(analysis))


@cli.command()
@click.argument("first", metavar="A.tflite", type=ModelPath)
@click.argument("second", metavar="B.tflite", type=ModelPath)
@click.option("--inputs", type=ModelPath, metavar="X.npz", help="Your own inputs, arrays by input name.")
@click.option("--samples", type=click.IntRange(min=1), default=10, show_default=True, help="Random inputs per runtime.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random inputs.")
@click.option(
    "--runtime", type=click.Choice([*RUNTIMES, "all"]), default="all", show_default=True, help="Where to run."
)
@QUIET
def verify(first: Path, second: Path, inputs: Path | None, samples: int, seed: int, runtime: str, quiet: bool) -> None:
    """Run A.tflite and B.tflite on the same inputs and compare every output.

    Exits with 0 when all runtimes that can run A find them equal, with 1 when one finds a difference or
    when none can run A.
    """
    from .pipeline import verify as run
    from .report.console import render_verdicts

    runtimes = RUNTIMES if runtime == "all" else (runtime,)
    options = Options(inputs=inputs, samples=samples, seed=seed, runtimes=runtimes)
    verdicts = run(first, second, options, _progress(quiet))
    _show(render_verdicts(verdicts))
    for name, verdict in verdicts.items():
        if verdict.equal is False:
            click.echo(f"{name}: {verdict.reason}", err=True)
    words = [verdict.equal for verdict in verdicts.values()]
    if False in words or True not in words:
        sys.exit(NO)


@cli.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option("--schedulers", default="all", show_default=True, metavar="A,B", help="Methods for the order.")
@click.option("--planners", default="all", show_default=True, metavar="A,B", help="Methods for the offsets.")
@KERNELS
@TIME_LIMIT
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the searches.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@QUIET
def compare(
    source: Path, schedulers: str, planners: str, kernels: str, time_limit: float, seed: int, as_json: bool, quiet: bool
) -> None:
    """Show the published methods side by side on IN.tflite: every scheduler, and every planner on the best order."""
    from .pipeline import compare as run
    from .report.model import to_json

    options = Options(kernels=kernels, time_limit=time_limit, seed=seed)
    names = [[name.strip() for name in text.split(",")] for text in (schedulers, planners)]
    comparison = run(source, names[0], names[1], options, _progress(quiet))
    if as_json:
        click.echo(to_json(comparison), nl=False)
        return
    from .report.console import render_comparison

    _show(render_comparison(comparison))


def main() -> NoReturn:
    """Entry point: turns errors into one line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted; nothing was written", INTERRUPTED)
    except click.ClickException as error:
        hint = f"; see {error.ctx.command_path} --help" if isinstance(error, click.UsageError) and error.ctx else ""
        _fail(error.format_message() + hint, BAD_INPUT)
    except (EquivalenceError, InfeasibleError) as error:
        _fail(str(error), NO)
    except MemoptError as error:
        _fail(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        _fail("interrupted; nothing was written", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; Python would complain of it at exit
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _options(
    no_verify: bool, no_rewrite: bool, no_cascade: bool, no_reorder: bool, scheduler: str, halo: str, **chosen: Any
) -> Options:
    """The options of ``optimize`` from its flags, four of which say what is left out."""
    if no_reorder and scheduler not in (DEFAULT_SCHEDULER, _AS_IS):
        raise click.UsageError(f"--no-reorder and --scheduler {scheduler} exclude each other")
    order = _AS_IS if no_reorder else scheduler
    stages: dict[str, Any] = {"verify": not no_verify, "rewrite": not no_rewrite, "cascade": not no_cascade}
    return Options(**stages, scheduler=order, halos=HALOS if halo == "both" else (halo,), **chosen)


def _interrupt(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"tflite-memopt: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _progress(quiet: bool) -> Callable[[str], None]:
    def say(message: str) -> None:
        if not quiet:
            click.echo(f"{message} ...", err=True)

    return say


def _show(renderable: RenderableType) -> None:
    from rich.console import Console

    console = Console()
    # A pipe has no width: the tables' own is used there, so that nothing is cut off.
    Console(width=None if console.is_terminal else 140).print(renderable)
