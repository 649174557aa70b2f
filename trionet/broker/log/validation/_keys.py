"""Rejects records without a key in compacted topics (Kafka: LogValidator.validateKey).

The problem: validation looks only at the headers of batches, but whether a record has a key is only
known once its batch is decompressed and each record is looked at. That can take seconds.

The choice: only compacted topics pay. A small uncompressed batch is checked when it is appended.
Others are checked before, in steps between which other tasks run, and are decompressed in a thread
if they turn out to be large. Headers are skipped, not decoded.

Keys and values are checked to lie within their records, too, since compaction has to read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import trio

from ...._util._log_file import Buffer
from ...._util._off_loop import OFF_LOOP_BYTES, computing_threads, limiter_of_run
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import INVALID_RECORD
from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import PREFIX_SIZE, BatchHeader, iter_batches
from ....protocol.records._records import INFLATED_BYTES_MAX, open_batch
from ..files._directory import Directory
from ..segments._log_config import LogConfig
from ._validation import check_batches

#: How many records are checked before other tasks run: a millisecond in pure Python.
RECORDS_AT_ONCE: Final = 1000

#: The maximum number of record errors in a response, which a small compressed batch could otherwise
#: make very large. Kafka has no limit.
RECORD_ERRORS_MAX: Final = 1000

#: The maximum number of concurrent checks in steps, since each holds the records decompressed.
AT_A_TIME: Final = 3

_checks: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("key_checks")


class RecordsRejectedError(ApiError):
    """A batch was rejected because of some of its records (Kafka: RecordValidationException).

    Args:
        message: what was wrong with the batch.
        indexes: the indexes of rejected records in the batch; not all if there are very many.
        record_message: what was wrong with each of these records.
        count: the number of rejected records.
    """

    def __init__(self, message: str, indexes: list[int], record_message: str, count: int) -> None:
        super().__init__(INVALID_RECORD, message)
        self.indexes = indexes
        self.record_message = record_message
        self.count = count


def must_check_before(records: Buffer) -> bool:
    """Return whether the keys of a records field are to be checked by :func:`check_keys_in_steps`.

    Ignores anything but batches; the log rejects the rest.
    """
    count = 0
    try:
        for _, header in iter_batches(records):
            if header.codec:
                return True
            count += header.count
    except WireFormatError:
        return False
    return count > RECORDS_AT_ONCE or len(records) > OFF_LOOP_BYTES


def check_keys(records: Buffer, headers: list[BatchHeader], name: str) -> None:
    """Check that all records have a key.

    Args:
        records: batches that :func:`.check_batches` has accepted.
        headers: their headers.
        name: the topic and the partition, joined by ``-``.

    Raises:
        RecordsRejectedError: records have no key.
        ApiError: INVALID_RECORD: the records of a batch are malformed, or too large when
            decompressed.
    """
    position = 0
    for header in headers:
        check = _Check(header, name)
        for _ in check.steps(_opened(records, position, INFLATED_BYTES_MAX)):
            pass
        position += header.length + PREFIX_SIZE


async def check_keys_in_steps(
    records: Buffer,
    config: LogConfig,
    directory: Directory,
    name: str,
    now_ms: int,
    transaction_version: int = -1,
) -> None:
    """Check that all records of a large or compressed records field have a key.

    Args:
        records: one or more batches, as received.
        config: the settings of the topic.
        directory: the partition's directory, whose ``in_thread`` method decompresses large batches.
        name: see :func:`check_keys`.
        now_ms: the current time.
        transaction_version: see :meth:`.Log.append`.

    Raises:
        ApiError: the same errors as for an append of these batches, and those of
            :func:`check_keys`.

    Cancellation: abandons the check between two steps, or after decompression in a thread. Always a
    checkpoint.
    """
    headers = check_batches(records, config, now_ms, transaction_version)
    position = 0
    async with limiter_of_run(_checks, AT_A_TIME):
        for header in headers:
            check = _Check(header, name)
            for _ in check.steps(await _opened_in_time(records, position, directory)):
                await trio.lowlevel.checkpoint()
            position += header.length + PREFIX_SIZE


_Body = tuple[bytes, int, int]
"""A buffer that contains the records of a batch, and the positions of their start and end."""


def _opened(records: Buffer, position: int, inflated_bytes_max: int) -> _Body:
    try:
        _, body, start, end = open_batch(records, position, inflated_bytes_max)
    except WireFormatError as error:
        raise _malformed(error) from error
    return body, start, end


async def _opened_in_time(records: Buffer, position: int, directory: Directory) -> _Body:
    """Decompress the records of a batch, in a thread if they are large. Always a checkpoint."""
    await trio.lowlevel.checkpoint()
    if len(records) < OFF_LOOP_BYTES:
        try:
            return _opened(records, position, OFF_LOOP_BYTES)
        except ApiError:
            pass  # it expands too much for the loop, or is malformed: a thread finds out
    return await directory.in_thread(
        lambda: _opened(records, position, INFLATED_BYTES_MAX), computing_threads()
    )


class _Check:
    """The check of one batch."""

    def __init__(self, header: BatchHeader, name: str) -> None:
        self._total = header.count
        self._name = name
        self._indexes: list[int] = []
        self._count = 0

    def steps(self, batch: _Body) -> Iterator[None]:
        """Check the records of the batch in steps.

        Raises:
            ApiError: see :func:`check_keys`.
        """
        body, position, end = batch
        for first in range(0, self._total, RECORDS_AT_ONCE):
            count = min(RECORDS_AT_ONCE, self._total - first)
            try:
                found, position = implementation.reader.read_null_keys(body, position, count)
            except IndexError as error:
                raise _malformed("truncated record") from error
            except WireFormatError as error:
                raise _malformed(error) from error
            if found:
                self._count += len(found)
                room = RECORD_ERRORS_MAX - len(self._indexes)
                self._indexes += [first + index for index in found[:room]]
            yield
        if position != end:
            raise _malformed("the records of a batch do not end where the batch ends")
        if self._count:
            raise self._rejection()

    def _rejection(self) -> RecordsRejectedError:
        shown = ", ".join(map(str, self._indexes[:3])) + (", ..." if self._count > 3 else "")
        return RecordsRejectedError(
            f"{self._count} of the batch's {self._total} records have no key (by index: {shown}),"
            f" but {self._name} is compacted (cleanup.policy); send every record with a key",
            self._indexes,
            f"the record has no key, but {self._name} is compacted; send it with a key",
            self._count,
        )


def _malformed(reason: object) -> ApiError:
    return ApiError(INVALID_RECORD, f"the records of a batch are malformed: {reason}")
