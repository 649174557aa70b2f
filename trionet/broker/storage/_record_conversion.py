"""Old clients' message sets into batches and back, with Kafka's error codes.

The log holds batches alone: what Produce 0 to 2 brings is converted before it is stored (Kafka:
LogValidator), what Fetch 0 to 3 takes after it was read (LazyDownConversionRecords). Python itself
does the work, so that a thread would hold back the loop; it is done in steps between its turns.
"""

from __future__ import annotations

from ..._util._off_loop import OFF_LOOP_BYTES, off_loop
from ...errors import ApiError, UnsupportedVersionError, WireFormatError
from ...net.wire._transmission import FileRange
from ...protocol import error_codes
from ...protocol.records._batch import read_header
from ...protocol.records.message_sets._conversion import DownConverted, down_steps, up_steps
from ...protocol.records.message_sets._message_set import MAGIC_AT, MAGICS, read_message_header
from ..log.files._directory import Buffer
from ..log.segments._log_config import LogConfig
from ._in_steps import in_steps
from ._storage_errors import storage_errors


def is_message_set(records: Buffer | None) -> bool:
    """Whether a field of a produce request has to be converted, or is empty or too short."""
    return records is not None and (len(records) <= MAGIC_AT or records[MAGIC_AT] in MAGICS)


async def batches_of(records: Buffer, config: LogConfig) -> tuple[Buffer, int]:
    """What a producer of any age sent, as the log takes it, and how many records were converted.

    Batches stay as they are, since Kafka takes them in every version of Produce.

    Args:
        records: the field of a produce request.
        config: the topic's limits.

    Raises:
        ApiError: INVALID_TIMESTAMP, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE.

    Cancellation: see :func:`in_steps`. A checkpoint if something is converted.
    """
    if not is_message_set(records):
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
        batches = await in_steps(up_steps(records, config.max_message_bytes))
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

    Cancellation: see :func:`in_steps`. Always a checkpoint.
    """
    try:
        if isinstance(records, FileRange):
            with storage_errors():
                records = await off_loop(
                    OFF_LOOP_BYTES, records.file.read_at, records.offset, records.count
                )
        return await in_steps(
            down_steps(records, magic, first_offset, bytes_max, min_one_message=min_one_message)
        )
    except UnsupportedVersionError as error:
        raise ApiError(error_codes.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    except WireFormatError as error:
        raise ApiError(error_codes.CORRUPT_MESSAGE, str(error)) from error
