"""The selected implementation of the record reader and writer: compiled or pure Python.

Both implementations have the same behaviour and raise the same errors. ``TRIONET_PURE=1`` selects
pure Python.
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
    except (ImportError, ValueError) as error:  # ValueError: an incompatible version of librt
        from trionet._util._logging import get_logger  # logging is slow to import
        from trionet.protocol.records import _pure_writer as writer

        get_logger("trionet.protocol").warning(
            "records are written in pure Python, because librt cannot be used: %s; "
            "run `pip install --upgrade librt`",
            error,
        )

#: The batch builder; both implementations have the same interface.
BatchBuilder = writer.BatchBuilder
#: Whether the writer is compiled, so that other compiled code can call it natively.
is_typed = writer.__name__.endswith("typed_writer")

__all__ = ["BatchBuilder", "is_typed", "reader", "writer"]
