"""The records of one task: a range of one partition, fetched in the loop, decoded beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import trio

from ...client._topic_partition import TopicPartition
from ..offsets._ranges import OffsetRange
from ..options._options import SourceOptions
from ..runtime._loop_host import host
from ..runtime._source_client import drop_client, leased_client
from ._arrow_decoder import ColumnDecoder
from ._fetched import Fetched
from ._range_fetcher import RangeFetcher

#: How many answers wait to be decoded while the next one is on its way.
AHEAD: Final = 1


def read_range(
    options: SourceOptions, wanted: OffsetRange, *, is_retry: bool = False
) -> Iterator[Any]:
    """The records of a range as batches of Arrow, with the columns of the connector.

    A generator: what was begun ends when it is closed.

    Args:
        options: of the source.
        wanted: what to read; -2 and -1 become offsets now.
        is_retry: the task has failed before: it gets a new client, as from the connector.

    Yields:
        ``pyarrow.RecordBatch``; none where there are no records.

    Raises:
        DataLossError: records are gone, and ``failOnDataLoss`` is set.
        PollTimeoutError: records did not come within ``kafkaConsumer.pollTimeoutMs``.
        CorruptRecordError: records cannot be read.
        ConfigError: the settings of the client do not fit each other.
        TrionetError: a broker refuses, or none can be asked.
    """
    loop = host()
    reading = _Reading(options, wanted, is_retry=is_retry)
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
    """The task in the loop that fetches a range, and what it has fetched."""

    def __init__(self, options: SourceOptions, wanted: OffsetRange, *, is_retry: bool) -> None:
        self._options = options
        self._wanted = wanted
        self._is_retry = is_retry
        self._send, self._receive = trio.open_memory_channel[Fetched](AHEAD)
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._is_complete = False
        self._error: Exception | None = None
        self._is_read_committed = self._checks_crcs = True

    async def begin(self) -> None:
        """Begin to fetch."""
        await trio.lowlevel.checkpoint()
        if self._is_retry:
            drop_client(self._options)
        host().start_soon(self._run)

    async def _run(self) -> None:  # noqa: ASYNC910 -- a task, whose error is told by next()
        try:
            with self._scope, self._send:
                async with leased_client(self._options) as client:
                    settings = client.settings.fetch
                    self._is_read_committed = settings.is_read_committed
                    self._checks_crcs = settings.checks_crcs
                    await RangeFetcher(client, self._options, self._wanted).run(self._send)
                self._is_complete = True
        except Exception as error:  # boundary: one task of Spark
            self._error = error
        finally:
            self._ended.set()

    async def next(self) -> Fetched | None:
        """What was fetched next; None at the end of the range.

        Raises:
            Exception: what has ended the fetching.
        """
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            await self._ended.wait()
        if self._error is not None:
            raise self._error
        if not self._is_complete:
            raise trio.RunFinishedError("the loop was closed while records were read")
        return None

    def decoder(self) -> ColumnDecoder:
        """Decodes what was fetched, as the settings of the client say."""
        return ColumnDecoder(
            TopicPartition(self._wanted.topic, self._wanted.partition),
            include_headers=self._options.include_headers,
            is_read_committed=self._is_read_committed,
            checks_crcs=self._checks_crcs,
        )

    async def end(self) -> None:
        """Fetch no more."""
        self._scope.cancel()
        await self._ended.wait()
