"""the page iterative_graph_optimization: the claims judged, with the reasons, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from scripts.benchmarks.markdown_table import row, table

from .claims import Rerun
from .ilp import ABLATED, LARGEST, LONGER_WORK, NETWORKS, PART_SIZE, STEPS, SWEPT, Found, Solved, Stages
from .tables import ABLATION, HMCOS_HRNET, PARTITIONED, PARTS, PEAKS

_HRNETS = ("HRNet-W18-V1", "HRNet-W18-V2", "HRNet-W32")
_CLOSE = 0.1
_CELLS = [name for name in NETWORKS if not name.startswith("Rand")]


def reruns(found: Found) -> list[Rerun]:
    """Every claim of the paper's file."""
    return [*_peaks(found), *_least(found), *_scale(found), *_variables(found), *_partition(found), *_parts(found)]


def _peaks(found: Found) -> Iterator[Rerun]:
    exact = {name: runs[-1].printed.peak for name, runs in found.exact.items()}
    least = {name: _is_least(found, name, peak) for name, peak in exact.items()}
    best = sum(_is_least(found, name, each.best) for name, each in found.peaks.items())
    holds = all(least.values())
    yield Rerun(
        "least", f"{sum(least.values())} of 9", f"{best} of 9", holds, reason="" if holds else _why_above(found)
    )
    saved = [100 * (1 - exact[name] / each.rpo) for name, each in found.peaks.items()]
    ours = [100 * (1 - each.best / each.rpo) for each in found.peaks.values()]
    middle = [100 * (1 - each.best / each.walks[1]) for each in found.peaks.values()]
    why = (
        "The baseline is not one order. A reverse post-order is free in which operand it follows first, and over 100 "
        "random choices its peak spreads as the table below shows; against the median of them our default saves "
        f"{fmean(middle):.1f} %. So the figure says as much of that choice as of the scheduler. And AmoebaNet-A, where "
        "theirs is largest, is another network there: its published peaks are about twice ours "
        "(scripts/zoo_networks/README.md)."
    )
    for key, value, other, published in (
        ("mean_reduction", fmean(saved), fmean(ours), 13.4),
        ("most_reduction", max(saved), max(ours), 26.4),
    ):
        close = abs(value / published - 1) <= _CLOSE
        yield Rerun(key, f"{value:.1f}", f"{other:.1f}", close, value, why if not close else "")
        why = "" if not close else why


def _why_above(found: Found) -> str:
    """Which of the method's steps and of the solver leaves a peak above the least."""
    above = [name for name, runs in found.exact.items() if not _is_least(found, name, runs[-1].printed.peak)]
    cut = [name for name in above if found.exact[name][-1].every.peak > found.peaks[name].best]
    left = [name for name in above if name not in cut]
    finished = sum(pair[0].finished for pair in found.algorithm.values())
    ours = sum(pair[1].finished for pair in found.algorithm.values())
    return (
        f"Not for {', '.join(above)}. So that no solver decides, the part with the peak is given its least peak, "
        f"proved, in place of a program, with k = {LARGEST} parts, the largest of Table VI. Then what is left is the "
        f"method's: on {', '.join(cut) or 'none'} the cuts themselves (with every part at its least the peak stays "
        f"above the optimum), on {', '.join(left) or 'none'} that Algorithm 2 looks at one part only, and the peak is "
        "then in another, which keeps its reverse post-order. Smaller k come nearer: see Table VI below. The paper "
        f"gives no k for Table II. With the rows as printed HiGHS proves its part optimal on {finished} of 9 networks "
        f"within its work (a part for each {PART_SIZE} operators), with rows of ours in their place on {ours}."
    )


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
    authors, spent = HMCOS_HRNET
    ours = found.peaks["HRNet-W18-V1"].hmcos / 1024
    text = f"{authors} (the authors' code)"
    yield Rerun("hmcos_hrnet", text, f"{ours:.0f}", False, float(authors), _HMCOS.format(spent, ours))
    close = abs(rpo["NASNet-A"] / 4405 - 1) <= 0.01
    yield Rerun("nasnet", f"{rpo['NASNet-A']:.0f}", "-", close, rpo["NASNet-A"])
    seconds = [found.algorithm[name][0].seconds for name in _HRNETS]
    fine = [name for name in _HRNETS if found.algorithm[name][0].finished and found.algorithm[name][0].seconds <= 10]
    default = sum(found.peaks[name].best_seconds <= 10 for name in _HRNETS)
    why = (
        f"Processor seconds with HiGHS: {', '.join(f'{each:.0f}' for each in seconds)}, the part proved optimal: "
        f"{', '.join(_yes(found.algorithm[name][0]) for name in _HRNETS)}; where not, its work ended it. With rows of "
        f"ours in the same place: {', '.join(f'{found.algorithm[name][1].seconds:.1f}' for name in _HRNETS)} s, "
        f"proved: {', '.join(_yes(found.algorithm[name][1]) for name in _HRNETS)}. The parts and the variables are "
        f"the same, so it is the rows that slow HiGHS down. {_longer(found)} Gurobi is not at hand."
    )
    yield Rerun(
        "seconds_hrnet", f"{len(fine)} of 3", f"{default} of 3", len(fine) == 3, reason=why if len(fine) < 3 else ""
    )


