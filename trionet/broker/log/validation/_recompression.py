"""Recompresses batches with the topic's codec, if its ``compression.type`` is not ``producer``.

Batches that already use that codec are stored unchanged, regardless of their compression level. In
other batches, only the compressed records change, along with codec, length and CRC; counts,
timestamps, producer, sequence numbers and other flags stay the same. (Kafka's LogValidator rebuilds
such batches from their records.)
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from ...._util._off_loop import OFF_LOOP_BYTES, computing_threads
from ...._util.files._log_file import Buffer
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import INVALID_RECORD
from ....protocol.records._batch import (
    CRC_START,
    HEADER_SIZE,
    PREFIX_SIZE,
    BatchHeader,
    iter_batches,
)
from ....protocol.records._crc32c import crc32c
from ....protocol.records._records import INFLATED_BYTES_MAX
from ....protocol.records.compression._codecs import (
    DEFAULT_LEVELS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)
from ..files._directory import Directory
from ..segments._log_config import LogConfig
from ._validation import check_batches

_CODECS: Final = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
_CODEC_MASK: Final = 0x07
_MAGIC: Final = 2

#: The usual maximum of a compression ratio. Decompression stops at records that expand further.
_USUAL_RATIO: Final = 8


def must_recompress(records: Buffer, config: LogConfig) -> bool:
    """Return whether any batch must be recompressed because it does not use the topic's codec.

    Ignores anything but batches in format 2; the log rejects the rest.
    """
    codec = _CODECS[config.compression_type]
    try:
        return any(
            header.codec != codec for _, header in iter_batches(records) if header.magic == _MAGIC
        )
    except WireFormatError:
        return False


async def recompress(
    records: Buffer,
    config: LogConfig,
    directory: Directory,
    now_ms: int,
    transaction_version: int = -1,
) -> bytes:
    """Recompress the batches of a records field with the topic's codec. Always a checkpoint.

    Large fields are recompressed in a thread. So are all fields of a topic with a non-default
    compression level, since the highest level of zstd takes a tenth of a second even for the
    smallest batch.

    Args:
        records: one or more batches, as received.
        config: the settings of the topic.
        directory: the partition's directory, whose ``in_thread`` method does the work.
        now_ms: the current time.
        transaction_version: see :meth:`.Log.append`.

    Raises:
        ApiError: the same errors as for an append of these batches, or INVALID_RECORD if the
            records cannot be decompressed or exceed 128 MB when decompressed.

    Cancellation: work in a thread is completed, and its result is returned.
    """
    headers = check_batches(records, config, now_ms, transaction_version)
    await trio.lowlevel.checkpoint()
    if _is_quick(headers, config):
        try:
            return _recompressed(records, headers, config, OFF_LOOP_BYTES)
        except ApiError:
            pass  # it expands too much for the loop, or is malformed: a thread finds out
    return await directory.in_thread(
        partial(_recompressed, records, headers, config, INFLATED_BYTES_MAX), computing_threads()
    )


def _is_quick(headers: list[BatchHeader], config: LogConfig) -> bool:
    codec = _CODECS[config.compression_type]
    size = sum(each.size * (_USUAL_RATIO if each.codec else 1) for each in headers)
    return size < OFF_LOOP_BYTES and _level(config) == DEFAULT_LEVELS.get(codec)


def _recompressed(
    records: Buffer, headers: list[BatchHeader], config: LogConfig, limit: int
) -> bytes:
    codec, level = _CODECS[config.compression_type], _level(config)
    view = memoryview(records)
    parts: list[Buffer] = []
    start = 0
    for header in headers:
        end = start + header.size
        if header.codec == codec:
            parts.append(view[start:end])
        else:
            body = _decompressed(header.codec, view[start + HEADER_SIZE : end], limit)
            limit -= len(body)
            parts += _batch(header, codec, compress(codec, body, level))
        start = end
    return b"".join(parts)


def _level(config: LogConfig) -> int | None:
    codec = _CODECS[config.compression_type]
    if codec == GZIP:
        return config.compression_gzip_level
    if codec == LZ4:
        return config.compression_lz4_level
    return config.compression_zstd_level if codec == ZSTD else None


def _decompressed(codec: int, body: memoryview, limit: int) -> Buffer:
    try:
        return body if codec == NONE else decompress(codec, body, max(0, limit))
    except WireFormatError as error:
        raise ApiError(INVALID_RECORD, str(error)) from error


def _batch(header: BatchHeader, codec: int, body: bytes) -> tuple[bytes, bytes]:
    header = header._replace(
        length=HEADER_SIZE - PREFIX_SIZE + len(body),
        attributes=header.attributes & ~_CODEC_MASK | codec,
    )
    crc = crc32c(body, crc32c(header.pack()[CRC_START:]))
    return header._replace(crc=crc).pack(), body
