"""docs/evidence/iterative_graph_optimization.md: the claims judged, with the reasons, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from markdown_table import row, table
from paper_claims import Rerun
from paper_ilp import ABLATED, NETWORKS, PART_SIZE, STEPS, SWEPT, Found, Solved, Stages
from paper_tables import ABLATION, HMCOS_AUTHORS, PARTITIONED, PEAKS

_HRNETS = ("HRNet-W18-V1", "HRNet-W18-V2", "HRNet-W32")
_CLOSE = 0.1
_CELLS = [name for name in NETWORKS if not name.startswith("Rand")]


def reruns(found: Found) -> list[Rerun]:
    """Every claim of the paper's file."""
    return [*_peaks(found), *_least(found), *_scale(found), *_variables(found), *_partition(found), *_parts(found)]


def _peaks(found: Found) -> Iterator[Rerun]:
    printed = {name: pair[0].peak for name, pair in found.algorithm.items()}
    least = [_is_least(found, name, printed[name]) for name in found.peaks]
    above = ", ".join(name for name, good in zip(found.peaks, least, strict=True) if not good)
    finished = [name for name, pair in found.algorithm.items() if pair[0].finished]
    better = [name for name, pair in found.algorithm.items() if pair[1].peak < pair[0].peak]
    larger = max(pair[0].variables for pair in found.algorithm.values())
    reason = (
        f"It is not for {above}. Two things bind. (1) The solver: with the rows as printed HiGHS proves the part with "
        f"the peak optimal on {len(finished)} of 9 networks within its work; the parts have up to {larger:,} "
        "variables. With rows of ours in the same place, which say the same of whole numbers and more of fractions, "
        f"the peak is lower on {len(better)} of them ({', '.join(better) or 'none'}), all else being alike. The "
        "authors had Gurobi. (2) The method: after one part is solved, the peak may be in another one, which "
        f"Algorithm 2 leaves in reverse post-order; and k is not given (here a part for each {PART_SIZE} operators). "
        "Our default, which is not this method, meets the least peak of any order, proved, on all nine."
    )
    best = sum(_is_least(found, name, found.peaks[name].best) for name in found.peaks)
    holds = all(least)
    yield Rerun("least", f"{sum(least)} of 9", f"{best} of 9", holds, reason="" if holds else reason)
    saved = [100 * (1 - printed[name] / found.peaks[name].rpo) for name in found.peaks]
    ours = [100 * (1 - each.best / each.rpo) for each in found.peaks.values()]
    wide = [100 * (1 - each.best / each.walks[1]) for each in found.peaks.values()]
    why = (
        "The baseline is not one order. A reverse post-order is free in which operand it follows first, and over 100 "
        "random choices its peak spreads as the table below shows; against the median of them our default saves "
        f"{fmean(wide):.1f} %. The figure says as much of the choice as of the scheduler. And AmoebaNet-A, where "
        "theirs is largest, is another network there: its published peaks are twice ours (see docs/zoo.md)."
    )
    for key, value, other, published in (
        ("mean_reduction", fmean(saved), fmean(ours), 13.4),
        ("most_reduction", max(saved), max(ours), 26.4),
    ):
        close = abs(value / published - 1) <= _CLOSE
        shown = why if key == "mean_reduction" and not close else ""
        yield Rerun(key, f"{value:.1f}", f"{other:.1f}", close, value, shown)


def _is_least(found: Found, name: str, peak: int) -> bool:
    each = found.peaks[name]
    return peak <= min(each.rpo, each.serenity, each.hmcos)


