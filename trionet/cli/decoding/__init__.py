"""What ``trionet decode`` is made of: reading, and apart from it, showing.

Bytes come from ``text_forms``, ``hex_dumps`` and ``source``; ``recognition`` says what they are,
and ``pieces`` cuts them up. ``conversation``, ``batches`` and what they use turn a piece into an
``Entry``, a tree of plain values (``tree``), which ``lines`` and ``documents`` show.
"""
