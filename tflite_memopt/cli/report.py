"""The command ``report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .exit_codes import OVER_BUDGET
from .reports import Makers, report_option, reports_of
from .shared import FORCE, check_files, show
from .types import ModelPath

if TYPE_CHECKING:
    from ..report.model_rows import ModelRow, Regression


@click.command(short_help="Show the results of a batch run.")
@click.argument("folder", metavar="OUT", type=ModelPath)
@click.option(
    "--against",
    type=ModelPath,
    metavar="OTHER",
    help="The folder of an earlier run: show the models that are worse now, and exit with 3 when there are any.",
)
@report_option(".csv", ".html")
@FORCE
def report(folder: Path, against: Path | None, reports: tuple[Path, ...], force: bool) -> None:
    """Show the results of a batch run: bytes saved, what limits each model, which have no result and why."""
    from ..batch.store import open_store
    from ..io.files import write_files
    from ..report.many_models import table_csv, without_reports
    from ..report.pictures.pages import models_page

    check_files(reports, (), force)
    with open_store(folder) as store:
        rows, (columns, stored) = list(store.rows()), store.table()
    worse = None if against is None else _worse(rows, against)
    makers: Makers = {
        ".csv": lambda: table_csv(*without_reports(columns, stored)).encode(),
        ".html": lambda: models_page(f"{folder.name}: all models", rows, worse),
    }
    write_files(reports_of(reports, makers))
    _show(rows, worse, against)
    if worse:
        sys.exit(OVER_BUDGET)


def _worse(rows: list[ModelRow], against: Path) -> list[Regression]:
    from ..batch.store import open_store
    from ..report.model_rows import regressions

    with open_store(against) as store:
        return regressions(rows, store.rows())


def _show(rows: list[ModelRow], worse: list[Regression] | None, against: Path | None) -> None:
    from ..report.many_models import render_regressions, render_rows

    show(render_rows(rows))
    if worse is not None:
        show(render_regressions(worse, str(against)))