def _least(found: Found) -> Iterator[Rerun]:
    rpo = {name: found.peaks[name].rpo / 1024 for name in found.peaks}
    best = {name: found.peaks[name].best / 1024 for name in found.peaks}
    walked = sorted({round(rpo[name]) for name in _HRNETS})
    yield Rerun("rpo_hrnet", ", ".join(map(str, walked)), "-", walked == [7936], rpo[_HRNETS[0]])
    for key, name, published in (
        ("hrnet_v1", "HRNet-W18-V1", 6368),
        ("hrnet_v2", "HRNet-W18-V2", 6396),
        ("hrnet_w32", "HRNet-W32", 6368),
        ("darts", "Darts", 1764),
    ):
        same = round(best[name]) == published
        reason = _W32.format(best[name]) if key == "hrnet_w32" and not same else ""
        yield Rerun(key, f"{best[name]:.0f}", f"{best[name]:.0f}", same, best[name], reason)
    close = abs(rpo["NASNet-A"] / 4405 - 1) <= 0.01
    yield Rerun("nasnet", f"{rpo['NASNet-A']:.0f}", "-", close, rpo["NASNet-A"])
    seconds = [found.algorithm[name][0].seconds for name in _HRNETS]
    fine = [name for name in _HRNETS if found.algorithm[name][0].finished and found.algorithm[name][0].seconds <= 10]
    default = sum(found.peaks[name].best_seconds <= 10 for name in _HRNETS)
    why = (
        f"Processor seconds with HiGHS, which was stopped by its work: {', '.join(f'{each:.0f}' for each in seconds)}. "
        "The same part with rows of ours took "
        f"{', '.join(f'{found.algorithm[name][1].seconds:.1f}' for name in _HRNETS)} s (proved optimal for the part: "
        f"{', '.join('yes' if found.algorithm[name][1].finished else 'no' for name in _HRNETS)}). "
        "The program is the paper's to the letter, so what differs is the solver and the machine."
    )
    yield Rerun(
        "seconds_hrnet", f"{len(fine)} of 3", f"{default} of 3", len(fine) == 3, reason=why if len(fine) < 3 else ""
    )


_W32 = (
    "The paper contradicts itself: Table II says that their method needs 7,296 KB on HRNet-W32, Table V that the same "
    "method needs 6,368, which is there the optimum. Here {:.0f} KB is the least peak of any order, proved, on a "
    "network whose RPO has their 7,936 to the byte. So neither figure is that of the network whose RPO they print, as "
    "far as it is ours: 7,296 is above the optimum and 6,368, the figure of V1, below it."
)


def _scale(found: Found) -> Iterator[Rerun]:
    folded = max(found.scales.items(), key=lambda pair: pair[1].operators / pair[1].printed)
    ratio = folded[1].operators / folded[1].printed
    before = max(each.unfolded / each.unfolded_printed for each in found.scales.values())
    wider = max(each.unfolded / each.unfolded_wider for each in found.scales.values())
    reason = (
        f"On the graphs that the TFLite converter writes it is {ratio:.1f} at most ({folded[0]}), since batch norms "
        "and activations are folded into the convolutions already. Put back as operators of their own, as an exporter "
        f"from a training framework writes them, fusion as printed makes {before:.1f} times fewer operators at most, "
        f"and its wider form {wider:.1f} times. So most of the published factor is chains that any converter folds."
    )
    close = abs(before / 6 - 1) <= _CLOSE
    best = max(each.operators / each.wider for each in found.scales.values())
    yield Rerun(
        "scale", f"{ratio:.1f}; unfolded {before:.1f}", f"{best:.1f}; unfolded {wider:.1f}", close, before, reason
    )
    kept = sum(each.peaks[0] == each.peaks[1] for each in found.scales.values())
    wide = sum(each.peaks[0] == each.peaks[2] for each in found.scales.values())
    why = (
        f"It does on {kept} of the 9 networks: the least peak of any order, proved before and after. It does not "
        "always: six operators in tests/schedule/test_ilp_as_printed.py need 180 bytes, and 200 after fusion. The "
        "theorem compares the ends of a sub-graph with the half-done states of one inner order, the one with the "
        "smallest peak; another inner order may pass through a lighter state, and while others run it pays to wait "
        "there. The proof's step from (17) to (18) moves only operators of that one order. Our fusion asks the same "
        "of every half-done state, and is tested against all orders."
    )
    yield Rerun(
        "optimality", f"{kept} of 9 networks; a counterexample exists", f"always ({wide} of 9)", False, reason=why
    )


