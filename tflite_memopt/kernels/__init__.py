"""What kernel libraries request and permit: profiles, prices, targets, faults, and TFLM's arena, replayed.

``requests`` has the bytes that a kernel asks for, ``relations`` where its output may lie on its input, ``arena`` TFLM's
allocator replayed, ``as_it_came`` what TFLM makes of a file, ``faults`` the operators that a library is known to
compute wrongly and ``mend`` how they are written otherwise, ``support`` and ``since`` the operators that TFLM runs and
since when, ``window`` a convolution's geometry.
"""

from __future__ import annotations

DOOR = (
    "arena",
    "as_it_came",
    "boards",
    "chips",
    "cmsis_nn",
    "code_size",
    "esp_nn",
    "faults",
    "mend",
    "prices",
    "profile",
    "profiles",
    "relations",
    "requests",
    "since",
    "support",
    "targets",
    "window",
)
"""The modules that other folders import; the rest is private to this one."""
