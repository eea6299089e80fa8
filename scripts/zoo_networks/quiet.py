"""Keeps TensorFlow's chatter off the terminal, without losing it when something goes wrong."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


class NoConversionError(Exception):
    """The converter has no such kind of file of this network; the message is its own."""


def prepare_environment() -> None:
    """To be called before TensorFlow is imported: no GPU, no start-up messages, the same sums on every machine."""
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back what is written to stderr, by C++ too; show it if the block raises."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except NoConversionError:
            raise
        except BaseException:
            log.seek(0)
            with os.fdopen(os.dup(kept), "wb") as terminal:
                shutil.copyfileobj(log, terminal)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
