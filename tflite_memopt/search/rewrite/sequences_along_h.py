"""Lay a sequence along the rows of an image of one column, since stripes are cut along rows.

Keras converts a convolution of one dimension so, and leaves tensors between two of them in three dimensions:

    x (1, L, C) -- EXPAND_DIMS -- (1, 1, L, C) -- CONV_2D of 1 x k -- (1, 1, L', D) -- RESHAPE -- PAD (1, L'', D)

    along H:    (1, L, 1, C) -- CONV_2D of k x 1 -- (1, L', 1, D) -- PAD -- (1, L'', 1, D)

Filters become k x 1. These are the same bytes in the same order, so that nothing is moved and every sum is added in
the order that it had. Reshapes between two sequences along H are left out. Where another operator reads or writes a
sequence, and where the graph takes or returns it, a RESHAPE stands between the two forms; it copies onto itself.

It is no rule of the table: whether one operator can do so depends on all others. Which kinds can is said by
the table of operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...model.ir.change import Changed, changed
from ...model.ir.copying import drop_dead_tensors
from ...model.ir.editor import Array, label
from ...model.ir.model import Graph, Model, Operator, Tensor, Use
from ...model.ir.tensors import integers, quantized_alike, values
from ...operators.boxes import RESHAPES
from ...operators.editor import Editor
from ...operators.kind import AlongH
from ...operators.overrides import laid_along_h
from ...operators.table import kind_of
from .engine import Answer, Driver, Match, Pattern, Proposal, Rule
from .shapes import shape_is_said

_HEADS_FIRST = (0, 2, 1, 3)
_PRODUCT = "BATCH_MATMUL"


@dataclass(frozen=True)
class Attention:
    """``queries`` of (1, L, H, d), turned by ``turn``; the ``chain`` from the scores to the second product.

    ``before``: a reshape to heads and the later operators on the queries; nothing where there is no reshape.
    ``matrices``: keys and values. ``behind``: the TRANSPOSE behind the second product, and a reshape of that.
    """

    queries: Tensor
    before: tuple[Operator, ...]
    turn: Operator
    chain: tuple[Operator, ...]
    matrices: tuple[Tensor, Tensor]
    behind: tuple[Operator, ...]

    @property
    def heads(self) -> int:
        """The number of them."""
        return self.queries.shape[2]

    @property
    def gone(self) -> tuple[Operator, ...]:
        """The operators that are rewritten, beside the second product."""
        return (*self.before, self.turn, *self.chain[:-1], *self.behind)


def _attention(match: Match) -> Answer:
    """Return the attention whose second product is the anchor. Nothing is said of other products.

    queries -- turn --+
               keys --+-- chain[0], a product -- ... --+
                                              values --+-- chain[-1], a product -- back -- maybe a reshape
    """
    chain = _chain_to(match.anchor)
    if not chain or len(chain[0].inputs) != 2:
        return None
    (turned, keys), values_of_heads = chain[0].inputs, chain[-1].inputs[1]
    turn = None if turned is None else _swap(turned.producer)
    back = _swap(_only_reader(chain[-1].outputs[0]))
    if turn is None or back is None or keys is None or values_of_heads is None:
        return None
    if not all(_is_free(match, each.outputs[0]) for each in (turn, *chain)):
        return None
    queries, then = turn.inputs[0], _only_reader(back.outputs[0])
    if queries is None:
        return None
    behind = (back,) if then is None or not _is_free_reshape(match, then) else (back, then)
    before = _steps_to(match, queries, turn)
    found = Attention(queries, before, turn, chain, (keys, values_of_heads), behind)
    return Proposal(partial(_split_heads, found)) if _is_of_one_image(found) else None


def _is_of_one_image(found: Attention) -> bool:
    """Tell whether each head multiplies its scores by a computed matrix of its own, as it lies, all of one type."""
    scores = found.chain[0].outputs[0].shape
    if len(scores) != 4 or scores[0] != 1:
        return False
    if any(each.option("adjX", False) for each in (found.chain[0], found.chain[-1])):
        return False
    if any(len(each.shape) != 4 or each.shape[:2] != scores[:2] or each.is_constant for each in found.matrices):
        return False
    return len({each.dtype for each in (found.queries, *found.matrices)}) == 1


def _chain_to(last: Operator) -> tuple[Operator, ...]:
    """From the first product to the second: operators on single elements or rows of scores in between."""
    chain: tuple[Operator, ...] = (last,)
    while (scores := chain[0].inputs[0]) is not None and scores.producer is not None and len(scores.uses) == 1:
        made = scores.producer
        if made.name == _PRODUCT:
            return (made, *chain)
        source = made.inputs[0]
        is_alike = kind_of(made).is_elementwise and source is not None and source.shape == scores.shape
        others = made.inputs[1:]
        if not is_alike or any(each is None or not each.is_constant or each.elements > 1 for each in others):
            break
        chain = (made, *chain)
    return ()


def _only_reader(tensor: Tensor) -> Operator | None:
    return tensor.uses[0].operator if len(tensor.uses) == 1 else None


def _swap(operator: Operator | None) -> Operator | None:
    """Return a TRANSPOSE that lets heads and rows change places; None for any other operator."""
    order = integers(operator.inputs[1]) if operator is not None and operator.name == "TRANSPOSE" else None
    return operator if order is not None and tuple(order.tolist()) == _HEADS_FIRST else None


def _split_heads(found: Attention, edit: Editor) -> None:
    for operator in found.gone:
        edit.remove(operator)
    matrices = [
        [_slice(edit, each, (0, at, 0, 0), (1, 1, *each.shape[2:]), _name(found, at)) for each in found.matrices]
        for at in range(found.heads)
    ]
    queries = _joined_queries(edit, found)
    parts = [_head(edit, found, queries, at, each) for at, each in enumerate(matrices)]
    after, whole = found.behind[-1].outputs[0], parts[0]
    if len(parts) > 1:
        whole = edit.joined(parts, 3, f"{after.name}/heads", after)
    edit.reshape(whole, after)


def _joined_queries(edit: Editor, found: Attention) -> Tensor:
    """Return the queries with their heads as channels, (1, 1, L, H * d).

    Where they come of that shape, and nothing but constants was added since, that is done in this shape.
    """
    source = found.before[0].required(0) if found.before else found.queries
    _, length, heads, depth = found.queries.shape
    x = edit.activation(f"{source.name}/side_by_side", (1, 1, length, heads * depth), source)
    edit.reshape(source, x)
    for operator in found.before[1:]:
        others = [_flat(edit, each, heads, depth) for each in operator.inputs[1:]]
        y = edit.activation(f"{operator.outputs[0].name}/side_by_side", x.shape, operator.outputs[0])
        edit.twin(operator, (x, *others), (y,))
        x = y
    return x


def _steps_to(match: Match, queries: Tensor, reader: Operator) -> tuple[Operator, ...]:
    """Return a reshape to heads, and the operators between it and the queries; none where there is another one."""
    steps: tuple[Operator, ...] = ()
    at = queries
    while at.producer is not None and _is_free(match, at) and at.uses[0].operator is (*steps, reader)[0]:
        made, source = at.producer, at.producer.inputs[0]
        steps = (made, *steps)
        if source is None or made.name == "RESHAPE":
            return steps if source is not None and shape_is_said(made) else ()
        if not kind_of(made).is_elementwise or source.shape != at.shape:
            break
        if any(each is None or _spread(each, *at.shape[2:]) is None for each in made.inputs[1:]):
            break
        at = source
    return ()


def _is_free(match: Match, tensor: Tensor) -> bool:
    """Tell whether one operator alone reads it, and nobody else wants it."""
    return bool(tensor.uses) and not match.is_shared(tensor)


def _is_free_reshape(match: Match, operator: Operator) -> bool:
    source = operator.inputs[0]
    return operator.name == "RESHAPE" and shape_is_said(operator) and source is not None and _is_free(match, source)


def _spread(constant: Tensor, heads: int, depth: int) -> Array | None:
    """Return the values for all channels of all heads; None where they are not the same for every query."""
    found = values(constant)
    if found is None or any(size > 1 for size in found.shape[:-2]):
        return None
    shape = found.shape[-2:]
    return found if found.size == 1 else np.broadcast_to(found.reshape(shape), (heads, depth))


def _flat(edit: Editor, constant: Tensor | None, heads: int, depth: int) -> Tensor | None:
    if constant is None or constant.elements == 1:
        return constant
    spread = _spread(constant, heads, depth)
    assert spread is not None
    return edit.constant(f"{constant.name}/flat", spread.reshape(heads * depth), constant.quantization)


def _head(edit: Editor, found: Attention, queries: Tensor, at: int, matrices: Sequence[Tensor]) -> Tensor:
    """Return the output of one head: (1, 1, L, e)."""
    _, length, _, depth = found.queries.shape
    x = _slice(edit, queries, (0, 0, 0, at * depth), (1, 1, length, depth), _name(found, at))
    others = iter(matrices)
    for operator in found.chain:
        whole = operator.outputs[0]
        y = edit.activation(f"{whole.name}/{_name(found, at)}", (1, 1, *whole.shape[2:]), whole)
        edit.twin(operator, (x, *((next(others),) if operator.name == _PRODUCT else operator.inputs[1:])), (y,))
        x = y
    return x


def _name(found: Attention, at: int) -> str:
    return f"head{at + 1}of{found.heads}"


def _slice(edit: Editor, x: Tensor, begin: Sequence[int], size: Sequence[int], name: str) -> Tensor:
    if tuple(size) == x.shape:
        return x
    cut = edit.activation(f"{x.name}/{name}", size, x)
    edit.slice(x, begin, size, cut)
    return cut


SPLIT_ATTENTION_HEADS = Rule("split_attention_heads", Pattern("product", (_PRODUCT,)), _attention)
"""Split the heads of an attention, so that the queries of each head form one sequence that stripes can cut.

    q (1, L, H, d) -- TRANSPOSE (1, H, L, d) --+
                          keys  (1, H, S, d) --+- BATCH_MATMUL (1, H, L, S) -- MUL, SOFTMAX --+
                        values  (1, H, e, S) -------------------------------------------------+- BATCH_MATMUL
                                                                                                 (1, H, L, e)
    for each head h of H:                                                                  -- TRANSPOSE (1, L, H, e)

    q (1, 1, L, H * d) -- SLICE (1, 1, L, d) --+
            keys -- SLICE of h  (1, 1, S, d) --+- BATCH_MATMUL (1, 1, L, S) -- MUL, SOFTMAX --+
          values -- SLICE of h  (1, 1, e, S) -------------------------------------------------+- BATCH_MATMUL
                                                                                                 (1, 1, L, e)
    and the heads' results side by side, by a CONCATENATION of channels: (1, 1, L, H * e)

