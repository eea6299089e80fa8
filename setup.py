"""Build the compiled copy of the planner's inner loops, where Cython and a C compiler are there; else goes without.

TFLITE_MEMOPT_PLANNERS says more, for releases: ``compiled`` fails where they cannot be built, ``python`` leaves them
out, for a wheel that fits every machine. Everything else about the package is in setup.cfg.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

SOURCES = (Path("tflite_memopt/solvers/plan/disjunctive.py"),)
COPIES = Path("build/cython")
WANTED = os.environ.get("TFLITE_MEMOPT_PLANNERS", "")
if WANTED not in ("", "compiled", "python"):
    raise SystemExit(f"TFLITE_MEMOPT_PLANNERS is {WANTED!r}: write compiled or python, or leave it out")
NO_DEBUG_INFORMATION = ["-g0"] if os.name == "posix" else []
"""Python's own flags ask GCC and Clang for it: three quarters of the wheel were that. Other compilers leave it out."""


def extensions() -> list[Extension]:
    """One extension for each source, or none without Cython. ``optional``: what cannot be compiled is left out.

    The flag is set on what cythonize() returns: it makes extensions of its own, and drops the flag.
    """
    if WANTED == "python":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if WANTED:
            raise
        return []
    directives = {"language_level": 3, "infer_types": True, "annotation_typing": False}
    checks = {"boundscheck": False, "wraparound": False, "initializedcheck": False}
    found: list[Extension] = cythonize(
        [_extension(source) for source in SOURCES], include_path=["."], compiler_directives=directives | checks
    )
    for each in found:
        each.optional = not WANTED
    return found


def _extension(source: Path) -> Extension:
    """The source under the name of its extension, with its digest, by which a stale build is noticed."""
    data = source.read_bytes()
    copy = COPIES / f"_{source.name}"
    text = data + f'\n\nSOURCE_DIGEST = "{sha256(data).hexdigest()}"\n'.encode()
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.exists() or copy.read_bytes() != text:  # else it is compiled again for nothing
        copy.write_bytes(text)
    name = ".".join((*source.parent.parts, copy.stem))
    return Extension(name, [str(copy)], extra_compile_args=NO_DEBUG_INFORMATION)


setup(ext_modules=extensions())
