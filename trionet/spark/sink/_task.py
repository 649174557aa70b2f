"""The task of a sink: writes its rows at least once.

When Spark reruns a failed task or micro-batch, the records already written remain in the topic.

A task passes its Arrow batches to a producer that tasks share: one per configuration and process is
kept open in the loop's thread from one task to the next (the connector: InternalKafkaProducerPool).
Batches are enqueued in order, so rows keep their order; the task waits for acknowledgements only
after the last batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar, TypeVarTuple

import attrs
import trio

from ...client.config._client_config import read_config
from ...client.config._keys import PRODUCER_KEYS
from ...client.producer._deliveries import Deliveries
from ...client.producer._delivery import ProduceRequestResult, new_delivery
from ...client.producer._open_producer import open_producer
from ...client.producer._producer import Producer
from ...errors import SendBatchError
from .._client_options import BOOTSTRAP_SERVERS, config_of
from .._first_response import with_first_response
from .._loop_host import host
from .._options import SinkOptions
from ._columns import Batch, EncodedRows, Rows, rows_of
from ._messages import Span, TaskWritten, Written, add_span, is_after_first_micro_batch

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MAX_BLOCK: Final = "max.block.ms"

#: Defaults that differ from a producer's: rows arrive by the thousand, so larger batches fill up.
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({"batch.size": str(128 * 1024)})


@attrs.frozen
class SharedProducer:
    """A producer shared by tasks, and the cancel scope that closes it without waiting."""

    producer: Producer
    scope: trio.CancelScope


class SinkTask:
    """Writes the rows of one task; used by a single thread, which is not the loop's.

    Args:
        options: the options of the sink.

    Attributes:
        shared: the most recently used producer; None before the first row.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._topic = options.topic
        self._settings = {**DEFAULTS, **options.client}
        self._pending: deque[Deliveries] = deque()
        self._written: Written = {}
        self._batch_bytes = _batch_bytes(self._settings)
        self.shared: SharedProducer | None = None

    def put(self, batch: Batch) -> None:
        """Enqueue the rows of a batch, waiting while the producer's buffer is full.

        Raises:
            NullTopicError, SinkColumnsError: a row is invalid; no row of this batch is enqueued.
            SendBatchError: rows of earlier batches were not written.
            TrionetError: see :meth:`.Producer.enqueue_batch`.
        """
        self._settle()
        rows = rows_of(batch, self._topic, self._key_partitions, self._batch_bytes)
        host().call(self._enqueue, [*rows])

    def end(self) -> Written:
        """Wait until all rows are acknowledged, and return the records written to each partition.

        Raises:
            SendBatchError: rows were not written, or it is not known whether they were.
            TrionetError: the producer has failed.
        """
        if self._pending:
            host().call(self._flush)
            self._settle()
        assert not self._pending  # a flush waits for everything
        return self._written

    def abort(self) -> None:
        """Discard the rows that have not been sent; the next task opens a new producer."""
        if self.shared is not None:
            host().call(self._drop, self.shared)

    def _key_partitions(self, topic: str) -> int:
        return host().call(self._count_partitions, topic)

    def _settle(self) -> None:
        """Account for the oldest batches whose results are known."""
        while self._pending and self._pending[0].is_done:
            deliveries = self._pending.popleft()
            if failures := deliveries.failures():
                raise SendBatchError(deliveries, failures)
            _account(deliveries, self._written)

    # In the loop's thread.

    def _lease(self) -> AbstractAsyncContextManager[SharedProducer]:
        return host().lease(self._key, partial(open_shared_producer, self._settings))

    @property
    def _key(self) -> Hashable:
        return "sink", frozenset(self._settings.items())

    async def _enqueue(self, parts: list[Rows | EncodedRows]) -> None:
        async with self._lease() as shared:
            self.shared = shared
            producer = shared.producer
            await self._reaching(producer, self._enqueue_each, producer, parts, is_proof=False)

    async def _enqueue_each(self, producer: Producer, parts: list[Rows | EncodedRows]) -> None:
        await trio.lowlevel.checkpoint()
        for rows in parts:
            if isinstance(rows, EncodedRows):
                enqueue = producer._enqueue_encoded  # noqa: SLF001 -- not for users
                deliveries = await enqueue(rows.topic, rows.batches)
            else:
                deliveries = await producer.enqueue_batch(
                    rows.topic,
                    rows.values,
                    keys=rows.keys,
                    headers=rows.headers,
                    partition=rows.partition,
                )
            self._pending.append(deliveries)

    async def _count_partitions(self, topic: str) -> int:
        async with self._lease() as shared:
            self.shared = shared
            producer = shared.producer
            return await self._reaching(producer, producer.key_partitions, topic, is_proof=False)

    async def _reaching(
        self,
        producer: Producer,
        afn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
        is_proof: bool = True,
    ) -> T:
        """Run an async function that waits for brokers; see :mod:`.._first_response`."""
        if is_after_first_micro_batch() or _MAX_BLOCK in self._settings:
            return await afn(*args)
        return await with_first_response(
            producer.until_connected,
            producer.connection_problem,
            frozenset(self._settings.items()),
            f"kafka.{_MAX_BLOCK}",
            afn,
            *args,
            is_proof=is_proof,
        )

    async def _flush(self) -> None:
        async with self._lease() as shared:
            await self._reaching(shared.producer, shared.producer.flush)

    async def _drop(self, shared: SharedProducer) -> None:
        host().drop(self._key)
        shared.scope.cancel(reason="a Spark task failed")
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def open_shared_producer(settings: Mapping[str, str]) -> AsyncIterator[SharedProducer]:
    """Open a producer for the duration of a block, or until its scope is cancelled.

    Args:
        settings: producer settings, including ``bootstrap.servers``.

    Raises:
        ConfigError: the settings conflict with each other.

    Cancellation: records that have not been sent are discarded; see :func:`.open_producer`.
    """
    with trio.CancelScope() as scope:
        async with open_producer(settings[BOOTSTRAP_SERVERS], config_of(settings)) as producer:
            yield SharedProducer(producer, scope)


