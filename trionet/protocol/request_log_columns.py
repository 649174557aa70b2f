"""Decoding of a request log into Arrow columns. Imports pyarrow and numpy (extra ``spark``).

Decoding is vectorized. The fixed-size fields of all values become one NumPy array, and the texts,
most of which repeat, become Arrow dictionaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol.records.columnar._arrow_columns import number_column
from trionet.protocol.request_log import (
    CONNECTION,
    CONNECTION_TEXTS,
    REQUEST,
    TEXTS,
    VERSION,
)

__all__ = ["decode_columns"]

_HEAD: Final = [
    ("version", "u1"),
    ("kind", "u1"),
    *((f"{name}_length", "u1") for name in TEXTS),
    ("node_id", ">i4"),
    ("processor", ">u4"),
    ("sample_ppm", ">u4"),
]
_REQUEST: Final = np.dtype(
    [
        *_HEAD,
        ("api_key", ">i2"),
        ("api_version", ">i2"),
        ("end", "u1"),
        ("error_code", ">i2"),
        ("completed_at", ">i8"),
        ("request_bytes", ">u4"),
        ("response_bytes", ">u4"),
        ("request_queue_us", ">u4"),
        ("local_us", ">u4"),
        ("remote_us", ">u4"),
        ("throttle_us", ">u4"),
        ("response_queue_us", ">u4"),
        ("response_send_us", ">u4"),
        ("total_us", ">u4"),
    ]
)
_CONNECTION: Final = np.dtype(
    [
        *_HEAD,
        ("closed_at", ">i8"),
        ("open_us", ">u8"),
        ("requests", ">u8"),
        ("bytes_received", ">u8"),
        ("bytes_sent", ">u8"),
        *((f"{name}_length", "u1") for name in CONNECTION_TEXTS),
    ]
)
_TIMES: Final = ("completed_at", "closed_at")
_TIME: Final = pa.timestamp("us", tz="UTC")
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())


def _schema(layout: Any, texts: Sequence[str]) -> Any:
    fields = [("row", pa.int64())]
    for name in layout.names:
        if name not in ("version", "kind") and not name.endswith("_length"):
            kind = pa.from_numpy_dtype(layout[name].newbyteorder("="))
            fields.append((name, _TIME if name in _TIMES else kind))
    return pa.schema([*fields, *((name, _TEXT) for name in texts)])


_ALL_TEXTS: Final = (*TEXTS, *CONNECTION_TEXTS)
REQUESTS: Final = _schema(_REQUEST, TEXTS)
CONNECTIONS: Final = _schema(_CONNECTION, _ALL_TEXTS)

_Numbers = NDArray[np.int64]


def decode_columns(values: Any) -> tuple[Any, Any]:
    """Decode values into two ``pyarrow.RecordBatch`` objects, of requests and of connections.

    The columns are defined by ``REQUESTS`` and ``CONNECTIONS``. The column ``row`` is the index of
    the value. All other columns have the names of the fields in
    :mod:`trionet.protocol.request_log`, with times as Arrow timestamps.

    Args:
        values: a ``pyarrow.BinaryArray`` or ``pyarrow.LargeBinaryArray``.

    Raises:
        WireFormatError: a value is null or malformed; see :func:`.request_log.decode`.
    """
    if values.null_count:
        raise WireFormatError("a request log value is null")
    width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    _, bounds_buffer, data_buffer = values.buffers()
    count = len(values)
    bounds: _Numbers = (
        np.frombuffer(bounds_buffer, width)[values.offset : values.offset + count + 1]
        if count
        else np.zeros(1, np.int64)
    ).astype(np.int64)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    if (lengths < 2).any():
        raise _wrong_length()
    versions, kinds = data[starts], data[starts + 1]
    unknown = (versions != VERSION) | ((kinds != REQUEST) & (kinds != CONNECTION))
    if unknown.any():
        first = int(np.argmax(unknown))
        raise WireFormatError(
            f"unsupported request log value of version {versions[first]} and kind {kinds[first]} at"
            f" index {first}; expected version {VERSION}, and kind {REQUEST} or {CONNECTION}"
        )
    requests, connections = (np.flatnonzero(kinds == kind) for kind in (REQUEST, CONNECTION))
    return (
        _decode(data, starts, lengths, requests, _REQUEST, TEXTS, REQUESTS),
        _decode(data, starts, lengths, connections, _CONNECTION, _ALL_TEXTS, CONNECTIONS),
    )


def _decode(
    data: NDArray[np.uint8],
    starts: _Numbers,
    lengths: _Numbers,
    rows: _Numbers,
    layout: Any,
    texts: Sequence[str],
    schema: Any,
) -> Any:
    """Decode the values at ``rows``, all of the same kind."""
    starts, lengths = starts[rows], lengths[rows]
    size = layout.itemsize
    if (lengths < size).any():
        raise _wrong_length()
    fixed = data[starts[:, None] + np.arange(size)].view(layout).reshape(-1)
    columns = {"row": number_column(pa.int64(), rows)}
    for name in schema.names:
        if name in layout.names:
            native = fixed[name].astype(layout[name].newbyteorder("="))
            columns[name] = number_column(schema.field(name).type, native)
    position = starts + size
    for name in texts:
        text_lengths = fixed[f"{name}_length"].astype(np.int64)
        columns[name] = (position, text_lengths)
        position = position + text_lengths
    if (position != starts + lengths).any():
        raise _wrong_length()
    for name in texts:
        columns[name] = _text(data, *columns[name])
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _text(data: NDArray[np.uint8], starts: _Numbers, lengths: _Numbers) -> Any:
    count = len(starts)
    if not count:
        return pa.nulls(0, _TEXT)
    # Arrow needs ascending offsets, so the gaps between texts become elements, too.
    bounds = np.empty(2 * count, np.int64)
    bounds[0::2] = starts
    bounds[1::2] = starts + lengths
    texts_and_gaps = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    each_second = number_column(pa.int64(), np.arange(0, 2 * count, 2, dtype=np.int64))
    encoded = texts_and_gaps.take(each_second).dictionary_encode()
    try:
        words = encoded.dictionary.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise WireFormatError(f"text in a request log is not valid UTF-8: {error}") from error
    return pa.DictionaryArray.from_arrays(encoded.indices, words)


def _wrong_length() -> WireFormatError:
    return WireFormatError("the length of a request log value does not match its contents")
