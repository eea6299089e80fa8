"""How operators are evaluated on random values, by the table of their kinds in ``contracts.py``.

Three ways, from the most to the least that is known of a kernel:

    moves    elements are where numpy puts them (moves.py); integers that are known are computed (COUNTS)
    sums     products are added, and the rest is a function of the sum and of parameters (sums.py)
    whole    each output element is a function of its place and of all elements of all inputs: always right

A kernel that the first two do not follow for its operands is taken as the third. Subgraphs, variables and custom
operators have effects beyond their outputs: run.py has them.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import moves
from .call import Call, CoarseError
from .contracts import CONTRACTS, Evaluated
from .ring import Value

_WHOLE = (
    "CONV_3D LOCAL_RESPONSE_NORMALIZATION ONE_HOT REVERSE_SEQUENCE SCATTER_ND SVDF TOPK_V2 "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNIQUE WHERE"
)
KINDS: Mapping[str, Evaluated] = {
    **{name: each.evaluated for name, each in CONTRACTS.items() if each.evaluated is not None},
    **dict.fromkeys(_WHOLE.split(), moves.whole),
}
"""By the builtin's schema name."""


def evaluate(call: Call) -> tuple[list[Value], bool]:
    """The outputs of an operator of the table, and whether it was taken as a function of everything."""
    evaluated = KINDS[call.operator.name]
    try:
        found = moves.count(call) if call.operator.name in moves.COUNTS else None
        return (evaluated(call) if found is None else found), evaluated is moves.whole
    except CoarseError:
        return moves.whole(call), True