def _variables(found: Found) -> Iterator[Rerun]:
    steps = {
        "variables_fusion": "partition + fusion",
        "variables_pruning": "partition + pruning",
        "variables_all": "all",
    }
    published = {"variables_fusion": 87.6, "variables_pruning": 42.3, "variables_all": 86.7}
    first = True
    for key, step in steps.items():
        cut = [100 * (1 - each[step].variables / each["partition"].variables) for each in found.steps.values()]
        holds = abs(fmean(cut) / published[key] - 1) <= _CLOSE
        reason = _steps_reason(found) if first and not holds else ""
        first = first and holds
        yield Rerun(key, ", ".join(f"{each:.1f}" for each in cut), "-", holds, fmean(cut), reason)


def _steps_reason(found: Found) -> str:
    shrunk = {
        name: each["partition"].operators / each["partition + fusion"].operators for name, each in found.steps.items()
    }
    return (
        "Variables are about twice the square of a part's operators, so the published counts say how large the parts "
        "were: 2,903 is 38 operators, 402 is 14; 21,120 is 102, and 2,292 is 33; 2,511 is 35, and 310 is 12. Fusion "
        "made their parts 2.7, 3.1 and 2.9 times smaller; here "
        f"{', '.join(f'{each:.1f}' for each in shrunk.values())} times, k being the same before and after, since the "
        "graphs are folded already (see Figure 9) and RandWire's vertices have several inputs each, which are no "
        "isolated sub-graphs. Of the printed table itself, NASNet-A's row cannot be right: 590 variables with fusion "
        "and pruning against 402 with fusion alone, where pruning can only take variables away."
    )


def _partition(found: Found) -> Iterator[Rerun]:
    by_bytes = {name: found.algorithm[name][1].peak for name in _CELLS}
    naive = {name: found.naive[name].peak for name in _CELLS}
    kept = [name for name in _CELLS if by_bytes[name] == found.peaks[name].best]
    worse = [name for name in _CELLS if naive[name] > by_bytes[name]]
    why = (
        f"With a part for each {PART_SIZE} operators and rows of ours, so that the solver decides less. The parts "
        f"here have {min(found.algorithm[name][1].operators for name in _CELLS)} to "
        f"{max(found.algorithm[name][1].operators for name in _CELLS)} operators; the paper does not say its k for "
        "this table. Where the peak stays above the optimum, it is either in a part that Algorithm 2 does not look at "
        "again, or the solver ended before the optimum: Table V below says which. dagP, which they cut with, is not "
        "at hand; ours minimises the same sum."
    )
    yield Rerun("heuristic", f"{len(kept)} of 6", "6 of 6", len(kept) >= 5, reason="" if len(kept) >= 5 else why)
    yield Rerun("naive", f"{len(worse)} of 6", "-", len(worse) >= 5, reason="" if len(worse) >= 5 else _NAIVE)


_NAIVE = (
    "Both partitions minimise a cut, one in bytes and one in tensors, and in these networks tensors at a cell's border "
    "are of one size, so that the two are often the same cut. The paper does not say what its naive partition "
    "minimises."
)


def _parts(found: Found) -> Iterator[Rerun]:
    for key, name in zip(("parts_hrnet", "parts_nasnet"), SWEPT, strict=True):
        best = found.peaks[name].best
        texts = []
        for which in (0, 1):
            texts.append(
                ", ".join(str(k) for k, pair in enumerate(found.swept[name], 2) if pair[which].peak == best) or "none"
            )
        published = "2, 3, 4, 5" if key == "parts_hrnet" else "2, 3, 4, 5, 6"
        holds = texts[0] == published
        reason = (
            ""
            if holds
            else f"With rows of ours in place of the printed ones, all else alike: {texts[1]}. See Table VI below "
            "for which programs came to an end."
        )
        yield Rerun(key, texts[0], "all (no parts)", holds, reason=reason)


