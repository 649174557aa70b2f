"""Old clients' message sets into batches and back, off the loop, with Kafka's error codes.

The log holds batches alone: what Produce 0 to 2 brings is converted before it is stored (Kafka:
LogValidator), what Fetch 0 to 3 takes after it was read (LazyDownConversionRecords). Python itself
does the work. In a thread it holds back the loop by the interpreter's switch interval at most,
five milliseconds.
"""

from __future__ import annotations

from typing import Final

import attrs

from .._util.off_loop import OFF_LOOP_BYTES, off_loop
from ..errors import ApiError, UnsupportedVersionError, WireFormatError
from ..net.transmission import FileRange
from ..protocol import error_codes
from ..protocol.records.batch import iter_batches, read_header
from ..protocol.records.compression import NONE
from ..protocol.records.conversion import DownConverted, down_convert, up_convert
from ..protocol.records.message_set import MAGIC_AT, MAGICS, read_message_header
from .log.config import LogConfig
from .log.directory import Buffer
from .storage_errors import storage_errors

# A byte takes several times as long as in the codecs, by which a thread's worth is measured.
_COST: Final = 4


@attrs.define
class Conversions:
    """How many records a node has converted (Kafka: BrokerTopicMetrics).

    Attributes:
        produced: from message sets to batches.
        fetched: from batches to message sets.
    """

    produced: int = 0
    fetched: int = 0


async def batches_of(records: Buffer, config: LogConfig) -> tuple[Buffer, int]:
    """What a producer of any age sent, as the log takes it, and how many records were converted.

    Batches stay as they are, since Kafka takes them in every version of Produce.

    Args:
        records: the field of a produce request.
        config: the topic's limits.

    Raises:
        ApiError: INVALID_TIMESTAMP, CORRUPT_MESSAGE.

    Cancellation: see :func:`off_loop`. A checkpoint if something is converted.
    """
    if len(records) > MAGIC_AT and records[MAGIC_AT] not in MAGICS:
        return records, 0
    if not records:
        return b"", 0
    try:
        first = read_message_header(records)
        if first.timestamp_type:
            raise ApiError(
                error_codes.INVALID_TIMESTAMP,
                "only the broker may mark a message as LogAppendTime",
            )
        size = len(records) * _COST if first.codec == NONE else OFF_LOOP_BYTES
        batches = await off_loop(size, up_convert, records, config.max_message_bytes)
    except WireFormatError as error:
        raise ApiError(error_codes.CORRUPT_MESSAGE, str(error)) from error
    return b"".join(batches), sum(read_header(batch).count for batch in batches)


async def messages_of(
    records: FileRange | Buffer,
    magic: int,
    first_offset: int,
    bytes_max: int,
    *,
    min_one_message: bool,
) -> DownConverted:
    """What was read of a log, as an old consumer takes it; see :func:`down_convert`.

    Raises:
        ApiError: UNSUPPORTED_COMPRESSION_TYPE, zstd; CORRUPT_MESSAGE; KAFKA_STORAGE_ERROR.

    Cancellation: see :func:`off_loop`. Always a checkpoint.
    """
    size = OFF_LOOP_BYTES
    if not isinstance(records, FileRange) and not _has_compressed(records):
        size = len(records) * _COST

    def convert() -> DownConverted:
        batches = records
        if isinstance(batches, FileRange):
            batches = batches.file.read_at(batches.offset, batches.count)
        return down_convert(
            batches, magic, first_offset, bytes_max, min_one_message=min_one_message
        )

    try:
        with storage_errors():
            return await off_loop(size, convert)
    except UnsupportedVersionError as error:
        raise ApiError(error_codes.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    except WireFormatError as error:
        raise ApiError(error_codes.CORRUPT_MESSAGE, str(error)) from error


def _has_compressed(batches: Buffer) -> bool:
    """Whether some of them may become much more than they are now."""
    return any(header.codec != NONE for _, header in iter_batches(batches))
