"""What one task of a sink writes: batches of Arrow to a producer that tasks share.

One producer for each configuration and process is kept in the loop's thread from one task to the
next (the connector: InternalKafkaProducerPool). Batches are taken one after the other, so that rows
keep their order, and nobody waits for the brokers before the last of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs
import trio

from ...client._topic_partition import TopicPartition
from ...client.producer._open_producer import open_producer
from ...client.producer._producer import Producer
from ...client.producer.delivery._deliveries import Deliveries
from ...client.producer.delivery._delivery import Delivery
from ...client.producer.delivery._produce_request_result import BatchOutcome
from ...errors import SendBatchError
from ..options._client_options import BOOTSTRAP_SERVERS
from ..options._options import SinkOptions
from ..runtime._loop_host import host
from ._columns import Batch, Rows, rows_of

#: Where a sink differs from a producer: its rows come by thousands, so that larger batches fill.
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({"batch.size": str(128 * 1024)})


@attrs.frozen
class Span:
    """What was written to one partition; others may have written in between.

    Attributes:
        first: the lowest offset; -1 where nobody was asked to tell (``acks=0``).
        last: the highest one.
        count: how many records.
    """

    first: int
    last: int
    count: int

    def __str__(self) -> str:
        where = "" if self.first < 0 else f" between the offsets {self.first} and {self.last}"
        return f"{self.count}{where}"

    def together(self, other: Span) -> Span:
        """What either of them has."""
        firsts = [each.first for each in (self, other) if each.first >= 0]
        return Span(min(firsts, default=-1), max(self.last, other.last), self.count + other.count)


Written = dict[TopicPartition, Span]


@attrs.frozen
class SharedProducer:
    """A producer that tasks share, and how it is ended without a wait."""

    producer: Producer
    scope: trio.CancelScope


class SinkTask:
    """See the module; for one thread, which is not the loop's.

    Args:
        options: of the sink.

    Attributes:
        shared: the producer that took rows last; None before.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._topic = options.topic
        self._settings = {**DEFAULTS, **options.client}
        self._pending: deque[Deliveries] = deque()
        self._written: Written = {}
        self.shared: SharedProducer | None = None

    def put(self, batch: Batch) -> None:
        """Take the rows of a batch to be written, as soon as there is room for them.

        Raises:
            NullTopicError, SinkColumnsError: a row cannot be written; says why. Those of other
                topics and partitions in this batch may have been taken.
            SendBatchError: of the batches before, some rows were not written.
            TrionetError: as :meth:`.Producer.enqueue_batch`.
        """
        self._settle()
        host().call(self._enqueue, [*rows_of(batch, self._topic, self._key_partitions)])

    def end(self) -> Written:
        """Wait until all is written.

        Raises:
            SendBatchError: some rows were not written, or nobody knows.
            TrionetError: the producer has failed.
        """
        if self._pending:
            host().call(self._flush)
            self._settle()
        assert not self._pending  # a flush waits for everything
        return self._written

    def abort(self) -> None:
        """Give up: what was not sent is not, and the next task has another producer."""
        if self.shared is not None:
            host().call(self._drop, self.shared)

    def _key_partitions(self, topic: str) -> int:
        return host().call(self._count_partitions, topic)

    def _settle(self) -> None:
        """Account for those of which it is known what became of them."""
        while self._pending and all(map(_is_decided, self._pending[0].outcomes)):
            deliveries = self._pending.popleft()
            if failures := deliveries.failures():
                raise SendBatchError(deliveries, failures)
            _account(deliveries, self._written)

    # In the loop.

    def _lease(self) -> AbstractAsyncContextManager[SharedProducer]:
        return host().lease(self._key, partial(open_shared_producer, self._settings))

    @property
    def _key(self) -> Hashable:
        return "sink", frozenset(self._settings.items())

    async def _enqueue(self, parts: list[Rows]) -> None:
        async with self._lease() as shared:
            self.shared = shared
            for rows in parts:
                deliveries = await shared.producer.enqueue_batch(
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
            return await shared.producer.key_partitions(topic)

    async def _flush(self) -> None:
        async with self._lease() as shared:
            await shared.producer.flush()

    async def _drop(self, shared: SharedProducer) -> None:
        host().drop(self._key)
        shared.scope.cancel(reason="a task of Spark has failed")
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def open_shared_producer(settings: Mapping[str, str]) -> AsyncIterator[SharedProducer]:
    """A producer for the length of a block, which its scope ends as well.

    Args:
        settings: keys of a producer, ``bootstrap.servers`` among them.

    Raises:
        ConfigError: they do not fit each other.

    Cancellation: as of :func:`.open_producer`: what was not sent is not.
    """
    config = {key: text for key, text in settings.items() if key != BOOTSTRAP_SERVERS}
    with trio.CancelScope() as scope:
        async with open_producer(settings[BOOTSTRAP_SERVERS], config) as producer:
            yield SharedProducer(producer, scope)


def _is_decided(outcome: BatchOutcome) -> bool:
    if outcome.parts is None:
        return outcome.is_done
    return all(_is_decided(part) for _, part in outcome.parts)


def _account(deliveries: Deliveries, written: Written) -> None:
    # Keys may have sent each record to another batch than the one before: so first by batch.
    found: dict[BatchOutcome, tuple[int, int, int]] = {}
    for outcome, index, count in deliveries.spans():
        if outcome.is_plain:
            first, _, total = found.get(outcome, (index, 0, 0))
            found[outcome] = first, index + count - 1, total + count
        else:  # it was split
            for number in range(index, index + count):
                offset = Delivery(outcome, number, 0).result().offset
                _add(written, outcome.topic_partition, Span(offset, offset, 1))
    for outcome, (first, last, total) in found.items():
        base = outcome.base_offset
        span = Span(-1, -1, total) if base < 0 else Span(base + first, base + last, total)
        _add(written, outcome.topic_partition, span)


def _add(written: Written, partition: TopicPartition, span: Span) -> None:
    before = written.get(partition)
    written[partition] = span if before is None else before.together(span)
