"""The command; see ``scripts/mutate --help``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from scripts.mutation.scoring import Score, graph_scores, plan_scores
from tflite_memopt import Options
from tflite_memopt.equivalence.verification import open_for


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--per-kind", default=25, show_default=True, help="Mutants of each kind and model; 0: all there are.")
@click.option("--samples", default=1000, show_default=True, help="Inputs of the run that says which mutants show.")
@click.option("--seed", default=0, show_default=True, help="Which mutants are drawn.")
@click.option("--plans", is_flag=True, help="Mutants of plans; else of graphs.")
@click.option("--kernels", default="reference", show_default=True, help="Plans are for these, and run on them.")
def main(models: tuple[Path, ...], per_kind: int, samples: int, seed: int, plans: bool, kernels: str) -> None:
    """Print which mutants of MODELS the verification catches; exit with 1 when one that shows is missed."""
    click.echo("| model | what was done | tried | show | caught | by values alone | missed |")
    click.echo("|---|---|---|---|---|---|---|")
    whole = Score("all", "all")
    for score in _scores(models, per_kind, samples, seed, plans, kernels):
        click.echo(_row(score))
        sys.stdout.flush()
        _add(whole, score)
    click.echo(_row(whole))
    sys.exit(1 if whole.missed else 0)


def _scores(
    models: Iterable[Path], per_kind: int, samples: int, seed: int, plans: bool, kernels: str
) -> Iterator[Score]:
    for path in models:
        started, data = time.monotonic(), path.read_bytes()
        with open_for(Options(kernels=kernels)) as interpreters:
            if plans:
                yield from plan_scores(path.stem, data, kernels, per_kind, samples, interpreters, seed)
            else:
                yield from graph_scores(path.stem, data, per_kind, samples, interpreters, seed)
        click.echo(f"{path.stem}: {time.monotonic() - started:.0f} s", err=True)


def _row(score: Score) -> str:
    cells = (
        score.model,
        score.kind,
        score.tried,
        score.visible,
        score.caught,
        score.by_values,
        "; ".join(score.missed),
    )
    return f"| {' | '.join(map(str, cells))} |"


def _add(whole: Score, score: Score) -> None:
    whole.tried += score.tried
    whole.visible += score.visible
    whole.caught += score.caught
    whole.by_values += score.by_values
    whole.missed += score.missed


if __name__ == "__main__":
    main()
