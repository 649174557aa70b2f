"""Converts between record batches and the message sets of old clients, with Kafka's error codes.

The log stores only batches. Message sets from Produce versions 0 to 2 are converted to batches
before an append (Kafka: LogValidator). Batches for Fetch versions 0 to 3 are converted to message
sets after a read (Kafka: LazyDownConversionRecords). The conversion is pure Python, so a thread
would block the loop through the GIL. Therefore it runs in the loop, in steps.
"""

from __future__ import annotations

from typing import Final, TypeVar

import trio

from ..._util._off_loop import OFF_LOOP_BYTES, limiter_of_run, off_loop
from ..._util.files._log_file import Buffer
from ...errors import ApiError, UnsupportedVersionError, WireFormatError
from ...net.wire._transmission import FileRange
from ...protocol import error_codes
from ...protocol.records._batch import read_header
from ...protocol.records.message_sets._conversion import (
    DownConverted,
    Steps,
    Work,
    down_steps,
    up_steps,
)
from ...protocol.records.message_sets._message_set import MAGIC_AT, MAGICS, read_message_header
from ..log.segments._log_config import LogConfig
from ._storage_errors import storage_errors

#: The maximum number of concurrent computations; any more are queued. Each computation adds a step
#: of less than a millisecond to every pass of the loop, and uses memory.
AT_A_TIME: Final = 3

_conversions: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar(
    "record_conversions"
)

T = TypeVar("T")


def is_message_set(records: Buffer | None) -> bool:
    """Return whether a produce request's records are a message set, or too short to be batches."""
    return records is not None and (len(records) <= MAGIC_AT or records[MAGIC_AT] in MAGICS)


async def to_batches(records: Buffer, config: LogConfig) -> tuple[Buffer, int]:
    """Convert the records of a produce request to batches.

    Batches are returned unchanged, since Kafka accepts them in every version of Produce.

    Args:
        records: the records of one partition in the request.
        config: the settings of the topic.

    Returns:
        The batches, and the number of converted records.

    Raises:
        ApiError: INVALID_TIMESTAMP; CORRUPT_MESSAGE; MESSAGE_TOO_LARGE.

    Cancellation: see :func:`in_steps`. A checkpoint only if records are converted.
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
                "messages from producers must not have the timestamp type LogAppendTime",
            )
        batches = await in_steps(up_steps(records, config.max_message_bytes))
    except WireFormatError as error:
        raise ApiError(error_codes.CORRUPT_MESSAGE, str(error)) from error
    return b"".join(batches), sum(read_header(batch).count for batch in batches)


async def to_message_set(
    records: FileRange | Buffer,
    magic: int,
    first_offset: int,
    bytes_max: int,
    *,
    min_one_message: bool,
) -> DownConverted:
    """Convert records read from a log to the message set of an old consumer.

    Raises:
        ApiError: UNSUPPORTED_COMPRESSION_TYPE for zstd; CORRUPT_MESSAGE; KAFKA_STORAGE_ERROR.

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


async def in_steps(steps: Steps[T]) -> T:
    """Run a computation in steps, with a checkpoint after every step, and return its result.

    Large calls that release the GIL run in a thread.

    Raises:
        BaseException: any exception that the computation raises.

    Cancellation: abandons the computation between two steps or after a call in a thread.
    """
    async with limiter_of_run(_conversions, AT_A_TIME):
        try:
            work = next(steps)
            while True:
                await trio.lowlevel.checkpoint()
                try:
                    made = await _make(work) if work is not None else None
                except Exception as error:  # boundary: passed on into the computation
                    work = steps.throw(error)
                else:
                    work = steps.send(made)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            steps.close()


async def _make(work: Work) -> object:
    return work.call() if work.size < OFF_LOOP_BYTES else await off_loop(*work)