def _longer(found: Found) -> str:
    """What more work does on Table III's networks."""
    ends = {
        name: [f"{_kb(one.peak)} KB, proved: {_yes(one)}, after {one.seconds:.1f} s" for one in pair]
        for name, pair in found.longer.items()
    }
    said = [f"{name} {printed}, with rows of ours {ours}" for name, (printed, ours) in ends.items()]
    return f"With {LONGER_WORK} times the work: {'; '.join(said)}."


_HMCOS = (
    "The authors' own code finds the least peak of any order on our graph of it, after {} s, and starts "
    "from the same 7,936 KB as Table II; ours, of the same method, finds {:.0f} KB, too. Our graph has batch norms and "
    "activations folded: 149 operators, where an exporter from a training framework writes some 315. Whether that is "
    "what took the rest of the 30,000 seconds was not tried."
)
_W32 = (
    "The paper contradicts itself: Table II says that their method needs 7,296 KB on HRNet-W32, Table V that the same "
    "method needs 6,368, which is there the optimum. Here {:.0f} KB is the least peak of any order, proved, on a "
    "network whose RPO has their 7,936 KB. So neither figure is that of the network whose RPO they print, as "
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
    times = [(found.sequences[name][1] / each.unfolded_printed, name) for name, each in found.scales.items()]
    wider_times = [found.sequences[name][1] / each.unfolded_wider for name, each in found.scales.items()]
    hrnets = [f"{each:.1f}" for each, name in times if name in _HRNETS]
    others = [each for each, name in times if name not in _HRNETS]
    hmcos = (
        "HMCOS's graph is counted in sequences, before any group, on the unfolded networks. On the networks of cells "
        f"it is as small as the fused one ({min(others):.1f} to {max(others):.1f} times), since both join chains; on "
        f"the HRNets it is {', '.join(hrnets)} times as large, since only fusion joins a residual block. The paper "
        "does not say how it counts."
    )
    fine = max(times)[0] >= 4 * (1 - _CLOSE)
    yield Rerun(
        "scale_hmcos", f"{max(times)[0]:.1f}", f"{max(wider_times):.1f}", fine, max(times)[0], "" if fine else hmcos
    )
    kept = sum(each.peaks[0] == each.peaks[1] for each in found.scales.values())
    wide = sum(each.peaks[0] == each.peaks[2] for each in found.scales.values())
    why = (
        f"It does on {kept} of the 9 networks: the least peak of any order, proved before and after. It does not "
        "always: six operators in tests/evidence/test_ilp_as_printed.py need 180 bytes, and 200 after fusion. The "
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
    kept, worse = dict[int, list[str]](), dict[int, list[str]]()
    for k in range(2, LARGEST + 1):
        runs = {name: found.exact[name][k - 1] for name in _CELLS}
        kept[k] = [name for name, run in runs.items() if run.printed.peak == found.peaks[name].best]
        worse[k] = [name for name, run in runs.items() if run.naive.peak > run.printed.peak]
    counts = ", ".join(str(len(names)) for names in kept.values())
    holds = max(map(len, kept.values())) >= 5
    yield Rerun("heuristic", f"{counts} of 6 at k = 2 to {LARGEST}", "6 of 6", holds)
    most = max(len(names) for names in worse.values())
    shown = f"{', '.join(str(len(names)) for names in worse.values())} of 6 at k = 2 to {LARGEST}"
    yield Rerun("naive", shown, "-", most >= 5, reason="" if most >= 5 else _NAIVE)


_NAIVE = (
    "The paper does not say what its naive partition minimizes; ours minimizes the number of tensors that cross. In "
    "these networks tensors at a cell's border are of one size, so that the two cuts are often the same. That dagP's "
    "cuts without weights are worse than ours by tensors is possible, and cannot be told from the text."
)


def _parts(found: Found) -> Iterator[Rerun]:
    for key, name in zip(("parts_hrnet", "parts_nasnet"), SWEPT, strict=True):
        best = found.peaks[name].best
        every = [k for k, run in enumerate(found.exact[name], 1) if k > 1 and run.every.peak == best]
        reached = [k for k, run in enumerate(found.exact[name], 1) if k > 1 and run.printed.peak == best]
        text = ", ".join(map(str, reached)) or "none"
        holds = text == ("2, 3, 4, 5" if key == "parts_hrnet" else "2, 3, 4, 5, 6")
        reason = (
            f"With every part at its least, proved, the whole is at its least for k = {', '.join(map(str, every))} "
            "only: beyond that no order within these parts has it, whatever orders them. So it is the cuts that "
            "differ: dagP's may leave the operators of the peak in one part for longer. Ours lie where the fewest "
            "bytes cross, within parts of at most 1.4 times the mean."
        )
        yield Rerun(key, text, "all (no parts)", holds, reason="" if holds else reason)


def tables(found: Found, stages: Sequence[Stages]) -> Iterator[str]:
    """Their tables with ours beside them."""
    yield from _table2(found)
    yield from _stages(stages)
    yield from _hmcos()
    yield from _formulation()
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
    yield "20. So the graphs have 78 channels as ours. Below is the first stage alone over seeds, in these units"
    yield "(least, median, largest). The seeds of the published graphs are not known. Their optima of 19 and 20 are"
    yield "common where the inputs of a vertex are gathered in one tensor, as the script of wzh99/HMCOS has it"
    yield "(`tf.stack`), and rare or absent in the other forms; 26 comes in none of them.\n"
    yield from table("form | seeds | operators, mean | rpo | optimum | seeds with an optimum of 19, 20, 26")
    for each in stages:
        yield row(each.form, each.seeds, f"{each.operators:.0f}", _spread(each.rpo), _spread(each.best), each.hits)
    yield ""


def _spread(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _hmcos() -> Iterator[str]:
    yield "## HMCOS: the authors' code\n"
    yield "Built and run on the graphs of Table II by a command of its own: [hmcos](hmcos.md). Where it ends, its"
    yield "schedule needs as much as that of our `hmcos`.\n"
    yield "RandWire as converted has no concatenation and HRNet none either, so that its passes make no groups there,"
    yield "and its dynamic program runs over the whole graph. RandWire with gathered inputs (three whole networks of"
    yield "seeds 2 and 3): 4777 KB each, in 22.3 and 17.3 s; our default needs the same 4777 KB, proved, in 0.12 and"
    yield "0.14 s. It is Table II's figure for Randwire3.\n"


def _formulation() -> Iterator[str]:
    yield "## The formulation as printed\n"
    yield "Three things in (1) to (10) cannot be meant as they are printed; each has a test in"
    yield "tests/evidence/test_ilp_as_printed.py. The first two are mended in what runs here, the third is left."
    yield ""
    yield "- Nothing keeps an output of the graph in memory, since no operator reads it: a graph of one operator"
    yield "  needs its input alone. Here one equation more keeps it."
    yield "- (10) lets a tensor end after its reader with the *most* descendants. The ADD of a residual block has"
    yield "  fewer, and reads it later: then no order is left. Here it is the reader with the fewest."
    yield "- (6) holds for every operator at every step, so that a negative extra size of a fused operator, which"
    yield "  Definition 5 allows, has no effect."
    yield ""


def _figure9(found: Found) -> Iterator[str]:
    yield "## Figure 9: operators\n"
    yield "`HMCOS`: sequences of its graph. `fused`: as printed. Unfolded: with batch norms and activations as"
    yield "operators of their own; `times`: operators over fused.\n"
    yield from table("network | operators | HMCOS | fused | wider | unfolded | HMCOS | fused | wider | times")
    for name, each in found.scales.items():
        folded, unfolded = found.sequences[name]
        before = each.operators, folded, each.printed, each.wider
        after = each.unfolded, unfolded, each.unfolded_printed, each.unfolded_wider
        yield row(name, *before, *after, f"{each.unfolded / each.unfolded_printed:.1f}")
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
    yield _LARGE


_LARGE = """
Programs above 4,000 variables were run once by hand, with ten times the usual work (1.0) and 150 s of the clock on a
busy machine. None was proved: HRNet-W18-V1's part without fusion and pruning (5,772 variables) after 35 s of the
processor, NASNet-A's (5,512) after 27 s, HRNet-W18-V1's with k = 2 (5,091) after 41 s, Randwire1's with both steps
(22,474) after 38 s; none found a smaller peak than the order it began with. What binds is HiGHS on these rows; theirs
were solved by Gurobi.
"""


def _tables5and6(found: Found) -> Iterator[str]:
    yield "## Tables V and VI: number of parts, KB\n"
    yield "For k from 1 to 6, with a part's least peak, proved, in place of a program: Algorithm 2 as printed; the"
    yield "same with every part at its least, which is what the cuts leave; and as printed on the naive partition.\n"
    yield from table("network | theirs: optimal, naive, heuristic | least | printed | every part | naive")
    for name, runs in found.exact.items():
        theirs = ", ".join(map(str, PARTITIONED.get(_published(name), ("-",))))
        three = ([run.printed for run in runs], [run.every for run in runs], [run.naive for run in runs])
        texts = (", ".join(_kb(run.peak) for run in some) for some in three)
        yield row(name, theirs, _kb(found.peaks[name].best), *texts)
    yield "\nWith HiGHS, k from 2 to 6, stopped by its work:\n"
    yield from table("network | k | theirs: KB, seconds | printed: KB, seconds, variables, proved | our rows: the same")
    for name, pairs in found.swept.items():
        for k, pair in enumerate(pairs, 2):
            theirs = ", ".join(map(str, PARTS[_published(name)][k]))
            yield row(name, k, theirs, *(f"{_kb(e.peak)}, {e.seconds:.1f}, {e.variables:,}, {_yes(e)}" for e in pair))


def _yes(run: Solved) -> str:
    return "not run" if run.too_large else "yes" if run.finished else "no"
