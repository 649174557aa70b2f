"""Record batches (message format 2): headers, checksums, records and compression."""

from __future__ import annotations

from ..._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._batch import BatchHeader, check_crc, iter_batches, read_header
    from ._crc32c import crc32c
    from ._implementation import BatchBuilder
    from ._records import (
        BatchFields,
        EndTransactionMarker,
        batch_chunks,
        decode_batch,
        decode_columns,
        decode_values,
        encode_batch,
        encode_columns,
        encode_marker,
        read_marker,
    )
    from ._types import Columns
    from .columnar._arrow_columns import decode_arrow
    from .columnar._numpy_columns import decode_numpy
    from .compression._codecs import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress
    from .message_sets._conversion import down_convert, down_steps, up_convert, up_steps
    from .message_sets._message_set import decode_message_set, encode_message_set, iter_messages

__all__ = [
    "GZIP",
    "LZ4",
    "NONE",
    "SNAPPY",
    "ZSTD",
    "BatchBuilder",
    "BatchFields",
    "BatchHeader",
    "Columns",
    "EndTransactionMarker",
    "batch_chunks",
    "check_crc",
    "compress",
    "crc32c",
    "decode_arrow",
    "decode_batch",
    "decode_columns",
    "decode_message_set",
    "decode_numpy",
    "decode_values",
    "decompress",
    "down_convert",
    "down_steps",
    "encode_batch",
    "encode_columns",
    "encode_marker",
    "encode_message_set",
    "iter_batches",
    "iter_messages",
    "read_header",
    "read_marker",
    "up_convert",
    "up_steps",
]

_HOMES = {
    "_batch": "BatchHeader check_crc iter_batches read_header",
    "_crc32c": "crc32c",
    "_implementation": "BatchBuilder",
    "_records": (
        "BatchFields EndTransactionMarker batch_chunks decode_batch decode_columns decode_values "
        "encode_batch encode_columns encode_marker read_marker"
    ),
    "_types": "Columns",
    "columnar._arrow_columns": "decode_arrow",
    "columnar._numpy_columns": "decode_numpy",
    "compression._codecs": "GZIP LZ4 NONE SNAPPY ZSTD compress decompress",
    "message_sets._conversion": "down_convert down_steps up_convert up_steps",
    "message_sets._message_set": "decode_message_set encode_message_set iter_messages",
}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
