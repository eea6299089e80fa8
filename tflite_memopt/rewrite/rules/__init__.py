"""One rewrite per file; :mod:`tflite_memopt.rewrite.table` lists them.

A file has the drawing, the exactness and its sources, and a ``Rule``: ``pattern``, the operator and what writes some
of its inputs; ``check``, which looks at one match and changes nothing, and returns its findings, the reason why it
refuses, or None where the rule is not about such an operator; and ``rewrite``, which writes the new operators from
the findings. An operator that does not mix channels is a row in ``split_channelwise.py``. Copy
``tests/rewrite/test_split_slice.py``: random patterns with the same bits on LiteRT and TFLM, and each reason once.
"""
