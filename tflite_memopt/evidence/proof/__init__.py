"""Prove two models equal for all inputs, and a memory plan correct, by one run on random values.

It imports the intermediate representation, and knows nothing of rules, stripes, schedules or kernels' code: it judges
the work of others. Of what rewrites derive it asks one thing, the ranges of channels, and only for a veto (``run.py``).
"""

from .equality import chained, differing_side, inputs_of, not_proved, prove, prove_computed
from .facts import FACTS
from .outcome import BrokenModelError, Notes, Proof, Status, UndecidedError
from .plan import Places, prove_plan
from .ring import Keys
from .run import Run
from .streamed import Kind, Streamed, outputs_of_calls, prove_streamed, stream_of

DOOR = "ring"
"""Modules that other folders may import."""

__all__ = ["FACTS", "BrokenModelError", "Keys", "Kind", "Notes", "Places", "Proof", "Run", "Status"]
__all__ += ["Streamed", "UndecidedError", "chained", "differing_side", "inputs_of", "not_proved", "outputs_of_calls"]
__all__ += ["prove", "prove_computed", "prove_plan", "prove_streamed", "stream_of"]
