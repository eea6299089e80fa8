"""One model, invoked on random values: subgraphs, loops and state; contracts.py has what each operator computes.

A loop whose condition is known runs, iteration after iteration. One whose condition depends on data is a function of
what it is given and of what its condition and its body compute: both are run once on values that stand for any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...model.analysis import ranges as of_rewrites
from ...model.ir.check import called_subgraphs, is_work_memory, reachable
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import integers
from .call import Call, any_value, constant_of, plain, quantization_of, zero_point
from .contracts import broken_clause, broken_model
from .facts import RESCALED
from .kinds import KINDS, evaluate
from .moves import either
from .outcome import BrokenModelError, Notes, UndecidedError
from .ranges import silent_channels
from .ring import Keys, Ring, U, Value, is_ring

STATEFUL = frozenset({"SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"})
"""Kinds that write the variable tensors which they read."""
_LONGEST_LOOP = 1 << 13
_LARGE = 64
"""Known values of more elements are not looked at for whether a loop goes round in a circle."""
_WORLD = ("world",)
State = dict[Hashable, Value]
"""Values that outlive an invocation, by what they belong to: a variable tensor, a resource, the world."""


Pair = tuple[Tensor, Value]


class Observer:
    """It is told where values are while a model runs. This one takes no notice; that of plan.py has an arena."""

    has_places = False

    def given(self, pairs: Sequence[Pair]) -> None:
        """The application has written the inputs."""

    def read(self, who: str, pairs: Sequence[Pair]) -> None:
        """Somebody reads."""

    def ran(self, operator: Operator, read: Sequence[Pair], written: Sequence[Pair]) -> None:
        """A kernel has run."""

    def copied(self, source: Tensor, target: Tensor, value: Value) -> None:
        """A tensor was copied into another one."""

    def put(self, pairs: Sequence[Pair]) -> None:
        """From here on the tensors stand for these values."""

    def unwritten(self, value: Ring) -> None:
        """These values stand for bytes that nothing has written."""

    def fork(self) -> Any:
        """Everything that lies in memory now."""

    def back_to(self, memory: Any) -> None:
        """Go on from there."""

    def join(self, memory: Any) -> None:
        """Memory may also be as it was there."""


@dataclass
class Run:
    """A model that is invoked again and again.

    ``name``: of the run; what no model may depend on differs from run to run. ``state``: what there is before the next
    invocation; what it lacks is as it is after a reset. ``digests``: by name, of the main graph's tensors in the last
    invocation. ``coarse``: the operators that were taken as functions of everything. ``infers``: the sizes that a SLICE
    computes are those of its operands, as LiteRT takes them; TFLM takes those of the file, which must be the same.
    """

    model: Model
    keys: Keys
    notes: Notes = field(default_factory=Notes)
    name: str = ""
    state: State = field(default_factory=dict)
    observer: Observer = field(default_factory=Observer)
    digests: dict[str, tuple[int, int]] = field(default_factory=dict)
    coarse: list[str] = field(default_factory=list)
    infers: bool = False
    _cache: dict[Any, Any] = field(default_factory=dict)
    _invocation: int = 0
    _resources: list[Any] = field(default_factory=list)
    _types: dict[Hashable, DType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        every = self.model.all_operators
        self._calls = [operator for operator in every if operator.name == "CALL_ONCE"]
        stateful = (operator for operator in every if operator.name in STATEFUL)
        written = (each for operator in stateful for each in operator.present_inputs() if each.is_variable)
        self._written = list(dict.fromkeys(written))
        self._index = {id(graph): number for number, graph in enumerate(self.model.graphs)}

    def invoke(self, inputs: Sequence[Value], wanted: Collection[int] | None = None) -> list[Value]:
        """Run once. Raises BrokenModelError or UndecidedError, which name the operator.

        ``wanted``: the outputs to compute, by position; the others are whatever memory holds. None: all of them.
        """
        self._invocation += 1
        self.digests.clear()
        main = self.model.main
        shared = self._cache.setdefault("shared", broken_model(self.model))
        if shared is not None:
            raise UndecidedError(shared)
        given = list(zip(main.inputs, inputs, strict=True))
        for tensor, value in given:
            if value.shape != tensor.shape:
                raise BrokenModelError(f"input '{tensor.name}' has shape {list(tensor.shape)}, not {list(value.shape)}")
        self.observer.given(given)
        with np.errstate(over="ignore"):
            left_out = () if wanted is None else self._without(wanted)
            values = self._graph(main, [value for _, value in given], left_out)
        self.observer.read("the application", list(zip(main.outputs, values, strict=True)))
        return values

    def _without(self, wanted: Collection[int]) -> Collection[Operator]:
        """Operators of the main graph on which the wanted outputs do not depend, none of which has another effect."""
        main, key = self.model.main, ("without", *sorted(wanted))
        if key not in self._cache:
            needed, left_out = {main.outputs[at] for at in wanted}, set()
            for operator in reversed(main.operators):
                if needed.isdisjoint(operator.outputs) and operator.name not in EFFECTS.keys() | STATEFUL:
                    left_out.add(operator)
                else:
                    needed.update(operator.present_inputs())
            self._cache[key] = left_out
        found: Collection[Operator] = self._cache[key]
        return found

    def _graph(self, graph: Graph, inputs: Sequence[Value], left_out: Collection[Operator] = ()) -> list[Value]:
        values: dict[Tensor, Value] = dict(zip(graph.inputs, inputs, strict=True))
        graph_index = self._index[id(graph)]
        for position, operator in enumerate(graph.operators):
            if operator in left_out:
                continue
            try:
                self._within_contract(operator)
                given = [None if t is None else self._value(t, values) for t in operator.inputs]
                made = self._operator(operator, self._without_silent(graph, operator, given))
                outputs = list(zip(operator.outputs, made, strict=True))
                for tensor, value in outputs:
                    if value.shape != tensor.shape and not (self.infers and _has_computed_size(operator)):
                        raise BrokenModelError(f"it makes {list(value.shape)}, '{tensor.name}' is {list(tensor.shape)}")
                if operator.name not in ("IF", "WHILE"):
                    pairs = zip(operator.inputs, given, strict=True)
                    read = [(tensor, value) for tensor, value in pairs if tensor is not None and value is not None]
                    self.observer.ran(operator, read, outputs)
            except (BrokenModelError, UndecidedError) as error:
                raise error.at(graph_index, position, operator) from error
            except (ValueError, IndexError) as error:  # numpy: operands that do not fit
                raise UndecidedError(str(error)).at(graph_index, position, operator) from error
            values.update(outputs)
            self._note(graph, outputs)
        return [self._value(tensor, values) for tensor in graph.outputs]

    def _without_silent(
        self, graph: Graph, operator: Operator, given: Sequence[Value | None]
    ) -> Sequence[Value | None]:
        """The operands, with the zero point in the channels that a sum reads and that are nothing else."""
        if operator.name not in ("CONV_2D", "FULLY_CONNECTED") or not self.notes.knows_ranges:
            return given
        key = ("silent", id(graph))
        if key not in self._cache:
            # Two derivations that share no rule: each has a veto on what the other takes for constant.
            one, other = silent_channels(graph), of_rewrites.silent_channels(graph)
            self._cache[key] = {tensor: one[tensor] & other[tensor] for tensor in one.keys() & other.keys()}
        data, value = operator.inputs[0], given[0]
        silent = None if data is None else self._cache[key].get(data)
        if data is None or silent is None or value is None or not silent.any():
            return given
        self.notes.facts.add(RESCALED)
        return [
            np.where(silent, self.keys.constant(np.asarray(zero_point(data))), self.keys.constant(value)),
            *given[1:],
        ]

    def _within_contract(self, operator: Operator) -> None:
        key = ("contract", operator)
        if key not in self._cache:
            self._cache[key] = broken_clause(operator)
        if self._cache[key] is not None:
            raise UndecidedError(f"outside of its contract: {self._cache[key]}")

    def _note(self, graph: Graph, outputs: Sequence[tuple[Tensor, Value]]) -> None:
        for tensor, value in outputs:
            if graph is self.model.main and value.size:
                flat = self.keys.constant(value).reshape(-1)
                self.digests[tensor.name] = (value.size, int((flat * self.keys.order(value.size)).sum(dtype=U)))

    def _value(self, tensor: Tensor, values: Mapping[Tensor, Value]) -> Value:
        found = values.get(tensor)
        if found is not None:
            return found
        if tensor.is_variable:
            return self._variable(tensor)
        if tensor.is_constant:
            if tensor not in self._cache:
                self._cache[tensor] = constant_of(tensor)
            known: Value = self._cache[tensor]
            return known
        return self._garbage(tensor) if tensor.elements else np.zeros(tensor.shape, np.int64)

    def _garbage(self, tensor: Tensor) -> Ring:
        """Whatever the bytes hold of a tensor that nothing has written: never the same twice."""
        if is_work_memory(tensor):
            if self.observer.has_places:
                raise UndecidedError("an NPU writes where its commands say")
            return any_value(self.keys, tensor, "work memory", tensor.name)
        key = ("garbage", tensor)
        if self._cache.get(key, (0,))[0] != self._invocation:
            found = any_value(self.keys, tensor, "garbage", self.name, tensor.name, self._invocation)
            self._cache[key] = (self._invocation, found)
            self.observer.unwritten(found)
        garbage: Ring = self._cache[key][1]
        return garbage

    def _variable(self, tensor: Tensor) -> Value:
        if tensor not in self._written:
            return self._garbage(tensor)  # a loop's result before the loop: it may lie where other tensors are
        key = self._key(tensor)
        if key not in self.state:
            self.state[key] = self._reset(tensor)
        return self.state[key]

    def _key(self, tensor: Tensor) -> Hashable:
        """A variable by its name, and by its place among those of one name: two tensors never have one state."""
        alike = [each for each in self._written if each.name == tensor.name]
        return ("variable", tensor.name, alike.index(tensor))

    def _reset(self, tensor: Tensor) -> Ring:
        """A variable after a reset: one value for all elements, by its type and zero point."""
        held = None if tensor.buffer.data is None else tensor.buffer.data.tobytes()
        word = self.keys.word("reset", tensor.dtype.name, quantization_of(tensor)[1], held)
        return self.keys.as_float(np.full(tensor.shape, word, U))

    def _operator(self, operator: Operator, given: Sequence[Value | None]) -> list[Value]:
        call = Call(operator, given, self.keys, self.notes, self._cache)
        if operator.name in KINDS:
            made, is_coarse = evaluate(call)
            if is_coarse:
                self.coarse.append(operator.opcode.label)
            if operator.name in STATEFUL:
                self._step(call)
            return made
        if operator.name not in EFFECTS:
            raise UndecidedError(f"operators of this kind, {operator.opcode.label}, are not known")
        return EFFECTS[operator.name](self, call)

    def _handle(self, call: Call) -> list[Value]:
        resource = tuple(plain(call.option(name, None)) for name in ("container", "sharedName"))
        if resource not in self._resources:
            self._resources.append(resource)
        return [np.full(call.output.shape, self._resources.index(resource), np.int64)]

    def _recall(self, call: Call) -> list[Value]:
        key = self._resource(call)
        found = self.state.setdefault(key, self._reset(call.output))
        if self._types.setdefault(key, call.output.dtype) is not call.output.dtype:
            raise BrokenModelError("it reads a variable of another type")
        if found.shape != call.output.shape:
            raise BrokenModelError("it reads a variable of another shape")
        return [found]

    def _assign(self, call: Call) -> list[Value]:
        key = self._resource(call)
        self.state[key], self._types[key] = call.ring(1), call.tensor(1).dtype
        return []

    def _once(self, call: Call) -> list[Value]:
        key = ("called", self._calls.index(call.operator))
        if key not in self.state:
            self._graph(self.model.graphs[called_subgraphs(call.operator)[0]], [])
            self.state[key] = np.zeros(1, U)
        return []

    def _resource(self, call: Call) -> Hashable:
        if is_ring(call.value(0)):
            raise UndecidedError("its variable depends on data")
        return ("resource", self._resources[int(call.value(0).ravel()[0])])

    def _step(self, call: Call) -> None:
        """The variables of an operator that writes them, after it."""
        for slot, tensor in enumerate(call.operator.inputs):
            if tensor is not None and tensor.is_variable:
                self.state[self._key(tensor)] = call.state_after(slot)

    def _custom(self, call: Call) -> list[Value]:
        """A function of its name, options and inputs, and of all that custom operators have done before: the world."""
        world = self.state.get(_WORLD)
        world = self.keys.random((1,), "world") if world is None else world
        seeing = Call(call.operator, [*call.values, world], self.keys, self.notes, self._cache)
        made: list[Value] = list(seeing.whole())
        self.state[_WORLD] = seeing.effect()
        self.coarse.append(call.operator.opcode.label)
        return made

    def _either(self, call: Call) -> list[Value]:
        """IF: the way that is taken where that is known, else both."""
        operator, condition, observer = call.operator, call.value(0), self.observer
        graphs = [self.model.graphs[index] for index in called_subgraphs(operator)]
        given = [value for value in call.values[1:] if value is not None]
        observer.read("it", [(call.tensor(0), condition)])
        if not is_ring(condition):
            return self._way(operator, graphs[0 if condition.any() else 1], given)
        before, memory = dict(self.state), observer.fork()
        one = self._way(operator, graphs[0], given)
        after, self.state = self.state, before
        left = observer.fork()
        observer.back_to(memory)
        other = self._way(operator, graphs[1], given)
        pick = call.ring(0).reshape(-1)[0]
        for key in {**after, **self.state}:
            if key not in after or key not in self.state:
                raise UndecidedError("only one of its subgraphs uses a state")
            self.state[key] = self._one_of(call, pick, after[key], self.state[key])
        made = [self._one_of(call, pick, x, y) for x, y in zip(one, other, strict=True)]
        observer.join(left)
        observer.put(list(zip(operator.outputs, made, strict=True)))
        return made

    def _way(self, operator: Operator, graph: Graph, given: Sequence[Value]) -> list[Value]:
        self._hand_over(operator.inputs[1:], graph.inputs, given)
        made = self._graph(graph, given)
        self._hand_over(graph.outputs, operator.outputs, made)
        return made

    def _one_of(self, call: Call, pick: Ring, x: Value, y: Value) -> Ring:
        x, y = self.keys.constant(x), self.keys.constant(y)
        return x if np.array_equal(x, y) else either(call, pick, x, y)

    def _loop(self, call: Call) -> list[Value]:
        """WHILE, as micro/kernels/while.cc runs it: what is carried lies in its outputs from iteration to iteration."""
        operator = call.operator
        condition, body = (self.model.graphs[index] for index in called_subgraphs(operator))
        values = [value for value in call.values if value is not None]
        self._hand_over(operator.inputs, condition.inputs, values)
        self._hand_over(operator.inputs, operator.outputs, values)
        seen = set()
        for _ in range(_LONGEST_LOOP):
            (goes_on,) = self._graph(condition, values)
            if is_ring(goes_on):
                return self._any_loop(call, values)
            self.observer.read("it", [(condition.outputs[0], goes_on)])
            if not goes_on.any():
                return values
            steering = tuple(value.tobytes() for value in values if not is_ring(value) and value.size <= _LARGE)
            if steering in seen and not any(not is_ring(value) and value.size > _LARGE for value in values):
                raise BrokenModelError("its loop never ends")
            seen.add(steering)
            self._hand_over(operator.outputs, body.inputs, values)
            values = self._graph(body, values)
            self._hand_over(body.outputs, operator.outputs, values)
            self._hand_over(operator.outputs, condition.inputs, values)
        raise UndecidedError(f"its loop has more than {_LONGEST_LOOP} iterations")

    def _hand_over(self, sources: Sequence[Tensor | None], targets: Sequence[Tensor], values: Sequence[Value]) -> None:
        """Copy what is carried, one tensor after the other."""
        for source, target, value in zip(sources, targets, values, strict=True):
            if value.shape != target.shape:
                raise BrokenModelError(f"it hands {list(value.shape)} to '{target.name}' of {list(target.shape)}")
            if source is not None and source.dtype is not target.dtype:
                raise BrokenModelError(f"it hands {source.dtype.label} to '{target.name}' of {target.dtype.label}")
            if source is not None:
                self.observer.copied(source, target, value)

    def _any_loop(self, call: Call, values: Sequence[Value]) -> list[Value]:
        """A loop whose condition depends on data."""
        operator = call.operator
        condition, body = (self.model.graphs[index] for index in called_subgraphs(operator))
        inside = {self._index[id(graph)] for graph in (condition, body)}
        inside |= {index for graph in set(inside) for index in reachable(self.model, graph)}
        with_effects = (EFFECTS.keys() - {"IF", "WHILE"}) | STATEFUL
        if any(each.name in with_effects for at in inside for each in self.model.graphs[at].operators):
            raise UndecidedError("its loop has effects, and its end depends on data")
        carried: list[Value] = [any_value(self.keys, each, "carried", at) for at, each in enumerate(operator.outputs)]
        self.observer.put(list(zip(operator.outputs, carried, strict=True)))
        self._hand_over(operator.outputs, condition.inputs, carried)
        asked = self._graph(condition, carried)
        self._hand_over(operator.outputs, body.inputs, carried)
        made = self._graph(body, carried)
        self._hand_over(body.outputs, operator.outputs, made)
        if self.observer.has_places:  # another iteration finds in memory what the first has left
            self._hand_over(operator.outputs, condition.inputs, made)
            self._graph(condition, made)
            self._hand_over(operator.outputs, body.inputs, made)
            self._hand_over(body.outputs, operator.outputs, self._graph(body, made))
        self.coarse.append("WHILE")
        looped = Call(operator, [*asked, *made, *values], self.keys, self.notes, self._cache).looped()
        self.observer.put(list(zip(operator.outputs, looped, strict=True)))
        return list(looped)


EFFECTS: Mapping[str, Callable[[Run, Call], list[Value]]] = {
    "ASSIGN_VARIABLE": Run._assign,
    "CALL_ONCE": Run._once,
    "CUSTOM": Run._custom,
    "IF": Run._either,
    "READ_VARIABLE": Run._recall,
    "VAR_HANDLE": Run._handle,
    "WHILE": Run._loop,
}
"""Kinds that this file has."""


def _has_computed_size(operator: Operator) -> bool:
    """Tell whether it is a SLICE whose size is known at run time only, as Keras 3 cuts the lists of its loops."""
    if operator.name != "SLICE" or len(operator.inputs) != 3:
        return False
    begin, size = operator.inputs[1:]
    sizes = None if size is None else integers(size)
    return sizes is None or (-1 in sizes and begin is not None and not begin.is_constant)
