"""A whole run: jobs go to workers, and each answer is written down at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..io.files import write_files
from .engines import Engine, WorkersLostError
from .find import FoundModel
from .job import DONE, BatchJob, BatchSetting, ModelOutcome
from .store import MODELS, ResultStore

_TRIES = 2
"""Losses of workers in a row, with no model done between, until models are tried one by one."""


@dataclass(frozen=True)
class BatchPlan:
    """What to do: ``models`` of which those in ``skipped`` (by content) are done, and where the results go.

    ``is_shared``: workers read and write the files themselves. ``keeps_models``: the optimized models are kept.
    """

    models: Sequence[FoundModel]
    skipped: frozenset[str]
    folder: Path
    setting: BatchSetting
    is_shared: bool = False
    keeps_models: bool = True


@dataclass
class BatchState:
    """How far a run is: ``total`` models are to do in it; ``counts``: how many ended in each status."""

    total: int
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        """How many have a row now."""
        return self.counts.total()


Watch = Callable[[BatchState, str, ModelOutcome | None], None]
"""Told after each model: the state, its name and outcome; or, with no outcome, of an event."""


def run_batch(plan: BatchPlan, engine: Engine, store: ResultStore, watch: Watch) -> BatchState:
    """Do all models that are not done. What was done before an interruption stays written down.

    Raises OutputError when results cannot be written.
    """
    return _Running(plan, engine, store, watch).run()


class _Running:
    def __init__(self, plan: BatchPlan, engine: Engine, store: ResultStore, watch: Watch) -> None:
        self._plan, self._engine, self._store, self._watch = plan, engine, store, watch
        self._options = store.keep_options(plan.setting.options)
        # Of files with the same content, the first by name stands for all. The largest go first: a long one that
        # came last would keep one worker busy and all others idle.
        distinct = {model.content: model for model in reversed(plan.models) if model.content not in plan.skipped}
        self._left = dict(sorted(distinct.items(), key=lambda item: (-item[1].nbytes, item[1].name)))
        self._crowded: list[FoundModel] = []
        self._done: set[str] = set()
        self._state = BatchState(len(self._left))

    def run(self) -> BatchState:
        self._store.keep_files(self._plan.models)
        self._all_at_once()
        self._one_by_one(list(self._left.values()), self._plan.setting)
        limits = self._plan.setting.limits
        alone = replace(self._plan.setting, limits=replace(limits, shares=1))
        self._one_by_one(self._crowded, alone)
        self._copy_to_equals()
        return self._state

    def _all_at_once(self) -> None:
        tries = _TRIES
        while self._left and tries:
            before = len(self._left)
            try:
                with closing(self._map(list(self._left.values()), self._plan.setting)) as outcomes:
                    for outcome in outcomes:
                        self._keep(outcome, is_crowded=self._can_have_more)
            except WorkersLostError as error:
                tries = tries - 1 if len(self._left) == before else _TRIES
                self._say(f"a worker died, {len(self._left)} models go to others: {error}")

    def _one_by_one(self, models: Sequence[FoundModel], setting: BatchSetting) -> None:
        for model in models:
            self._keep(self._alone(model, setting), is_crowded=False)

    def _alone(self, model: FoundModel, setting: BatchSetting) -> ModelOutcome:
        try:
            return next(self._map([model], setting))
        except WorkersLostError as error:
            return ModelOutcome("lost", f"its workers died again and again: {error}", model.content)

    def _map(self, models: Iterable[FoundModel], setting: BatchSetting) -> Generator[ModelOutcome]:
        return self._engine.outcomes(map(self._job, models), setting)

    @property
    def _can_have_more(self) -> bool:
        """Whether a model that ran out of memory beside others may have more when it is alone."""
        limits = self._plan.setting.limits
        return limits.memory_bytes is None and limits.shares != 1

    def _job(self, model: FoundModel) -> BatchJob:
        path, plan = str(model.path), self._plan
        output = str(self._target(model)) if plan.is_shared and plan.keeps_models else None
        if plan.is_shared or self._engine.is_local:
            return BatchJob(model.content, model.name, path, None, output)
        try:
            return BatchJob(model.content, model.name, path, model.path.read_bytes(), output)
        except OSError:
            return BatchJob(model.content, model.name, path, None, output)  # the worker says what is wrong with it

    def _target(self, model: FoundModel) -> Path:
        return self._plan.folder.absolute() / MODELS / model.name

    def _keep(self, outcome: ModelOutcome, is_crowded: bool) -> None:
        model = self._left.pop(outcome.content, None)
        if outcome.status == "memory" and is_crowded and model is not None:
            self._crowded.append(model)
            self._say(f"{model.name}: {outcome.error}; it gets a machine of its own at the end")
            return
        model = model or next(each for each in self._plan.models if each.content == outcome.content)
        if outcome.model is not None and self._plan.keeps_models:
            _write({self._target(model): outcome.model})
        if outcome.status == DONE:
            self._done.add(outcome.content)
        if self._store.record(self._options, model.name, outcome):
            self._state.counts[outcome.status] += 1
            self._watch(self._state, model.name, outcome)

    def _copy_to_equals(self) -> None:
        """Files of one content have one result, under the path of each; the first by name was worked on."""
        if not self._plan.keeps_models:
            return
        targets: dict[str, list[Path]] = {}
        for model in self._plan.models:
            if model.content in self._plan.skipped or model.content in self._done:
                targets.setdefault(model.content, []).append(self._target(model))
        for each in targets.values():
            made = next((target for target in each if target.exists()), None)
            if made is not None and len(each) > 1:
                _write(dict.fromkeys((target for target in each if target != made), made.read_bytes()))

    def _say(self, what: str) -> None:
        self._store.note(what)
        self._watch(self._state, what, None)


def _write(files: Mapping[Path, bytes]) -> None:
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_files(files)
