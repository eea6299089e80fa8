"""What kernel libraries request and permit: profiles, prices, targets, faults, and TFLM's arena, replayed.

What TFLM's own kernels do with a kind of operator is in its row (``operators/table.py``). ``requests`` has what the
operators of a model ask for, ``cmsis_nn`` and ``esp_nn`` what those libraries do otherwise, ``arena`` TFLM's allocator
replayed, ``as_it_came`` what TFLM makes of a file, ``faults`` the operators that a library is known to compute wrongly
and ``mend`` how they are written otherwise, ``support`` and ``since`` the operators that TFLM runs and since when.
"""

DOOR = (
    "arena as_it_came boards chips cmsis_nn code_size esp_nn faults mend prices profile profiles since support targets"
)
"""The modules that other folders import; the rest is private to this one."""
