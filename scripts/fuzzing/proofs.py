"""Mutants of models and of plans, judged: ``scripts/fuzz proof``."""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.fuzzing.judge import RUNTIMES, Counts, Original, differs, is_of_version
from scripts.fuzzing.mutants import mutant, root_of, sites_of
from scripts.fuzzing.originals import original
from scripts.fuzzing.plans import Planned, planned
from scripts.fuzzing.streams import Stream, streams
from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.adapter import ModelRun
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits

_LIMITS = ProcessLimits(20.0, 4 << 30)
"""Of a runtime for one mutant: some would run for ever."""
_PER_MODEL, _PER_STREAM, _FEW = 200, 60, 4


@dataclass(frozen=True)
class Attack:
    """``seconds``: after which no other model is begun; ``keep``: a folder for what is false."""

    seed: int
    samples: int
    seconds: float
    keep: Path | None

    def keeps(self, name: str, *files: bytes) -> None:
        """Write the files of a false proof."""
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            for letter, data in zip("abcdef", files, strict=False):
                (self.keep / f"{name}_{letter}.tflite").write_bytes(data)


def attacked(attack: Attack, count: int, first: int = 0) -> Counts:
    """Mutate originals, one after the other, until there are ``count`` mutants or the time is over."""
    counts, started, number = Counts(), time.monotonic(), first
    with Interpreters(RUNTIMES, _LIMITS) as interpreters:
        while sum(counts.tried.values()) < count and time.monotonic() - started < attack.seconds:
            kind, data = original(number, attack.seed)
            try:
                model = Original(data, interpreters, attack.samples, attack.seed)
                if model.runs:
                    _mutate(attack, counts, kind, str(number), model, data, _PER_MODEL)
            except MemoptError:
                counts.ends["original refused"] += 1
            number += 1
    return counts


def _mutate(attack: Attack, counts: Counts, kind: str, name: str, model: Original, data: bytes, count: int) -> None:
    """Judge up to ``count`` different mutants of a file that is proved equal to the original ``model``."""
    draw, seen = random.Random(f"mutants {attack.seed} {name}"), {hashlib.sha256(data).digest()}
    root = root_of(data)
    sites = sites_of(root)
    for _ in range(count):
        found = mutant(root, sites, draw)
        if found is None:
            continue
        site, changed = found
        digest = hashlib.sha256(changed).digest()
        if digest in seen:
            continue
        seen.add(digest)
        counts.tried[kind] += 1
        counts.fields[str(site)] += 1
        end, wrong = model.verdict(changed, str(site))
        counts.ends[end] += 1
        counts.proved[kind] += end == "proved"
        if wrong is not None:
            counts.false.append(f"{kind}: {name}, {site}: {wrong}")
            attack.keeps(f"{name}_{len(counts.false)}", model.data, changed)


def attacked_plans(attack: Attack, count: int, first: int = 0) -> Counts:
    """Move every tensor of planned models to every multiple of 16, until there are ``count`` plans or time is over."""
    counts, end = Counts(), time.monotonic() + attack.seconds
    with Interpreters(("tflm",), _LIMITS) as interpreters:
        for base, wanted, where, data in _plans(attack, first, interpreters):
            if sum(counts.tried.values()) >= count or time.monotonic() > end:
                break
            counts.tried[base.kind] += 1
            verdict, wrong = _plan_verdict(base, data), None
            if verdict == "proved":
                run = _run(attack, base, data, interpreters)
                differing = "TFLM differs" if run.ran and differs(wanted, run) else None
                wrong = differing if run.ran else run.reason
            elif verdict.startswith("crashed"):
                wrong = verdict
            counts.ends[verdict.split(":")[0]] += 1
            counts.proved[base.kind] += verdict == "proved"
            if wrong is not None:
                counts.false.append(f"{base.kind}: {where}: {wrong}")
                attack.keeps(f"plan_{len(counts.false)}", base.data, data)
    return counts


def _plans(attack: Attack, first: int, interpreters: Interpreters) -> Iterator[tuple[Planned, ModelRun, str, bytes]]:
    """Planned models, what TFLM computes of each, and the variants: of the models of a number, one each in turn."""
    for number in itertools.count(first):
        draw = random.Random(f"variants {attack.seed} {number}")
        left = []
        for base in planned(number, attack.seed):
            wanted = _run(attack, base, base.data, interpreters)
            if wanted.ran:
                left.append((base, wanted, base.moved(draw)))
        while left:
            for each in list(left):
                base, wanted, variants = each
                variant = next(variants, None)
                if variant is None:
                    left.remove(each)
                else:
                    yield base, wanted, *variant


def _run(attack: Attack, base: Planned, data: bytes, interpreters: Interpreters) -> ModelRun:
    return base.run(data, min(attack.samples, _FEW), attack.seed, interpreters)


def _plan_verdict(base: Planned, data: bytes) -> str:
    try:
        return base.proof(data).status.name.lower()
    except MemoptError:
        return "refused"
    except Exception as error:
        return f"crashed: {type(error).__name__}: {error}"


def attacked_streams(attack: Attack, count: int, first: int = 0) -> Counts:
    """Change slid, stepped, fed, and parted results, until there are ``count`` of them or the time is over."""
    counts, end = Counts(), time.monotonic() + attack.seconds
    with Interpreters(RUNTIMES, _LIMITS) as interpreters:
        for name, stream in _streams(attack, first, interpreters):
            if sum(counts.tried.values()) >= count or time.monotonic() > end:
                break
            draw, seen = random.Random(f"changes {attack.seed} {name}"), set[str]()
            for _ in range(_PER_STREAM):
                found = stream.changed(draw)
                if found is None or repr(found) in seen:
                    continue
                site, changed = found
                seen.add(repr(found))
                counts.tried[stream.kind] += 1
                counts.fields[site] += 1
                verdict = stream.verdict(changed)  # type: ignore[arg-type] # of the same kind
                counts.ends[verdict.end] += 1
                counts.proved[stream.kind] += verdict.end == "proved"
                if verdict.wrong is not None and not is_of_version(site, verdict.wrong):
                    counts.false.append(f"{stream.kind}: {name}, {site}: {verdict.wrong}")
                    files = (changed,) if isinstance(changed, bytes) else (changed[0].encode(), *changed[1])
                    attack.keeps(f"stream_{len(counts.false)}", stream.original, *files)
    return counts


def _streams(attack: Attack, first: int, interpreters: Interpreters) -> Iterator[tuple[str, Stream]]:
    """Results that are themselves proved, of originals that some runtime runs."""
    for number in itertools.count(first):
        for place, stream in enumerate(streams(number, attack.seed, interpreters)):
            if stream.runs and stream.verdict(stream.unchanged).end == "proved":  # type: ignore[arg-type]
                yield f"{number}.{place}", stream


def pairs_in(folder: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """Pairs NAME.original.tflite, NAME.result.tflite of a folder."""
    for path in sorted(folder.glob("*.original.tflite")):
        name = path.name.removesuffix(".original.tflite")
        yield name, path.read_bytes(), path.with_name(f"{name}.result.tflite").read_bytes()


def attacked_results(attack: Attack, count: int, folder: Path) -> Counts:
    """Mutate the results of pairs, ``count`` mutants in all."""
    counts = Counts()
    pairs = list(pairs_in(folder))
    with Interpreters(RUNTIMES, ProcessLimits(120.0, 8 << 30)) as interpreters:
        for number, (name, before, result) in enumerate(pairs):
            model = Original(before, interpreters, attack.samples, attack.seed)
            _mutate(attack, counts, name, f"result{number}", model, result, count // max(1, len(pairs)))
    return counts
