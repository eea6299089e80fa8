"""The tables of docs/benchmarks/cascade.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_table import row, table

KERNELS = ("portable", "reference")
STOCK, NO_CASCADE, INT8_IO = "stock", "no cascade", "head, --io int8"
BOTH = "both"
"""Both ways to treat the halo."""
CHAINS = ("mobilenet_like", "vgg_like")
"""The zoo's networks that stand for those of the RFC."""


@dataclass(frozen=True)
class Run:
    """A model after one run: bytes of head, file and arena to reserve (32-bit); MACs more, as a fraction.

    ``proved``: TFLM measured this head and computed the same bits on ``samples`` inputs. ``ratio``: run time on TFLM
    by the original's. ``time_limit``: seconds for each search.
    """

    kernels: str
    mode: str
    head: int
    proved: bool
    required: int
    extra_macs: float
    operators: int
    file_bytes: int
    ratio: float | None
    cascades: Sequence[str]
    samples: int
    time_limit: float

    @property
    def how(self) -> str:
        """What it was made with."""
        return f"At most {self.time_limit:g} seconds for each search, equality on {self.samples} inputs."

    @property
    def head_cell(self) -> str:
        """The head, in bold where it is proved."""
        return f"**{self.head:,}**" if self.proved else f"{self.head:,}"


@dataclass(frozen=True)
class Target:
    """A head in bytes that a mode should reach."""

    model: str
    mode: str
    kernels: str
    limit: int
    said: str = ""


TARGETS = (
    Target("mlperf_vww_int8", "head", "reference", 29_296),
    Target("mlperf_vww_int8", "head", "portable", 40_000),
    Target("mcunet_vww", "head", "reference", 80_000),
    Target("mcunet_vww", INT8_IO, "reference", 48_000),
    Target("mlperf_vww_fp32", "head", "reference", 132_710, "45 % of stock (294,912)"),
    Target("tflm_person_detect", "head", "reference", 24_000),
)
Measured = Mapping[str, Sequence[Run]]
"""The runs of each model; none for one that has no convolution, or that TFLM does not load."""


def document(measured: Measured, command: str) -> Iterator[str]:
    """The page, line by line."""
    yield "# What stripes are worth\n"
    yield f"Made by `{command}`. What stripes are: [cascading.md](../cascading.md)."
    yield "Heads are bytes; one in **bold** was measured by TFLM, and the model proved equal to the bit there. Total is"
    yield "the arena to reserve on 32 bits: head or planner temporaries, and tail. `total` and `head` are objectives,"
    yield "with the default of at most 10 % more MACs unless it says otherwise. Stripes: how many, halo, edges, for"
    yield "each cascade. A search ends with its time: another machine may find other figures, and a wider limit may end"
    yield "in a larger head, since there is more to look at. Models without a convolution, and those that TFLM does not"
    yield "load, are left out. Limits and inputs that differ from the command's are stated with the model.\n"
    yield "Time is that of an invocation on TFLM's reference kernels by the original's: the median of up to 15 pairs in"
    yield f"turns, on two cores shared with others. It is noisy: {_noise(measured)} for graphs without stripes.\n"
    yield from _targets(measured)
    for name, runs in measured.items():
        if runs and name not in CHAINS:
            yield from _model(name, runs)
    chains = {name: runs for name, runs in measured.items() if runs and name in CHAINS}
    if chains:
        yield from _chains(chains)


def _noise(measured: Measured) -> str:
    """The range of the ratios where the graph has no stripes."""
    every = [run for runs in measured.values() for run in runs if run.mode != STOCK and not run.cascades]
    ratios = [run.ratio for run in every if run.ratio is not None]
    return f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "not measured"


def _targets(measured: Measured) -> Iterator[str]:
    yield "## What was to be reached\n"
    yield from table("what | limit | reached | met")
    for target in TARGETS:
        run = _find(measured, target.model, target.kernels, target.mode)
        if run is not None:
            what = f"{target.model}, `{target.kernels}`, {target.mode}"
            yield row(what, target.said or target.limit, run.head_cell, _yes(run.head <= target.limit))
    above = list(_above(measured, "total", NO_CASCADE, lambda run: run.required))
    yield row("total with the default objective, every model", "the uncascaded total", *_summary(above))
    above = list(_above(measured, "head", "total", lambda run: run.head))
    yield row("head with objective head, every model", "the head with the default objective", *_summary(above))
    yield ""


def _above(measured: Measured, mode: str, other: str, figure: Callable[[Run], int]) -> Iterator[str]:
    """Where a figure of one mode is larger than that of the other."""
    for name in measured:
        for kernels in KERNELS:
            run, base = (_find(measured, name, kernels, each) for each in (mode, other))
            if run is not None and base is not None and figure(run) > figure(base):
                yield f"{name}, `{kernels}`: {figure(run):,} > {figure(base):,}"


def _summary(above: Sequence[str]) -> tuple[str, str]:
    return "; ".join(above) or "never above it", _yes(not above)


def _yes(is_met: bool) -> str:
    return "yes" if is_met else "NO"


def _find(measured: Measured, name: str, kernels: str, mode: str) -> Run | None:
    found = (run for run in measured.get(name, ()) if (run.kernels, run.mode) == (kernels, mode))
    return next(found, None)


def _model(name: str, runs: Sequence[Run]) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{runs[0].how}\n"
    yield from table("kernels | run | head | total | extra MACs | operators | file bytes | time | stripes")
    for run in runs:
        yield row(
            run.kernels,
            run.mode,
            run.head_cell,
            run.required,
            f"{100 * run.extra_macs:+.1f} %",
            run.operators,
            run.file_bytes,
            "-" if run.ratio is None else f"{run.ratio:.2f}",
            "; ".join(run.cascades) or "-",
        )
    yield ""


def _chains(chains: Measured) -> Iterator[str]:
    yield "## The RFC's claim: MobileNet and VGG-16 at about a third of their initial peak\n"
    yield "The zoo's float networks, 224x224x3, with the head as objective. The initial peak is"
    yield "that of TFLM's own plan. The input alone is 602,112 bytes: 37.5 % of the initial peak of `mobilenet_like`,"
    yield "1,605,632 bytes, and no static plan goes below it. One invocation of `vgg_like` takes a minute on TFLM's"
    yield "reference kernels: plans that are not bold were not run. At most 10 % more MACs. What binds: in"
    yield "`mobilenet_like` the input; in `vgg_like` the first pool's output, 112x112x64 in 3,211,264 bytes, with the"
    yield "stripes before or behind it.\n"
    yield from (f"{name}: {runs[0].how}" for name, runs in chains.items())
    yield ""
    yield from table("model | kernels | halo | head | of the initial peak | extra MACs | operators | time | stripes")
    for name, runs in chains.items():
        stock = {run.kernels: run.head for run in runs if run.mode == STOCK}
        for run in runs:
            yield row(
                name,
                run.kernels,
                run.mode,
                run.head_cell,
                f"{100 * run.head / stock[run.kernels]:.1f} %",
                f"{100 * run.extra_macs:+.1f} %",
                run.operators,
                "-" if run.ratio is None else f"{run.ratio:.2f}",
                "; ".join(run.cascades) or "-",
            )
    yield ""
