"""What kernel libraries guarantee and what they take: profiles, and the cost model of TFLM's arena.

Other folders import ``profile`` and ``profiles`` (the table), ``requests`` (bytes that a kernel asks for),
``relations`` (where its output may lie on its input), ``arena`` (TFLM's allocator replayed), ``prices``, ``support``
(types that TFLM runs), ``since`` (its dates), ``targets`` with ``chips`` and ``boards``, and ``window`` (a
convolution's geometry). ``cmsis_nn`` and ``esp_nn`` are behind the profiles.
"""