def tables(found: Found, stages: Sequence[Stages]) -> Iterator[str]:
    """Their tables with ours beside them."""
    yield from _table2(found)
    yield from _stages(stages)
    yield from _hmcos(found)
    yield from _figure9(found)
    yield from _table4(found)
    yield from _tables5and6(found)


def _table2(found: Found) -> Iterator[str]:
    yield "## Tables II and III: peaks, KB, and processor seconds\n"
    yield "Whole tensors, no views, nothing rounded. `rpo`: depth first from the outputs, and the range over 100"
    yield "random choices of which operand comes first. `printed`: Algorithm 2 with the k of the table; `our rows`:"
    yield "the same with this project's integer program in its place. `+`: the solver proved its part optimal. `-`:"
    yield "SERENITY ended without a schedule, and the file's order counts. `least`: our default, proved for any"
    yield "order.\n"
    peaks = (
        "theirs: rpo, serenity, hmcos, theirs | rpo | random rpo | serenity | hmcos | k | printed | our rows | least"
    )
    yield from table(f"network | {peaks} | seconds: hmcos | printed | our rows | default")
    for name, each in found.peaks.items():
        printed, ours = found.algorithm[name]
        low, middle, high = (f"{peak / 1024:.0f}" for peak in each.walks)
        yield row(
            name,
            ", ".join(map(str, PEAKS[_published(name)])),
            _kb(each.rpo),
            f"{low} to {high}, median {middle}",
            _kb(each.serenity) + ("" if each.serenity_solved else " -"),
            _kb(each.hmcos),
            found.parts[name],
            _kb(printed.peak) + (" +" if printed.finished else ""),
            _kb(ours.peak) + (" +" if ours.finished else ""),
            _kb(each.best),
            *(f"{seconds:.2f}" for seconds in (each.hmcos_seconds, printed.seconds, ours.seconds, each.best_seconds)),
        )
    yield ""


def _published(name: str) -> str:
    """The name in ``paper_tables``."""
    return NETWORKS[name].removesuffix("_narrow")


def _kb(nbytes: int) -> str:
    return f"{nbytes / 1024:.0f}"


def _stages(stages: Sequence[Stages]) -> Iterator[str]:
    yield "## RandWire: how a vertex is written down\n"
    yield "The published peaks are whole numbers of one tensor, 28x28x78 floats: RPO 23, 29 and 22, theirs 19, 26 and"
    yield "20. So the graphs have 78 channels as ours. Over seeds, the first stage alone, in these units (least,"
    yield "median, largest): written as pairs of two no seed has an optimum of 19, written as gathered inputs many"
    yield "do. The graphs' seeds were not published; what can be told is that the published optima fit the second"
    yield "form and not the first.\n"
    yield from table("form | seeds | operators, mean | rpo | optimum | seeds with an optimum of 19, 20, 26")
    for each in stages:
        yield row(each.form, each.seeds, f"{each.operators:.0f}", _spread(each.rpo), _spread(each.best), each.hits)
    yield ""


