r"""The heads of an attention apart, so that the queries of each are one sequence: stripes can run along it.

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
slices are views. The bias that is added to the queries, and what else is done to them element by element, is done
before they are taken apart. Exact: every number is computed of the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.constants import integers, values
from ..ir.editor import Editor
from ..ir.making import Array
from ..ir.model import Graph, Model, Operator, Tensor
from ..operators.table import kind_of
from .turning import shape_is_said

_SWAPPED = (0, 2, 1, 3)
_PRODUCT = "BATCH_MATMUL"


@dataclass(frozen=True)
class _Attention:
    """``queries`` of (1, L, H, d), turned by ``turn``; the ``chain`` from the scores to the second product.

    ``before``: a reshape to heads and what is done to the queries since; nothing where there is no reshape.
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
        """How many."""
        return self.queries.shape[2]

    @property
    def gone(self) -> tuple[Operator, ...]:
        """What is written anew."""
        return (*self.before, self.turn, *self.chain, *self.behind)


def heads_apart(model: Model, kept: Collection[str] = ()) -> None:
    """Take the heads of all attentions of the main graph apart, in place. Tensors named in ``kept`` stay."""
    graph = model.main
    for operator in list(graph.operators):
        found = _attention(graph, operator, kept)
        if found is not None:
            _write(model, graph, found)


def _attention(graph: Graph, first: Operator, kept: Collection[str]) -> _Attention | None:
    """The attention whose scores are written by ``first``."""
    if first.name != _PRODUCT or first.option("adjX", False) or len(first.inputs) != 2:
        return None
    turned, keys = first.inputs
    turn = None if turned is None else turned.producer
    chain = tuple(_chain(first))
    back = _only_reader(chain[-1].outputs[0]) if len(chain) > 1 else None
    if turn is None or keys is None or back is None or chain[-1].name != _PRODUCT or chain[-1].option("adjX", False):
        return None
    queries, matrix = turn.inputs[0], chain[-1].inputs[1]
    if queries is None or matrix is None or not (_swaps(turn) and _swaps(back)):
        return None
    then = _only_reader(back.outputs[0])
    behind = (back,) if then is None or not _is_free_reshape(graph, then, kept) else (back, then)
    found = _Attention(queries, _steps_to(graph, queries, turn, kept), turn, chain, (keys, matrix), behind)
    scores = first.outputs[0].shape
    is_plain = len(scores) == 4 and scores[0] == 1 and all(len(each.shape) == 4 for each in found.matrices)
    if not is_plain or any(each.shape[:2] != scores[:2] or each.is_constant for each in found.matrices):
        return None
    is_free = all(_is_free(graph, each.outputs[0], kept) for each in (turn, *chain))
    return found if is_free and len({each.dtype for each in (queries, *found.matrices)}) == 1 else None


def _chain(first: Operator) -> Iterator[Operator]:
    """From the first product on: what is done to single elements or to rows of scores, and the second product."""
    yield first
    shape, last = first.outputs[0].shape, first
    while (reader := _only_reader(last.outputs[0])) is not None and reader.inputs[0] is last.outputs[0]:
        others = reader.inputs[1:]
        if reader.name == _PRODUCT:
            yield reader
            return
        is_alike = kind_of(reader).is_elementwise and len(reader.outputs) == 1 and reader.outputs[0].shape == shape
        if not is_alike or any(each is None or not each.is_constant or each.elements > 1 for each in others):
            return
        yield reader
        last = reader


def _only_reader(tensor: Tensor) -> Operator | None:
    return tensor.uses[0].operator if len(tensor.uses) == 1 else None


def _swaps(operator: Operator) -> bool:
    """Whether it is a TRANSPOSE that lets heads and rows change places."""
    order = integers(operator.inputs[1]) if operator.name == "TRANSPOSE" else None
    return order is not None and tuple(order.tolist()) == _SWAPPED


