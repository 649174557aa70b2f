"""Rejects single records: without a key, or with an invalid timestamp (Kafka: LogValidator).

The problem: validation looks only at the headers of batches, but whether a record has a key, and
how old it is, is only known once its batch is decompressed and each record is looked at. That can
take seconds.

The choice: only topics pay that are compacted or limit how old timestamps may be
(``LogConfig.checks_records``). A small uncompressed batch is checked when it is appended. Others
are checked before, in steps between which other tasks run, and are decompressed in a thread if they
turn out to be large. So is any batch whose timestamps its header shows to be invalid, to list the
records. Headers of records are skipped, not decoded.

In compacted topics, what compaction has to read of a record is checked, too: one that it cannot
read would keep the log from being compacted for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import trio

from ...._util._off_loop import OFF_LOOP_BYTES, computing_threads, limiter_of_run
from ...._util.files._log_file import Buffer
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import INVALID_RECORD, INVALID_TIMESTAMP
from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import PREFIX_SIZE, BatchHeader, iter_batches
from ....protocol.records._records import INFLATED_BYTES_MAX, open_batch
from ....protocol.records._typed_compaction import read_null_keys
from ..files._directory import Directory
from ..segments._log_config import LogConfig
from ._validation import LOG_APPEND_TIME, NO_TIMESTAMP, check_batches

#: How many records are checked before other tasks run: a millisecond in pure Python.
RECORDS_AT_ONCE: Final = 1000

#: The maximum number of record errors in a response, which a small compressed batch could otherwise
#: make very large. Kafka has no limit.
RECORD_ERRORS_MAX: Final = 1000

#: The maximum number of concurrent checks in steps, since each holds the records decompressed.
AT_A_TIME: Final = 3

_checks: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("record_checks")


class RecordsRejectedError(ApiError):
    """A batch was rejected because of some of its records (Kafka: RecordValidationException).

    Args:
        error_code: INVALID_RECORD or, if any of the records has an invalid timestamp,
            INVALID_TIMESTAMP.
        message: what was wrong with the batch.
        records: the indexes of rejected records in the batch, with what was wrong with each; not
            all if there are very many.
        without_key: the number of rejected records that have no key.
    """

    def __init__(
        self, error_code: int, message: str, records: dict[int, str], without_key: int
    ) -> None:
        super().__init__(error_code, message)
        self.records = records
        self.without_key = without_key


def must_check_before(records: Buffer) -> bool:
    """Return whether a records field is to be checked by :func:`check_records_in_steps`.

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


def has_invalid_timestamp(records: Buffer, config: LogConfig, now_ms: int) -> bool:
    """Return whether the header of a batch shows that some of its records will be rejected.

    Ignores anything but batches, as :func:`must_check_before` does.
    """
    try:
        headers = [header for _, header in iter_batches(records)]
    except WireFormatError:
        return False
    return any(_checks_timestamps(header, config, now_ms) for header in headers)


def _checks_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    if header.attributes & LOG_APPEND_TIME or config.limits_old_timestamps:
        return True
    is_in_the_future = header.max_timestamp > now_ms + config.message_timestamp_after_max_ms
    return is_in_the_future and not config.stamps_append_time


def check_records(
    records: Buffer, headers: list[BatchHeader], config: LogConfig, name: str, now_ms: int
) -> None:
    """Check the keys and timestamps of all records, as far as the topic requires it.

    Args:
        records: batches that :func:`.check_batches` has accepted.
        headers: their headers.
        config: the settings of the topic.
        name: the topic and the partition, joined by ``-``.
        now_ms: the current time, with which timestamps are compared.

    Raises:
        RecordsRejectedError: records have no key, or invalid timestamps.
        ApiError: INVALID_RECORD: the records of a batch are malformed, or too large when
            decompressed.
    """
    position = 0
    for header in headers:
        check = _Check(header, config, name, now_ms)
        for _ in check.steps(_opened(records, position, INFLATED_BYTES_MAX)):
            pass
        position += header.length + PREFIX_SIZE


