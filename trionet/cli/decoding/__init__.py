"""Parts of ``trionet decode``: reading, decoding, and showing.

Bytes come from ``text_forms``, ``hex_dumps`` and ``source``; ``recognition`` detects their kind,
and ``pieces`` splits them. ``conversation``, ``batches`` and what they use decode a part into an
``Entry``, a tree of plain values (``tree``), which ``lines`` and ``documents`` format.
"""