def _write(model: Model, graph: Graph, found: _Attention) -> None:
    edit = Editor(model, graph, graph.operators.index(found.chain[-1]) + 1)
    for operator in found.gone:
        edit.remove(operator)
    matrices = [[_matrix(edit, found, each, at) for each in found.matrices] for at in range(found.heads)]
    queries = _joined_queries(edit, found)
    parts = [_head(edit, found, queries, at, each) for at, each in enumerate(matrices)]
    _, heads, length, width = found.chain[-1].outputs[0].shape
    after, whole = found.behind[-1].outputs[0], parts[0]
    if len(parts) > 1:
        whole = edit.activation(f"{after.name}/heads", (1, 1, length, heads * width), after)
        edit.operator("CONCATENATION", parts, (whole,), "ConcatenationOptions", axis=3)
    edit.reshape(whole, after)


def _joined_queries(edit: Editor, found: _Attention) -> Tensor:
    """The queries with their heads as channels, (1, 1, L, H * d).

    Where they come of that shape, and nothing but constants was added since, that is done in this shape.
    """
    source = found.before[0].inputs[0] if found.before else found.queries
    assert source is not None
    _, length, heads, depth = found.queries.shape
    x = edit.activation(f"{source.name}/lying", (1, 1, length, heads * depth), source)
    edit.reshape(source, x)
    for operator in found.before[1:]:
        others = [_flat(edit, each, heads, depth) for each in operator.inputs[1:]]
        y = edit.activation(f"{operator.outputs[0].name}/lying", x.shape, operator.outputs[0])
        edit.twin(operator, (x, *others), (y,))
        x = y
    return x


def _steps_to(graph: Graph, queries: Tensor, reader: Operator, kept: Collection[str]) -> tuple[Operator, ...]:
    """A reshape to heads, and the operators between it and the queries; none where there is another one."""
    steps: tuple[Operator, ...] = ()
    at = queries
    while at.producer is not None and _is_free(graph, at, kept) and at.uses[0].operator is (*steps, reader)[0]:
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


def _is_free(graph: Graph, tensor: Tensor, kept: Collection[str]) -> bool:
    """Whether one operator alone reads it, and nobody else wants it."""
    return len(tensor.uses) == 1 and tensor.name not in kept and tensor not in graph.outputs


def _is_free_reshape(graph: Graph, operator: Operator, kept: Collection[str]) -> bool:
    source = operator.inputs[0]
    return (
        operator.name == "RESHAPE" and shape_is_said(operator) and source is not None and _is_free(graph, source, kept)
    )


def _spread(constant: Tensor, heads: int, depth: int) -> Array | None:
    """The values for all channels of all heads; None where they are not the same for every query."""
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


def _matrix(edit: Editor, found: _Attention, whole: Tensor, at: int) -> Tensor:
    return _slice(edit, whole, (0, at, 0, 0), (1, 1, *whole.shape[2:]), _name(found, at))


def _head(edit: Editor, found: _Attention, queries: Tensor, at: int, matrices: Sequence[Tensor]) -> Tensor:
    """What one head makes: (1, 1, L, e)."""
    _, length, _, depth = found.queries.shape
    x = _slice(edit, queries, (0, 0, 0, at * depth), (1, 1, length, depth), _name(found, at))
    others = iter(matrices)
    for operator in found.chain:
        whole = operator.outputs[0]
        y = edit.activation(f"{whole.name}/{_name(found, at)}", (1, 1, *whole.shape[2:]), whole)
        edit.twin(operator, (x, *((next(others),) if operator.name == _PRODUCT else operator.inputs[1:])), (y,))
        x = y
    return x


def _name(found: _Attention, at: int) -> str:
    return f"head{at + 1}of{found.heads}"


def _slice(edit: Editor, x: Tensor, begin: Sequence[int], size: Sequence[int], name: str) -> Tensor:
    if tuple(size) == x.shape:
        return x
    cut = edit.activation(f"{x.name}/{name}", size, x)
    edit.slice(x, begin, size, cut)
    return cut
