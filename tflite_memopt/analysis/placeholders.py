"""Variables whose first value nobody reads: the place where a loop's result grows.

Such a variable goes from one DYNAMIC_UPDATE_SLICE, or WHILE that does the same in every turn, to the next; nothing else
reads what they make until every byte has been written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..ir.model import Model, Operator, Tensor
from .loops import Loop, box_of, bytes_of, is_one_run, loops_of

Written = Iterable[tuple[int, int]]


def mark_placeholders(model: Model, planned: Mapping[Tensor, int]) -> None:
    """Mark the variables of the main graph that have an offset and whose first value nobody reads.

    TFLM has a variable in the head only where the plan says so; what other variables hold is never given up.
    """
    loops = {loop.operator: loop for loop in loops_of(model)}
    for tensor in model.main.tensors:
        if tensor.is_variable and tensor in planned and tensor.producer is None and loops:
            tensor.is_placeholder = _is_overwritten(tensor, loops, model.main.outputs)


def cleared_inputs(model: Model, planned: Mapping[Tensor, int]) -> tuple[Tensor, ...]:
    """Inputs of the model that share bytes with a variable, which ``MicroInterpreter::Reset`` clears.

    Source: tflite-micro commit 90b983c2b3f1, micro_interpreter_graph.cc, ``ResetVariableTensors``.
    """
    places = [range(at, at + tensor.nbytes) for tensor, at in planned.items() if tensor.is_variable]
    return tuple(
        tensor
        for tensor in model.main.inputs
        if tensor in planned
        and any(each.start < planned[tensor] + tensor.nbytes and planned[tensor] < each.stop for each in places)
    )


def _is_overwritten(variable: Tensor, loops: Mapping[Operator, Loop], returned: Iterable[Tensor]) -> bool:
    """Whether all bytes are written before anything but the next writer reads them."""
    return _until_whole(variable, loops, returned) is not None


def _until_whole(variable: Tensor, loops: Mapping[Operator, Loop], returned: Iterable[Tensor]) -> list[Tensor] | None:
    """The variable and what is made of it, up to where all bytes have been written; None where that is never so."""
    written: list[tuple[int, int]] = []
    chain = [variable]
    outputs = set(returned)
    while len(chain[-1].uses) == 1 and chain[-1] not in outputs:
        operator, slot = chain[-1].uses[0]
        made = _written_by(operator, slot, loops)
        if made is None:
            return None
        tensor, ranges = made
        written += ranges
        if _covers(written, tensor.nbytes):
            return chain
        chain.append(tensor)
    return None


def _written_by(operator: Operator, slot: int, loops: Mapping[Operator, Loop]) -> tuple[Tensor, Written] | None:
    """What an operator makes of the tensor in this slot, and the bytes that it has written there."""
    if operator.name == "DYNAMIC_UPDATE_SLICE" and slot == 0:
        box = box_of(operator)
        output = operator.outputs[0]
        return None if box is None or not is_one_run(box, output) else (output, [bytes_of(box, output)])
    if operator not in loops:
        return None
    loop = loops[operator]
    ranges = list(_in_turns(loop, slot))
    return (operator.outputs[slot], ranges) if ranges else None


def _in_turns(loop: Loop, slot: int) -> Iterator[tuple[int, int]]:
    """The bytes that the turns write, if a turn does nothing with the tensor but write into it."""
    read, made = loop.body.inputs[slot], loop.body.outputs[slot]
    update = made.producer
    if update is None or [use.operator for use in read.uses] != [update] or read is not update.inputs[0]:
        return
    if loop.condition.inputs[slot].uses or made.uses or update not in loop.begins:
        return
    for begin in loop.begins[update]:
        box = box_of(update, begin)
        if box is not None and is_one_run(box, made):
            yield bytes_of(box, made)


def _covers(written: Iterable[tuple[int, int]], size: int) -> bool:
    reached = 0
    for start, end in sorted(written):
        if start > reached:
            return False
        reached = max(reached, end)
    return reached >= size
