r"""The heads of an attention are split, so that the queries of each are one sequence: stripes can run along it.

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.constants import integers, values
from ...ir.editor import Editor
from ...ir.making import Array
from ...ir.model import Operator, Tensor
from ...operators.table import kind_of
from ..pattern import Match, Pattern
from ..reshaping import shape_is_said
from ..rule import Rule

_HEADS_FIRST = (0, 2, 1, 3)
_PRODUCT = "BATCH_MATMUL"


@dataclass(frozen=True)
class Attention:
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
        """What is written anew, beside the second product."""
        return (*self.before, self.turn, *self.chain[:-1], *self.behind)


def _check(match: Match) -> Attention | None:
    """The attention whose second product is the anchor. Nothing is said of other products."""
    chain = _chain_to(match.anchor)
    if not chain or any(each.option("adjX", False) for each in (chain[0], chain[-1])) or len(chain[0].inputs) != 2:
        return None
    turned, keys = chain[0].inputs
    turn, back = None if turned is None else turned.producer, _only_reader(chain[-1].outputs[0])
    if turn is None or keys is None or back is None or not (_swaps(turn) and _swaps(back)):
        return None
    queries, matrix = turn.inputs[0], chain[-1].inputs[1]
    if queries is None or matrix is None:
        return None
    then = _only_reader(back.outputs[0])
    behind = (back,) if then is None or not _is_free_reshape(match, then) else (back, then)
    found = Attention(queries, _steps_to(match, queries, turn), turn, chain, (keys, matrix), behind)
    scores = chain[0].outputs[0].shape
    is_plain = len(scores) == 4 and scores[0] == 1 and all(len(each.shape) == 4 for each in found.matrices)
    if not is_plain or any(each.shape[:2] != scores[:2] or each.is_constant for each in found.matrices):
        return None
    is_free = all(_is_free(match, each.outputs[0]) for each in (turn, *chain))
    return found if is_free and len({each.dtype for each in (queries, *found.matrices)}) == 1 else None


def _chain_to(last: Operator) -> tuple[Operator, ...]:
    """From the first product to the second: what is done to single elements or to rows of scores in between."""
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


def _swaps(operator: Operator) -> bool:
    """Whether it is a TRANSPOSE that lets heads and rows change places."""
    order = integers(operator.inputs[1]) if operator.name == "TRANSPOSE" else None
    return order is not None and tuple(order.tolist()) == _HEADS_FIRST


def _rewrite(found: Attention, edit: Editor) -> None:
    for operator in found.gone:
        edit.remove(operator)
    matrices = [[_matrix(edit, found, each, at) for each in found.matrices] for at in range(found.heads)]
    queries = _joined_queries(edit, found)
    parts = [_head(edit, found, queries, at, each) for at, each in enumerate(matrices)]
    _, heads, length, width = found.chain[-1].outputs[0].shape
    after, whole = found.behind[-1].outputs[0], parts[0]
    if len(parts) > 1:
        whole = edit.activation(f"{after.name}/heads", (1, 1, length, heads * width), after)
        edit.join(parts, whole, 3)
    edit.reshape(whole, after)


def _joined_queries(edit: Editor, found: Attention) -> Tensor:
    """The queries with their heads as channels, (1, 1, L, H * d).

    Where they come of that shape, and nothing but constants was added since, that is done in this shape.
    """
    source = found.before[0].inputs[0] if found.before else found.queries
    assert source is not None
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
    """A reshape to heads, and the operators between it and the queries; none where there is another one."""
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
    """Whether one operator alone reads it, and nobody else wants it."""
    return len(tensor.uses) == 1 and not match.must_stay(tensor)


def _is_free_reshape(match: Match, operator: Operator) -> bool:
    source = operator.inputs[0]
    return operator.name == "RESHAPE" and shape_is_said(operator) and source is not None and _is_free(match, source)


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


def _matrix(edit: Editor, found: Attention, whole: Tensor, at: int) -> Tensor:
    return _slice(edit, whole, (0, at, 0, 0), (1, 1, *whole.shape[2:]), _name(found, at))


def _head(edit: Editor, found: Attention, queries: Tensor, at: int, matrices: Sequence[Tensor]) -> Tensor:
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


def _name(found: Attention, at: int) -> str:
    return f"head{at + 1}of{found.heads}"


def _slice(edit: Editor, x: Tensor, begin: Sequence[int], size: Sequence[int], name: str) -> Tensor:
    if tuple(size) == x.shape:
        return x
    cut = edit.activation(f"{x.name}/{name}", size, x)
    edit.slice(x, begin, size, cut)
    return cut


SPLIT_ATTENTION_HEADS = Rule("split_attention_heads", Pattern("product", (_PRODUCT,)), _check, _rewrite)
