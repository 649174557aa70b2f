"""The schema compiler: kio's dataclass metadata in, ``trionet/protocol``'s generated modules out.

Reading order: ``apis`` (what is generated), ``old`` (versions that kio lacks), ``schema`` (the
model), ``lines`` (text), ``decoding`` and ``encoding`` (one function per distinct layout),
``meanings`` (of fields), ``classes``, ``modules``, ``cli``.
"""
