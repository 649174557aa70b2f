"""``compression.type`` other than ``producer``: batches are stored in the topic's codec.

What arrives in that codec is passed on as it is, at whatever level. Of other batches the records
are compressed anew and nothing else changes: counts, timestamps, producer, sequence and flags
(Kafka: LogValidator, which builds such batches anew from their records).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ..._util._off_loop import OFF_LOOP_BYTES, computing_threads
from ...errors import ApiError, WireFormatError
from ...protocol.error_codes import INVALID_RECORD
from ...protocol.records._batch import (
    CRC_START,
    HEADER_SIZE,
    PREFIX_SIZE,
    BatchHeader,
    iter_batches,
)
from ...protocol.records._crc32c import crc32c
from ...protocol.records._records import INFLATED_BYTES_MAX
from ...protocol.records.compression._codecs import (
    DEFAULT_LEVELS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)
from ._validation import check_batches
from .files._directory import Buffer
from .segments._log_config import LogConfig

if TYPE_CHECKING:
    from ._log import Log

_CODECS: Final = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
_CODEC_MASK: Final = 0x07
_MAGIC: Final = 2

#: How far compressed records usually grow, at most. Those that grow further are found out.
_USUAL_RATIO: Final = 8


def must_recompress(records: Buffer, config: LogConfig) -> bool:
    """Whether a batch has another codec than the topic's, which is not ``producer``'s choice.

    What are no batches of format 2 is left to the log, which says what is wrong with it.
    """
    codec = _CODECS[config.compression_type]
    try:
        return any(
            header.codec != codec for _, header in iter_batches(records) if header.magic == _MAGIC
        )
    except WireFormatError:
        return False


async def recompress(records: Buffer, log: Log, now_ms: int) -> bytes:
    """The batches of a produce request's field in the topic's codec. Always a checkpoint.

    Much is computed in a thread, and so is everything if the topic has a level of its own: the
    highest of zstd takes a tenth of a second for the smallest batch.

    Args:
        records: one or more batches, as they came.
        log: what they are meant for; it is not changed.
        now_ms: the broker's clock.

    Raises:
        ApiError: what the log raises for such batches, or INVALID_RECORD: the records are not what
            their codec says, or grow beyond 128 MB.

    Cancellation: what has begun ends, and is returned.
    """
    config = log.config
    headers = check_batches(records, config, now_ms)
    await trio.lowlevel.checkpoint()
    if _is_quick(headers, config):
        try:
            return _recompressed(records, headers, config, OFF_LOOP_BYTES)
        except ApiError:
            pass  # a bomb, or no records at all: the loop waits for neither
    return await log.directory.in_thread(
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
            body = _inflated(header.codec, view[start + HEADER_SIZE : end], limit)
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


def _inflated(codec: int, body: memoryview, limit: int) -> Buffer:
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
