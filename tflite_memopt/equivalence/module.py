"""TFLM in this process: WebAssembly modules, one for each kernel library, that wasmtime runs.

A module reaches nothing but its own memory, so that a hostile model does no harm, and has pointers of 4 bytes as the
boards have, so that its arena is theirs. ``scripts/runners`` builds them from scripts/device_lab/native/module.cc,
which says what the functions do.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.loops import loops_of
from ..analysis.macs import model_macs
from ..errors import UsageError
from ..io.offline_plan import tensors_in_file_order
from ..io.reader import read_model
from ..io.schema_names import builtin_code
from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.requests.model import ILP32, ILP32_SHORT_ENUMS, LP64, Abi
from ..kernels.targets import target_named
from .adapter import Array, Run, RunJob, by_position
from .exposure import judged_before
from .inputs import numpy_type
from .runner import GivenUpError

MODULE_FOLDER = Path(__file__).parent / "modules"
VARIABLE = "TFLITE_MEMOPT_MODULES"
"""Names another folder of modules."""
_SUFFIX = ".wasm"
_REFERENCE = "tflm-reference"
MODULES = {name: f"tflm-{name}" for name in ("cmsis-nn", "cmsis-nn-dsp", "esp-nn")}
"""The modules of kernel profiles that have one of their own, by the profile's name."""
_ABIS = {"tflm-cmsis-nn": ILP32_SHORT_ENUMS, "tflm-cmsis-nn-dsp": ILP32_SHORT_ENUMS}
_INTERFACE = 1
_GRAIN = 16
"""Bytes by which arenas grow."""
_LARGEST_MEMORY = 4 << 30
_WORK, _WORK_OF_MAC = 20_000_000_000, 200
"""Instructions of WebAssembly that a run may take: some seconds, and eight times what a slow kernel takes for a
multiply-accumulate. A plan that makes a loop run for ever ends there, on every machine at the same place."""


@dataclass(frozen=True)
class KernelModule:
    """A module file. ``library``: the kernels, by the name of their profile; ``abi``: how it lays out structures."""

    path: Path
    library: str
    abi: Abi


def module_for(profile: KernelProfile) -> KernelModule | None:
    """The module that runs what a profile plans for; that with the reference kernels where there is none of its own.

    None where it has not been built, and for machines of 64 bits, as which the wheel is one.
    """
    if profile.abi == LP64:
        return None
    usual = target_named(profile.target).kernels if profile.libraries and profile.target else profile.name
    name = MODULES.get(usual, _REFERENCE)
    path = Path(os.environ.get(VARIABLE) or MODULE_FOLDER) / f"{name}{_SUFFIX}"
    return KernelModule(path, name.removeprefix("tflm-"), _ABIS.get(name, ILP32)) if path.is_file() else None