def _spread(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _hmcos(found: Found) -> Iterator[str]:
    yield "## HMCOS: the authors' code\n"
    yield "wzh99/HMCOS at cf547ee, built with g++ 12 against ONNX 1.12 and protobuf 3.21, and run once outside the"
    yield "project. Its graphs are those of Table II above as ONNX files, one node for an operator: `Concat` for a"
    yield "concatenation, since there its cells end, and `Conv` for all else, so that nothing counts as computed in"
    yield "place. KB, and seconds of wall time on a busy machine. To build it: a header that it forgets (`memory`), a"
    yield "font and a Python command that it names for Windows and macOS only, a member that is called like its type"
    yield "(`-fpermissive`), and pointers in place of two iterator casts that newer protobufs refuse. To run Darts:"
    yield "it ends with a segmentation fault where the peak holds the network's input, which no operator makes; the"
    yield "figure is with a guard there.\n"
    yield from table(
        "network | their rpo | ours | their schedule | our `hmcos` | least | their seconds | our `hmcos`, seconds"
    )
    for name, each in found.peaks.items():
        if _published(name) in HMCOS_AUTHORS:
            rpo, peak, seconds = HMCOS_AUTHORS[_published(name)]
            ours = _kb(each.rpo), peak, _kb(each.hmcos), _kb(each.best)
            yield row(name, rpo, *ours, seconds, f"{each.hmcos_seconds:.2f}")
    yield ""
    yield "RandWire as converted has no concatenation and HRNet none either, so that its passes make no groups there,"
    yield "and its dynamic program runs over the whole graph. RandWire with gathered inputs (three whole networks of"
    yield "seeds 2 and 3): 4777 KB each, in 22.3 and 17.3 s; our default needs the same 4777 KB, proved, in 0.12 and"
    yield "0.14 s. It is Table II's figure for Randwire3.\n"


def _figure9(found: Found) -> Iterator[str]:
    yield "## Figure 9: operators\n"
    yield "Unfolded: with batch norms and activations as operators of their own.\n"
    yield from table("network | operators | fused as printed | wider | unfolded | fused as printed | wider | times")
    for name, each in found.scales.items():
        after = each.unfolded, each.unfolded_printed, each.unfolded_wider
        yield row(name, each.operators, each.printed, each.wider, *after, f"{after[0] / after[1]:.1f}")
    yield ""


def _table4(found: Found) -> Iterator[str]:
    yield "## Table IV: size of the program after each step\n"
    yield "k is chosen so that a part has about the published size before any step:"
    yield f"{', '.join(map(str, ABLATED.values()))}. `origin` has a column for each operator and tensor and each"
    yield "step; it was not run here, nor ended there. Peaks in KB.\n"
    yield from table("network | step | theirs: variables, seconds | operators | variables | seconds | proved | peak")
    for name, steps in found.steps.items():
        published = ABLATION[_published(name)]
        yield row(name, "origin", ", ".join(reversed(published["origin"])), "", found.origin[name], "-", "-", "-")
        for step in STEPS:
            each = steps[step]
            theirs = ", ".join(reversed(published[step]))
            yield row(
                name, step, theirs, each.operators, each.variables, f"{each.seconds:.1f}", _yes(each), _kb(each.peak)
            )
    yield ""


def _tables5and6(found: Found) -> Iterator[str]:
    yield "## Table V: what partition costs, KB\n"
    yield from table(
        "network | k | theirs: optimal, naive, heuristic | least | naive | by bytes | proved: naive, by bytes"
    )
    for name in _CELLS:
        naive, ours = found.naive[name], found.algorithm[name][1]
        proved = f"{_yes(naive)}, {_yes(ours)}"
        theirs = ", ".join(map(str, PARTITIONED[_published(name)]))
        yield row(name, found.parts[name], theirs, _kb(found.peaks[name].best), _kb(naive.peak), _kb(ours.peak), proved)
    yield "\n## Table VI: number of parts\n"
    yield from table("network | k | printed: KB, seconds, variables, proved | our rows: KB, seconds, variables, proved")
    for name, runs in found.swept.items():
        for k, pair in enumerate(runs, 2):
            yield row(name, k, *(f"{_kb(e.peak)}, {e.seconds:.1f}, {e.variables:,}, {_yes(e)}" for e in pair))


def _yes(run: Solved) -> str:
    if run.too_large:
        return "not run"
    return "yes" if run.finished else "no"