No two queries need each other; each needs all keys and values. The matrices of a head are a range of bytes, so that its
slices are views. The bias of the queries, and other elementwise operators on them, are applied
before they are taken apart. Exact: every number is computed of the same numbers in the same order.
"""


NAME = "sequences_along_h"
_SIGNATURE = "shapeSignature"


def sequences_along_h(model: Model) -> Changed:
    """Lay the sequences of a model along H. The heads of attentions are split first."""
    driver, graph = Driver(model), model.main
    for operator in list(graph.operators):
        driver.apply_at((SPLIT_ATTENTION_HEADS,), graph, operator)
    found = _sequences(graph)
    if not any(_along_h(operator).is_worth_it for operator in found.operators):
        return Changed(model)
    _Laying(model, found).run()
    drop_dead_tensors(model)
    rules = " + ".join(dict.fromkeys((*(each.rule for each in driver.applied), NAME)))
    return changed(model, rules, map(label, _making(graph)))


def image_given(graph: Graph, at: int) -> Tensor:
    """Return input ``at``; if all readers only reshape it to one shape, the reshaped tensor, without them.

    A sequence lies along rows so, and a flat spectrogram.
    """
    image = graph.inputs[at]
    readers = [use.operator for use in image.uses]
    made = [operator.outputs[0] for operator in readers]
    if not all(operator.name in RESHAPES for operator in readers) or len({tensor.shape for tensor in made}) != 1:
        return image
    if not all(quantized_alike(image.quantization, tensor.quantization) for tensor in made):
        return image
    for operator in readers:
        graph.remove_operator(operator)
        graph.replace_uses(operator.outputs[0], made[0])
    made[0].name = image.name
    graph.inputs = (*graph.inputs[:at], made[0], *graph.inputs[at + 1 :])
    return made[0]


def _making(graph: Graph) -> Iterator[Operator]:
    """Yield the operators that make sequences along H."""
    for operator in graph.operators:
        shape = operator.outputs[0].shape if operator.outputs else ()
        if len(shape) == 4 and shape[:3:2] == (1, 1) and shape[1] > 1:
            yield operator


@dataclass(frozen=True)
class _Sequences:
    """Operators that can take their sequences along H, in the order of running, and these sequences."""

    operators: tuple[Operator, ...]
    tensors: frozenset[Tensor]


def _sequences(graph: Graph) -> _Sequences:
    """The largest set of operators all of whose operands can lie so, and tensors that only reshapes pass on."""
    tensors = frozenset(tensor for tensor in graph.tensors if _is_sequence(tensor))
    while True:
        operators = tuple(operator for operator in graph.operators if _can_lie(operator, tensors))
        touched = {tensor for each in operators for tensor in (*_taken_along_h(each), *each.outputs)}
        if tensors <= touched:
            return _Sequences(operators, tensors | _passed_on(graph, tensors))
        tensors &= touched


def _is_sequence(tensor: Tensor) -> bool:
    """Tell whether it is (1, 1, L, C), (1, L, C) or (L, C) with L > 1, and computed."""
    ones, length = tensor.shape[:-2], tensor.shape[-2:-1]
    is_long = len(tensor.shape) in (2, 3, 4) and all(size == 1 for size in ones) and length > (1,)
    return is_long and tensor.shape[-1] > 0 and not (tensor.is_constant or tensor.is_variable)


def _can_lie(operator: Operator, sequences: Collection[Tensor]) -> bool:
    """Tell whether the operator computes the same from its sequences along H. Reshapes only pass them on."""
    if len(operator.outputs) != 1 or operator.outputs[0] not in sequences:
        return False
    found = kind_of(operator).along_h
    if found is None or not found.can(operator, sequences):
        return False
    filters = _filters_of(operator)
    return filters is None or all(_is_of_filters(use, sequences) for use in filters.uses)


def _is_of_filters(use: Use, sequences: Collection[Tensor]) -> bool:
    """Tell whether a reader of filters, which are laid along H too, has them as filters, of sequences."""
    found = kind_of(use.operator).along_h
    if found is None or found.filters != use.slot:
        return False
    return any(each in sequences for each in use.operator.inputs) and use.operator.outputs[0] in sequences


def _along_h(operator: Operator) -> AlongH:
    found = kind_of(operator).along_h
    assert found is not None
    return found


def _filters_of(operator: Operator) -> Tensor | None:
    slot = _along_h(operator).filters
    return None if slot is None else operator.inputs[slot]


def _taken_along_h(operator: Operator) -> list[Tensor]:
    """Return the inputs that an operator takes along H."""
    stays, given = _along_h(operator).as_it_lies, enumerate(operator.inputs)
    return [tensor for slot, tensor in given if tensor is not None and slot != stays]


def _passed_on(graph: Graph, tensors: Collection[Tensor]) -> frozenset[Tensor]:
    """Return the same sequences in another shape, which reshapes make and nothing but reshapes reads."""
    found: set[Tensor] = set()
    for operator in filter(shape_is_said, graph.operators):
        source, output = operator.inputs[0], operator.outputs[0]
        is_inner = output not in graph.outputs
        if source is None or not (source in tensors or source in found) or not _is_sequence(output):
            continue
        if is_inner and laid_along_h(source.shape) == laid_along_h(output.shape):
            found.update([output] if all(shape_is_said(use.operator) for use in output.uses) else [])
    return frozenset(found)


class _Laying:
    """Lays the sequences of a graph along H. ``laid``: that form of each, which is itself where all can take it."""

    def __init__(self, model: Model, found: _Sequences) -> None:
        self._graph, self._found = model.main, found
        self._operators = set(found.operators)
        self._edit = Editor(model, model.main, 0)
        interface = {*self._graph.inputs, *self._graph.outputs}
        self._laid = {
            tensor: self._twin(tensor) if self._is_at_a_border(tensor, interface) else tensor
            for tensor in self._graph.tensors
            if tensor in found.tensors
        }

    def run(self) -> None:
        """Operators first: their options depend on the old shapes."""
        for operator in self._found.operators:
            self._tell(operator)
        for filters in {tensor: None for each in self._found.operators if (tensor := _filters_of(each)) is not None}:
            filters.shape = laid_along_h(filters.shape)
        for tensor, laid in self._laid.items():
            if laid is tensor:
                tensor.shape = laid_along_h(tensor.shape)
                tensor.extras = {name: value for name, value in tensor.extras.items() if name != _SIGNATURE}
            else:
                self._at_the_border(tensor, laid)
        for operator in [each for each in self._graph.operators if each.name in RESHAPES]:
            self._reshape(operator)

    def _tell(self, operator: Operator) -> None:
        """Return the overrides of an operator about rows and columns."""
        overrides = _along_h(operator).overrides_for(self._edit, operator)
        for slot, tensor in overrides.operands.items():
            self._graph.set_input(operator, slot, tensor)
        if operator.options is not None:
            operator.options = replace(operator.options, fields={**operator.options.fields, **overrides.fields})

    def _is_at_a_border(self, tensor: Tensor, interface: Collection[Tensor]) -> bool:
        """Tell whether something else than these operators and reshapes needs it as it lies."""
        others = [use.operator for use in tensor.uses]
        others += [] if tensor.producer is None else [tensor.producer]
        if any(each not in self._operators and not shape_is_said(each) for each in others):
            return True
        return tensor in interface or any(self._is_left(use) for use in tensor.uses)

    def _is_left(self, use: Use) -> bool:
        """Tell whether one of the operators reads it as it lies."""
        return use.operator in self._operators and _along_h(use.operator).as_it_lies == use.slot

    def _twin(self, tensor: Tensor) -> Tensor:
        """Return the form along H beside one that stays; it holds the same values."""
        shape = laid_along_h(tensor.shape)
        return self._edit.activation(f"{tensor.name}/along_h", shape, tensor, is_piece=tensor.is_piece)

    def _at_the_border(self, tensor: Tensor, twin: Tensor) -> None:
        """Operators over sequences take the twin; one RESHAPE makes it of the tensor, or the tensor of it."""
        graph, producer = self._graph, tensor.producer
        for use in [use for use in tensor.uses if use.operator in self._operators and not self._is_left(use)]:
            graph.set_input(use.operator, use.slot, twin)
        if producer is not None and producer in self._operators:
            at = graph.operators.index(producer)
            graph.remove_operator(producer)
            producer.outputs = (twin,)
            graph.add_operator(producer, at)
            self._write_reshape(at + 1, twin, tensor)
        else:
            first = min(graph.operators.index(use.operator) for use in twin.uses)
            self._write_reshape(first, tensor, twin)

    def _reshape(self, operator: Operator) -> None:
        """A reshape between two sequences along H of one shape is left out; others get the new shapes."""
        source, output = operator.inputs[0], operator.outputs[0]
        ends = {tensor for tensor in (source, output) if tensor is not None and self._laid.get(tensor) is tensor}
        if source is None or not ends or not shape_is_said(operator):
            return
        at = self._graph.operators.index(operator)
        self._graph.remove_operator(operator)
        is_copy = source.shape == output.shape and not source.is_variable
        if is_copy and output in ends and quantized_alike(source.quantization, output.quantization):
            self._graph.replace_uses(output, source)
        else:
            self._write_reshape(at, source, output, operator)

    def _write_reshape(self, position: int, source: Tensor, output: Tensor, like: Operator | None = None) -> None:
        """``source`` in the shape of ``output``, by an operator of the kind of ``like`` where that can be."""
        edit, kind = self._edit, None if like is None else like.name
        edit.position = position
        is_added = (*source.shape[:2], 1, *source.shape[2:]) == output.shape
        is_dropped = (*output.shape[:2], 1, *output.shape[2:]) == source.shape
        if like is not None and kind == "EXPAND_DIMS" and is_added:
            axis = edit.constant(f"{output.name}/axis", np.asarray(2, np.int32))
            edit.twin(like, (source, axis), (output,))
        elif like is not None and kind == "SQUEEZE" and is_dropped:
            edit.twin(like, (source,), (output,), squeezeDims=np.asarray([2], np.int32))
        else:
            edit.reshape(source, output)
