"""``python -m tflite_memopt``, and the command: it is there for Ctrl-C before anything large is loaded."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any, NoReturn

_INTERRUPTED = 130
"""As ``cli.exit_codes`` has it, which is not loaded yet."""
_OBJECTS = 50_000
"""New objects between two looks for dead ones that refer to each other; Python's own number is 700."""


def main() -> NoReturn:
    """Load the command line and run it. An interrupt during loading also ends with one line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    # The proof's matrices are small: threads of numpy's BLAS, which wait for each other, take five times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_OBJECTS)  # this process is the command's own, and a search makes many objects that live long
    from .cli import load
    from .cli import main as run

    load(sys.argv[1:2])
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(signum: int, frame: Any) -> NoReturn:
    """At once: an exception amid an import may come out of it as another one."""
    os.write(2, b"tflite-memopt: interrupted; nothing was written\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