async def check_records_in_steps(
    records: Buffer,
    config: LogConfig,
    directory: Directory,
    name: str,
    now_ms: int,
    transaction_version: int = -1,
) -> None:
    """Check the records of a large or compressed records field, or one with invalid timestamps.

    Args:
        records: one or more batches, as received.
        config: the settings of the topic.
        directory: the partition's directory, whose ``in_thread`` method decompresses large batches.
        name: see :func:`check_records`.
        now_ms: the current time.
        transaction_version: see :meth:`.Log.append`.

    Raises:
        ApiError: the same errors as for an append of these batches, and those of
            :func:`check_records`.

    Cancellation: abandons the check between two steps, or after decompression in a thread. Always a
    checkpoint.
    """
    headers = check_batches(records, config, now_ms, transaction_version, checks_timestamps=False)
    position = 0
    async with limiter_of_run(_checks, AT_A_TIME):
        for header in headers:
            check = _Check(header, config, name, now_ms)
            if check.is_needed:
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

    def __init__(self, header: BatchHeader, config: LogConfig, name: str, now_ms: int) -> None:
        self._header = header
        self._name = name
        self._earliest = now_ms - config.message_timestamp_before_max_ms
        self._latest = now_ms + config.message_timestamp_after_max_ms
        self._checks_keys = config.is_compacted
        self._is_stamped = bool(header.attributes & LOG_APPEND_TIME)
        self._checks_timestamps = _checks_timestamps(header, config, now_ms)
        self._rejected: dict[int, str] = {}
        self._without_key = 0
        self._count = 0

    @property
    def is_needed(self) -> bool:
        """Whether the records have to be read at all."""
        return self._checks_keys or self._checks_timestamps

    def steps(self, batch: _Body) -> Iterator[None]:
        """Check the records of the batch in steps.

        Raises:
            ApiError: see :func:`check_records`.
        """
        body, position, end = batch
        total = self._header.count
        for first in range(0, total, RECORDS_AT_ONCE):
            count = min(RECORDS_AT_ONCE, total - first)
            try:
                position = self._check_some(body, position, end, first, count)
            except IndexError as error:
                raise _malformed("truncated record") from error
            except WireFormatError as error:
                raise _malformed(error) from error
            yield
        if position != end:
            raise _malformed("the records of a batch do not end where the batch ends")
        if self._count:
            raise self._rejection()

    def _check_some(self, body: bytes, position: int, limit: int, first: int, count: int) -> int:
        """Check ``count`` records, and return their end."""
        base, end = self._header.base_timestamp, position
        found: dict[int, str] = {}
        if self._checks_timestamps:
            read_timestamps = implementation.reader.read_timestamps
            timestamps, end = read_timestamps(body, position, count, base)
            found = self._invalid_timestamps(timestamps, first)
        if self._checks_keys:
            without_key, end = read_null_keys(body, position, limit, count, base)
            self._without_key += len(without_key)
            text = f"the record has no key, but {self._name} is compacted; send it with a key"
            found.update(dict.fromkeys(without_key, text))
        self._count += len(found)
        for index in sorted(found)[: RECORD_ERRORS_MAX - len(self._rejected)]:
            self._rejected[first + index] = found[index]
        return end

    def _invalid_timestamps(self, timestamps: list[int], first: int) -> dict[int, str]:
        if self._is_stamped:
            return dict.fromkeys(range(len(timestamps)), "only the broker sets LogAppendTime")
        earliest, latest = self._earliest, self._latest
        return {
            index: f"Timestamp {each} of message with offset {first + index} is out of range. The"
            f" timestamp should be within [{earliest}, {latest}]"  # the wording of Kafka
            for index, each in enumerate(timestamps)
            if each != NO_TIMESTAMP and not earliest <= each <= latest
        }

    def _rejection(self) -> RecordsRejectedError:
        if self._count > self._without_key:
            text = "One or more records have been rejected due to invalid timestamp"  # as Kafka's
            return RecordsRejectedError(INVALID_TIMESTAMP, text, self._rejected, self._without_key)
        indexes = list(self._rejected)
        shown = ", ".join(map(str, indexes[:3])) + (", ..." if self._count > 3 else "")
        return RecordsRejectedError(
            INVALID_RECORD,
            f"{self._count} of the batch's {self._header.count} records have no key (by index:"
            f" {shown}), but {self._name} is compacted (cleanup.policy); send every record with a"
            " key",
            self._rejected,
            self._without_key,
        )


def _malformed(reason: object) -> ApiError:
    return ApiError(INVALID_RECORD, f"the records of a batch are malformed: {reason}")
