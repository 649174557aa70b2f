"""Which code reads and writes records here: the compiled one, or the one for the interpreter.

Both do the same, and fail in the same way. ``TRIONET_PURE=1`` decides for the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trionet import is_compiled

if TYPE_CHECKING or not is_compiled():
    from trionet.protocol.records import _pure_reader as reader
    from trionet.protocol.records import _pure_writer as writer
else:
    from trionet.protocol.records import _typed_reader as reader

    try:
        from trionet.protocol.records import _typed_writer as writer
    except (ImportError, ValueError) as error:  # ValueError: a librt of another time
        import logging  # hardly ever needed, and slow to load

        from trionet.protocol.records import _pure_writer as writer

        logging.getLogger("trionet.protocol").warning(
            "records are written in pure Python, because librt cannot be used: %s; "
            "`pip install --upgrade librt`",
            error,
        )

BatchBuilder = writer.BatchBuilder
#: Whether the writer is compiled, so that compiled code may call it as C.
is_typed = writer.__name__.endswith("typed_writer")

__all__ = ["BatchBuilder", "is_typed", "reader", "writer"]