def _batch_bytes(settings: Mapping[str, str]) -> int:
    """Return the maximum size of a batch, which a producer with these settings can send."""
    config = read_config(PRODUCER_KEYS, config_of(settings), {})
    limits = ("batch.size", "max.request.size", "buffer.memory")
    return min(config.integer(key) for key in limits)


def _account(deliveries: Deliveries, written: Written) -> None:
    # With keys, adjacent records may be in different batches: collect the spans by batch first.
    found: dict[ProduceRequestResult, tuple[int, int, int]] = {}
    for outcome, index, count in deliveries.spans():
        if outcome.is_plain:
            first, _, total = found.get(outcome, (index, 0, 0))
            found[outcome] = first, index + count - 1, total + count
        else:  # the batch was split (KIP-126)
            for number in range(index, index + count):
                offset = new_delivery(outcome, number, 0).result().offset
                add_span(written, outcome.topic_partition, Span(offset, offset, 1))
    for outcome, (first, last, total) in found.items():
        base = outcome.base_offset
        span = Span(-1, -1, total) if base < 0 else Span(base + first, base + last, total)
        add_span(written, outcome.topic_partition, span)


def write_task(options: SinkOptions, batches: Iterator[Batch]) -> TaskWritten:
    """Write the rows of one task and wait until all are acknowledged.

    Args:
        options: the options of the sink.
        batches: the rows; if there are none, no connection is opened.

    Raises:
        TrionetError: a row is invalid, or its write failed or was not acknowledged. Other rows may
            have been written.
    """
    task = SinkTask(options)
    try:
        for batch in batches:
            if batch.num_rows:
                task.put(batch)
        return TaskWritten(task.end())
    except BaseException:
        task.abort()
        raise
