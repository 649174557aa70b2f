"""Reads the offset range of one task: fetches in the trio loop, decodes in the task's thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import trio
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from ..offsets._ranges import OffsetRange
from ..options._options import SourceOptions
from ..runtime._loop_host import host
from ..runtime._source_client import drop_client, leased_client
from ._arrow_decoder import ColumnDecoder
from ._fetched_records import FetchedRecords
from ._range_fetcher import RangeFetcher

#: The maximum number of responses that wait to be decoded while the next response is fetched.
PREFETCHED_MAX: Final = 1


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[Any]:
    """Return an iterator over the records of a range, as Arrow batches.

    Args:
        options: the options of the source.
        partition: the partition, whose value is the range; None for a plan without ranges.
    """
    if partition.value is None:
        return iter(())
    task = TaskContext.get()
    is_retry = task is not None and task.attemptNumber() > 0
    return read_range(options, partition.value, is_retry=is_retry)


def read_range(
    options: SourceOptions, offset_range: OffsetRange, *, is_retry: bool = False
) -> Iterator[Any]:
    """Yield the records of a range as Arrow batches with the columns of the connector.

    Closing the generator stops the fetch.

    Args:
        options: the options of the source.
        offset_range: the range to read; -2 and -1 are resolved when the fetch starts.
        is_retry: whether the task has failed before; it then gets a new client, as in the
            connector.

    Yields:
        ``pyarrow.RecordBatch``, never empty.

    Raises:
        DataLossError: records have been deleted, and ``failOnDataLoss`` is true.
        PollTimeoutError: no records arrived within ``kafkaConsumer.pollTimeoutMs``.
        CorruptRecordError: records are malformed.
        ConfigError: the client's settings conflict with each other.
        TrionetError: a broker rejected a request, or none could be reached.
    """
    loop = host()
    reading = _Reading(options, offset_range, is_retry=is_retry)
    loop.call(reading.begin)
    try:
        decoder = None
        while (fetched := loop.call(reading.next)) is not None:
            if decoder is None:
                decoder = reading.decoder()
            yield from decoder.decode(fetched)
    finally:
        loop.call(reading.end)


class _Reading:
    """The trio task that fetches a range, and the channel for its responses."""

    def __init__(
        self, options: SourceOptions, offset_range: OffsetRange, *, is_retry: bool
    ) -> None:
        self._options = options
        self._range = offset_range
        self._is_retry = is_retry
        self._send, self._receive = trio.open_memory_channel[FetchedRecords](PREFETCHED_MAX)
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._is_complete = False
        self._error: Exception | None = None
        self._is_read_committed = self._checks_crcs = True

    async def begin(self) -> None:
        """Start fetching."""
        await trio.lowlevel.checkpoint()
        if self._is_retry:
            drop_client(self._options)
        host().start_soon(self._run)

    async def _run(self) -> None:  # noqa: ASYNC910 -- a task; next() raises its error
        try:
            with self._scope, self._send:
                async with leased_client(self._options) as client:
                    settings = client.settings.fetch
                    self._is_read_committed = settings.is_read_committed
                    self._checks_crcs = settings.checks_crcs
                    await RangeFetcher(client, self._options, self._range).run(self._send)
                self._is_complete = True
        except Exception as error:  # boundary: fails one Spark task, not the loop
            self._error = error
        finally:
            self._ended.set()

    async def next(self) -> FetchedRecords | None:
        """Return the next fetched records, or None at the end of the range.

        Raises:
            Exception: the error that ended the fetch.
        """
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            await self._ended.wait()
        if self._error is not None:
            raise self._error
        if not self._is_complete:
            raise trio.RunFinishedError("the trio loop was closed while records were being read")
        return None

    def decoder(self) -> ColumnDecoder:
        """Create a decoder with the settings of the client."""
        return ColumnDecoder(
            self._range.topic_partition,
            include_headers=self._options.include_headers,
            is_read_committed=self._is_read_committed,
            checks_crcs=self._checks_crcs,
        )

    async def end(self) -> None:
        """Stop fetching."""
        self._scope.cancel()
        await self._ended.wait()