class ModuleRunner:
    """Runs models in a module: one instance for each, kept for all of its samples. Any threads may run and close it.

    ``memory_bytes`` limits what an instance may have, None for what WebAssembly allows. What a run costs is counted
    in instructions, and limited by the multiply-accumulates of the model. Raises UsageError for a file that is no
    module of this version.
    """

    shows_tensors = True

    def __init__(self, module: KernelModule, memory_bytes: int | None = None) -> None:
        import wasmtime

        self._memory = min(memory_bytes or _LARGEST_MEMORY, _LARGEST_MEMORY)
        config = wasmtime.Config()
        config.consume_fuel = True
        config.cache = True  # compiled once on this machine
        if _address_space_is_limited():
            # Else 4 GB of it are taken for each instance, so that addresses need no checks: a sixth of the time.
            config.memory_reservation = 0
            config.memory_guard_size = 0
        self._engine = wasmtime.Engine(config)
        self._of = module
        self._changes, self._running, self._is_closed = threading.Condition(), 0, False
        try:
            self._module = wasmtime.Module.from_file(self._engine, str(module.path))
            with closing(self._instance(_WORK)) as instance:
                version = instance.call("interface")
        except (OSError, KeyError, wasmtime.WasmtimeError):
            version = None
        except _ModuleError as error:
            raise UsageError(f"'{module.path}' cannot be started: {error}") from error
        if version != _INTERFACE:
            raise UsageError(f"'{module.path}' is no module of this version: scripts/runners builds them again")

    def measures(self, profile: KernelProfile) -> bool:
        """Whether its arena is what is counted for a profile."""
        counted = "reference" if profile.libraries else profile.name
        return self._of.library == counted and self._of.abi == profile.abi

    def knows(self, model: Model) -> bool:
        """Whether it has kernels for all operators of a model."""
        codes = {builtin_code(operator.name) for graph in model.graphs for operator in graph.operators}
        with closing(self._instance(_WORK)) as instance:
            return all(instance.call("knows", code) for code in codes)

    def close(self) -> None:
        """Give no more answers: a run in another thread ends after its sample. What wasmtime holds is given back.

        What is left to the end of the process, Python takes apart in a wrong order.
        """
        with self._changes:
            self._is_closed = True
            self._changes.wait_for(lambda: self._running == 0)
            self._module.close()
            self._engine.close()

    def run(self, job: RunJob) -> Run:
        """Run one model; ``tensors`` of the job count those of all subgraphs, as in the file.

        Tensors are shown as they are just before their last reader runs, and those in a loop's body turn by turn, one
        after the other along the first axis. Raises GivenUpError once closed.
        """
        with self._changes:
            if self._is_closed:
                raise GivenUpError
            self._running += 1
        try:
            return self._run(job, read_model(job.model))
        finally:
            with self._changes:
                self._running -= 1
                self._changes.notify_all()

    def _run(self, job: RunJob, model: Model) -> Run:
        work = _WORK + _WORK_OF_MAC * model_macs(model) * len(job.samples)
        commit = ""
        try:
            with closing(self._instance(work)) as instance:
                commit = instance.commit
                facts = instance.opened(job)
                outputs, tensors = self._values(instance, job, model)
            if job.measure:
                facts["smallest_arena"] = self._smallest_arena(job, facts["total"], work)
        except _ModuleError as refusal:
            return Run(error=str(refusal), kernels=self._of.library, commit=commit)
        return Run(outputs, tensors, facts, kernels=self._of.library, commit=commit)

    def _instance(self, work: int) -> _Instance:
        return _Instance(self._engine, self._module, self._memory, work)

    def _values(
        self, instance: _Instance, job: RunJob, model: Model
    ) -> tuple[dict[int, list[Array]], dict[int, list[Array]]]:
        """By position, the outputs and the tensors that are shown, for all samples."""
        shown = {place: each for place, each in _watched(model).items() if place in job.tensors}
        for watch in shown.values():
            instance.watch(watch)
        outputs, tensors = [], []
        for number, sample in enumerate(job.samples):
            if self._is_closed:
                raise GivenUpError
            given, seen = instance.invoked(job.placed(sample, len(model.main.inputs)))
            if not job.gives_back(number):
                continue
            outputs.append({at: _shaped(data, model.main.outputs[at]) for at, data in enumerate(given)})
            pairs = zip(shown.items(), seen, strict=True)
            tensors.append({place: _in_turns(parts, watch.holds) for (place, watch), parts in pairs if parts})
        return by_position(outputs), by_position(tensors)

    def _smallest_arena(self, job: RunJob, used: int, work: int) -> int:
        """The smallest arena that AllocateTensors accepts; nothing below what is in use in the end can do.

        Each is tried in an instance of its own: with too little memory some kernels write anywhere.
        """
        low, step = -(-used // _GRAIN) - 1, 1
        high = low + 1
        while not self._accepts(job, high * _GRAIN, work):
            low, high, step = high, high + step, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._accepts(job, middle * _GRAIN, work) else (middle, high)
        return high * _GRAIN

    def _accepts(self, job: RunJob, arena_bytes: int, work: int) -> bool:
        with closing(self._instance(work)) as instance:
            try:
                instance.opened(RunJob(job.model, [], arena_bytes))
            except _ModuleError:
                if arena_bytes > self._memory:
                    raise
                return False
            return True


def _address_space_is_limited() -> bool:
    """Whether a shell (``ulimit -v``) or anybody else limits the address space of this process."""
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


class _ModuleError(Exception):
    """What went wrong with a model, in one line."""


class _Instance:
    """A module's memory, in which one model is run. Every fault in it is a _ModuleError."""

    def __init__(self, engine: Any, module: Any, memory_bytes: int, work: int) -> None:
        import wasmtime

        self._store = wasmtime.Store(engine)
        self._store.set_limits(memory_size=memory_bytes, instances=1, memories=1)
        self._store.set_fuel(work)
        linker = wasmtime.Linker(engine)
        linker.define_unknown_imports_as_traps(module)  # of files and standard output, which nothing here needs
        try:
            exports = linker.instantiate(self._store, module).exports(self._store)
        except wasmtime.WasmtimeError as error:
            self._store.close()
            raise _ModuleError(" ".join(str(error).split())) from None
        self._functions: dict[str, Any] = dict(exports.items())
        self._memory: Any = self._functions["memory"]
        self._inputs: list[tuple[int, int]] = []
        self._watches = 0
        self.call("_initialize")

    @property
    def commit(self) -> str:
        """The versions of TFLM and of the kernel library."""
        at = self.call("kernels")
        return self._text(at, 200).split("\0")[0].partition(" ")[2]

    def close(self) -> None:
        """Give the memory back."""
        self._store.close()

    def call(self, name: str, *arguments: int) -> Any:
        """Call an exported function."""
        import wasmtime

        try:
            return self._functions[name](self._store, *arguments)
        except wasmtime.Trap as trap:
            if trap.trap_code is wasmtime.TrapCode.OUT_OF_FUEL:
                raise _ModuleError("it did not end within the work that its size allows") from None
            raise _ModuleError(self._said("a fault: memory was read or written that may not be")) from None
        except wasmtime.WasmtimeError as error:
            raise _ModuleError(str(error).splitlines()[0]) from None

    def watch(self, each: _Watch) -> None:
        """Look at a tensor in all that is invoked from here on."""
        self._watches += 1
        self.call("watch", each.graph, each.moment, each.tensor)

    def opened(self, job: RunJob) -> dict[str, int]:
        """Set up the model in its arena; head, tail and total in bytes."""
        if not self.call("reserve", len(job.model), job.arena_bytes):
            raise _ModuleError(f"there is no room for an arena of {job.arena_bytes} bytes")
        self._write(self.call("model"), job.model)
        if not self.call("open", job.fill or 0):
            raise _ModuleError(self._said("AllocateTensors failed"))
        count = self.call("inputs")
        self._inputs = [(self.call("input", at), self.call("input_bytes", at)) for at in range(count)]
        facts = {name: self.call(name) for name in ("head", "tail")}
        return {**facts, "total": self.call("used"), "pointer_bits": 32}

    def invoked(self, sample: Mapping[int, Array]) -> tuple[list[bytes], list[list[bytes]]]:
        """The outputs, and of each watch what it saw, one after the other; inputs by position."""
        for position, array in sample.items():
            at, nbytes = self._inputs[position]
            data = np.ascontiguousarray(array).tobytes()
            if len(data) != nbytes:
                raise _ModuleError(f"an input has {len(data)} bytes, TFLM takes {nbytes}")
            self._write(at, data)
        problem = self.call("invoke")
        if problem:
            raise _ModuleError(self._said("Invoke failed" if problem == 1 else "bytes outside the arena were written"))
        places = ((self.call("output", at), self.call("output_bytes", at)) for at in range(self.call("outputs")))
        outputs = [self._read(at, nbytes) for at, nbytes in places]
        seen: list[list[bytes]] = [[] for _ in range(self._watches)]
        if seen:
            for number, data in _records(self._read(self.call("trace"), self.call("trace_bytes"))):
                seen[number].append(data)
        return outputs, seen

    def _said(self, problem: str) -> str:
        size = self._functions["log_bytes"](self._store)
        lines = self._text(self._functions["log"](self._store), size).split("\n")
        said = "; ".join(line.strip() for line in lines if line.strip())
        return f"{problem} ({said})" if said else problem

    def _text(self, at: int, nbytes: int) -> str:
        return self._read(at, nbytes).decode("utf-8", "replace")

    def _at(self, at: int, nbytes: int) -> int:
        """The address of bytes of the module here; what a hostile model makes of an address stays in its memory."""
        if not 0 <= at <= at + nbytes <= self._memory.data_len(self._store):
            raise _ModuleError("it names bytes outside its memory")
        return ctypes.addressof(self._memory.data_ptr(self._store).contents) + at

    def _read(self, at: int, nbytes: int) -> bytes:
        at &= 0xFFFFFFFF  # addresses come as signed numbers
        return ctypes.string_at(self._at(at, nbytes), nbytes)

    def _write(self, at: int, data: bytes) -> None:
        at &= 0xFFFFFFFF
        ctypes.memmove(self._at(at, len(data)), data, len(data))


def _records(trace: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers of watches, and what they saw."""
    at = 0
    while at < len(trace):
        number, nbytes = (int.from_bytes(trace[at + part : at + part + 4], "little") for part in (0, 4))
        yield number, trace[at + 8 : at + 8 + nbytes]
        at += 8 + -(-nbytes // 4) * 4


@dataclass(frozen=True)
class _Watch:
    """Where and when a tensor is looked at, in the module's words, and which tensor it is."""

    graph: int
    moment: int
    tensor: int
    holds: Tensor


def _watched(model: Model) -> Mapping[int, _Watch]:
    """When to look at each tensor that is computed, by its position among those of all subgraphs.

    Just before its last reader runs: that is what the plan must keep whole. Before the first one where rows are given
    up once they are read; at the end where it is an output, and just after it is made where nobody reads it.
    """
    places = {tensor: place for place, tensor in enumerate(tensors_in_file_order(model))}
    bodies = [loop.body for loop in loops_of(model)]
    found = {}
    for number, graph in enumerate(model.graphs):
        if graph is not model.main and not any(graph is body for body in bodies):
            continue
        steps = {operator: step for step, operator in enumerate(graph.operators)}
        readers, outputs = judged_before(model, graph), set(graph.outputs)
        for index, tensor in enumerate(graph.tensors):
            reader = readers.get(tensor)
            if tensor in outputs and (graph is model.main or reader is None):
                moment = 2 * len(graph.operators) - 1
            elif reader is not None:
                moment = 2 * steps[reader]
            elif tensor.producer in steps:
                moment = 2 * steps[tensor.producer] + 1
            else:
                continue
            found[places[tensor]] = _Watch(number, moment, index, tensor)
    return found


def _shaped(data: bytes, tensor: Tensor) -> Array:
    kind = numpy_type(tensor.dtype)
    if len(data) != tensor.nbytes:
        raise _ModuleError(f"'{tensor.name}' has {len(data)} bytes, the file says {tensor.nbytes}")
    return np.frombuffer(data, kind).reshape(tensor.shape)


def _in_turns(parts: Sequence[bytes], tensor: Tensor) -> Array:
    if len(parts) == 1:
        return _shaped(parts[0], tensor)
    return np.concatenate([_shaped(part, tensor) for part in parts])
