r"""Write one time step of a recurrent network as a model that takes a frame per call and keeps its state in the arena.

    x (all frames) -- WHILE -- ys -- head -- y       an iteration:   row = x[t],  h' = step(h, row),  ys[t] = h'

    frame, h -- step -- h' -- head -- y              a call; h' is tied to h: the next call finds it there

The body of the loop is written into the main graph. The item that an iteration adds to a list is what a call gives, and
what reads a list, or prepares the frames, does so frame by frame; a second layer takes the frame that the first one has
just made. What reads the state after the loop reads it in every call.

A converter computes what a first step makes of a state of zeros. That step stays outside of the loop, and is taken to
be the loop's own on zeros: ``proof.prove_steps`` shows whether it is, as it shows all else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import ErrorKind, UnsupportedModelError
from ...model.analysis.loops import Loop, integers_by_iteration, loops_of
from ...model.analysis.side_effects import has_side_effects
from ...model.ir.change import Exactness, loosest
from ...model.ir.check import check_model
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_unused_codes, unlinked_twin
from ...model.ir.editor import last_part
from ...model.ir.model import Graph, Model, Operator, Tensor
from ...model.ir.tensors import values, zero_of
from ...operators.boxes import CUTS, RESHAPES
from ...operators.editor import Editor
from ...operators.table import kind_of
from .engine import drop_dead
from .steps_in_a_loop import roll_up


@dataclass(frozen=True)
class Stepped:
    """``model`` takes one of ``calls`` frames. ``ties``: of its states, as in ``Options``, zeros before the first call.

    ``exactness``: of unrolled steps that were written as one.
    """

    model: Model
    calls: int
    ties: tuple[str, ...]
    exactness: Exactness


def one_step(model: Model, is_exact: bool = True) -> Stepped:
    """The model of one step. Raises UnsupportedModelError for a model that cannot run frame by frame.

    ``is_exact``: unrolled steps with scales of their own are not written as one.
    """
    copied = copy_model(model)
    rolled = roll_up(copied, is_exact)
    loops = {loop.operator: loop for loop in loops_of(copied)}
    iterations = {loop.iterations for loop in loops.values()}
    (count, *others) = iterations or (None,)
    if not count or others:
        reasons = (
            "the model has neither a loop nor equal steps one after another",
            *(each.reason for each in rolled.refused),
        )
        raise _refused(reasons[-1] if not loops else "its loops have different numbers of steps")
    if len(copied.main.inputs) != 1:
        raise _refused(f"the model has {len(copied.main.inputs)} inputs; --step needs exactly one")
    lead = 0 if _frame_of(copied.main.inputs[0].shape, count) else 1
    stepped = _Stepper(copied, loops, lead, count + lead).run()
    return replace(stepped, exactness=loosest(use.exactness for use in rolled.uses))


def _refused(reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"--step: {reason}", ErrorKind.FORM)


def _frame_of(shape: Sequence[int], steps: int) -> tuple[int, ...] | None:
    """Return the shape of one of ``steps`` equal parts of a sequence; None if it has no such parts."""
    axis = next((at for at, size in enumerate(shape) if size > 1), None)
    if axis is None or shape[axis] % steps:
        return None
    return (*shape[:axis], shape[axis] // steps, *shape[axis + 1 :])


@dataclass
class _Iteration:
    """An iteration of a loop, by the tensors of its body.

    ``known``: integers in each iteration. ``wholes``: for all frames, one. ``twins``: the step's tensors. ``lists``:
    for the operator that sets an item, the list after the loop. ``states``: for what an iteration makes of a state,
    each that is carried so, and that after the loop.
    """

    loop: Loop
    known: Mapping[Tensor, tuple[tuple[int, ...], ...]]
    wholes: dict[Tensor, Tensor] = field(default_factory=dict)
    twins: dict[Tensor, Tensor] = field(default_factory=dict)
    lists: dict[Operator, Tensor] = field(default_factory=dict)
    states: dict[Tensor, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)


class _Stepper:
    """Writes the graph of a step while it goes through the model.

    ``_twins``: what a call has for a tensor: the frame of one of all steps, which are the ``_wholes``, or what is there
    after the call for what is there after the last step. ``_firsts``: tensors that only the first step has.
    """

    def __init__(self, model: Model, loops: Mapping[Operator, Loop], lead: int, steps: int) -> None:
        self._model, self._main, self._loops = model, model.main, loops
        self._lead, self._steps = lead, steps
        self._graph = Graph(model.main.name)
        self._edit = Editor(model, self._graph, 0)
        for tensor in (*self._main.inputs, *self._main.outputs):
            self._edit.unique(tensor.name)
        self._twins: dict[Tensor, Tensor] = {}
        self._wholes: set[Tensor] = set()
        self._firsts: set[Tensor] = set()
        self._constants: dict[Tensor, Tensor] = {}
        self._states: list[tuple[Tensor, Tensor]] = []

    def run(self) -> Stepped:
        """The model of one step."""
        (source,) = self._main.inputs
        shape = _frame_of(source.shape, self._steps)
        if shape is None:
            raise _refused(f"the input '{source.name}' does not consist of {self._steps} frames, one for each step")
        frame = self._edit.activation(source.name, shape, source)
        frame.name = source.name
        self._note(source, frame)
        for operator in self._main.operators:
            self._follow(operator)
        results = [self._result(tensor) for tensor in self._main.outputs]
        self._graph.inputs = (frame, *(before for before, _ in self._states))
        self._graph.outputs = (*results, *(after for _, after in self._states if after not in results))
        for before, after in self._states:
            after.name = self._edit.unique(f"{before.name}_next")
        for tensor, result in zip(self._main.outputs, results, strict=True):
            result.name = tensor.name
        drop_dead(self._graph)
        model = replace(self._model, graphs=[self._graph], signatures=None, metadata=[], associated_files=())
        drop_dead_tensors(model)
        drop_unused_codes(model)
        check_model(model)
        ties = tuple(f"{after.name}:{before.name}" for before, after in self._states)
        return Stepped(model, self._steps, ties, "exact")

    def _result(self, tensor: Tensor) -> Tensor:
        found = self._twins.get(tensor)
        if found is None or found.producer is None:
            raise _refused(f"the output '{tensor.name}' is not computed from the last step or from each of them")
        return found

    def _follow(self, operator: Operator) -> None:
        computed = [tensor for tensor in operator.present_inputs() if not tensor.is_constant]
        if operator in self._loops:
            self._write_iteration(self._loops[operator])
        elif any(tensor in self._firsts or tensor.is_placeholder for tensor in computed):
            self._firsts.update(operator.outputs)
        elif has_side_effects(operator):
            raise _refused(f"{_named(operator)} has an effect beyond its outputs")
        elif self._wholes.isdisjoint(computed):
            self._copy(operator, self._twins)
        elif operator.name in CUTS:
            self._cut(operator)
        else:
            self._on_frame(operator)

    def _copy(self, operator: Operator, known: dict[Tensor, Tensor]) -> None:
        """Write the same operator; ``known``: the twins of its inputs, to which those of its outputs are added."""
        inputs = [None if each is None else self._twin(operator, each, known) for each in operator.inputs]
        if operator.name in CUTS and inputs[0] is not None and inputs[0].elements == operator.outputs[0].elements:
            output = operator.outputs[0]  # of a list of one item, as a rule
            known[output] = self._reshaped(inputs[0], output.shape, output)
            return
        outputs = [self._edit.activation(last_part(each), each.shape, each) for each in operator.outputs]
        self._edit.twin(operator, inputs, outputs)
        known.update(zip(operator.outputs, outputs, strict=True))

    def _twin(self, reader: Operator, tensor: Tensor, known: Mapping[Tensor, Tensor]) -> Tensor:
        found = known.get(tensor)
        if found is None and not tensor.is_constant:
            raise _refused(f"{_named(reader)} reads '{tensor.name}', which is not computed in one step")
        return found or self._constant(tensor)

    def _constant(self, tensor: Tensor) -> Tensor:
        if tensor not in self._constants:
            twin = self._constants[tensor] = self._graph.add_tensor(unlinked_twin(tensor))
            twin.name = self._edit.unique(last_part(tensor))
        return self._constants[tensor]

    def _cut(self, operator: Operator) -> None:
        """Follow the cut of a part: that of the last step is there in every call, that of the first one is outside."""
        source, output = operator.inputs[0], operator.outputs[0]
        box = CUTS[operator.name](operator)
        start = None if box is None or source is None else box.run_start(source.shape)
        is_step = source is not None and output.elements * self._steps == source.elements
        if start == 0 and is_step and self._lead:
            self._firsts.add(output)
        elif source is not None and start is not None and is_step and start + output.elements == source.elements:
            self._twins[output] = self._reshaped(self._twins[source], output.shape, output)
        else:
            raise _refused(f"{_named(operator)} takes other steps than the last one")

    def _on_frame(self, operator: Operator) -> None:
        """Write an operator that computes each frame by itself."""
        output, source = operator.outputs[0], operator.inputs[0]
        shape = _frame_of(output.shape, self._steps)
        is_by_frame = operator.name in (*RESHAPES, "FULLY_CONNECTED") or kind_of(operator).is_elementwise
        if shape is None or source is None or not is_by_frame:
            raise _refused(f"{_named(operator)} reads all steps at once, as backward layers and averages over time do")
        if operator.name in RESHAPES:
            self._note(output, self._reshaped(self._twins[source], shape, output))
            return
        inputs = [None if each is None else self._twin(operator, each, self._twins) for each in operator.inputs]
        self._note(output, self._edit.activation(last_part(output), shape, output))
        self._edit.twin(operator, inputs, (self._twins[output],))

    def _note(self, whole: Tensor, frame: Tensor) -> None:
        """Note the frame of a tensor of all steps."""
        self._twins[whole] = frame
        self._wholes.add(whole)

    def _reshaped(self, tensor: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
        """The same elements in this shape; the name is that of ``like``."""
        return self._edit.reshaped(tensor, shape, last_part(like), like)

    def _write_iteration(self, loop: Loop) -> None:
        """Write what an iteration of a loop computes."""
        iteration = self._iteration_of(loop)
        for operator in loop.body.operators:
            if operator in iteration.lists:
                item, last = operator.inputs[1], iteration.lists[operator]
                assert item is not None
                shape = _frame_of(last.shape, self._steps) or ()
                self._note(last, self._reshaped(self._twin(operator, item, iteration.twins), shape, last))
            elif operator.inputs and operator.inputs[0] in iteration.wholes:
                self._take_row(iteration, operator)
            elif not all(output in iteration.known for output in operator.outputs):
                self._copy(operator, iteration.twins)
        for after, slots in iteration.states.items():
            made = self._twin(loop.operator, after, iteration.twins)
            self._twins.update((last, made) for _, last in slots)
            self._states += dict.fromkeys(
                (iteration.twins[before], made) for before, _ in slots if before in iteration.twins
            )

    def _iteration_of(self, loop: Loop) -> _Iteration:
        """Sort what a loop carries: lists, states, frames, and what stays the same."""
        iteration = _Iteration(loop, integers_by_iteration(loop))
        for slot in loop.slots:
            given, before = loop.operator.required(slot), loop.body.inputs[slot]
            after, last = loop.body.outputs[slot], loop.operator.outputs[slot]
            if before in iteration.known:
                continue
            if after is before and given in self._wholes:
                iteration.wholes[before] = self._twins[given]
            elif after is before:
                iteration.twins[before] = self._twin(loop.operator, given, {})
            elif (update := loop.filled_by(slot)) is not None and self._is_list(loop, update):
                iteration.lists[update] = last
            else:
                self._check_start(given)
                iteration.states.setdefault(after, []).append((before, last))
        for after, slots in iteration.states.items():
            read = [before for before, _ in slots if before.uses]
            if read:
                iteration.twins |= dict.fromkeys(read, self._edit.activation("state", after.shape, after))
        return iteration

    def _check_start(self, given: Tensor) -> None:
        """Refuse a state that is not zeros before the first step."""
        start = values(given)
        is_zero = start is not None and bool(np.all(start == zero_of(given)))
        if not is_zero and given not in self._firsts:
            raise _refused(f"the state '{given.name}' is not zeros before the first step")

    def _is_list(self, loop: Loop, update: Operator) -> bool:
        """Tell whether each iteration sets the item of its step."""
        whole = update.outputs[0]
        return _frame_of(whole.shape, self._steps) is not None and self._places(loop, update, whole) == self._in_order

    @property
    def _in_order(self) -> list[int]:
        """The steps that the iterations of a loop are."""
        return list(range(self._lead, self._steps))

    def _places(self, loop: Loop, operator: Operator, whole: Tensor) -> list[int]:
        """Return the step of a tensor that each iteration reads or writes, but for those that take another range."""
        size = whole.nbytes // self._steps
        return [low // size for low, high in loop.ranges(operator) if high - low == size and not low % size]

    def _take_row(self, iteration: _Iteration, operator: Operator) -> None:
        """Note the frame for what an iteration reads of all of them."""
        whole, output = operator.required(0), operator.outputs[0]
        places, at = None, operator.inputs[1] if len(operator.inputs) > 1 else None
        if operator.name == "SLICE":
            places = self._places(iteration.loop, operator, whole)
        elif operator.name == "GATHER" and at in iteration.known and whole.shape[0] == self._steps:
            is_one = at is not None and at.elements == 1 and operator.option("axis", 0) == 0
            places = [each[0] for each in iteration.known[at]] if at is not None and is_one else None
        if places != self._in_order:
            raise _refused(f"{_named(operator)} reads other frames than that of its step")
        iteration.twins[output] = self._reshaped(iteration.wholes[whole], output.shape, output)


def _named(operator: Operator) -> str:
    return f"{operator.opcode.label} '{operator.outputs[0].name}'" if operator.outputs else operator.opcode.label
