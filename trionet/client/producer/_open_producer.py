"""The context manager that opens a producer, and closes it when the block exits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Unpack

import trio

from ..._util._background import open_background_nursery
from ..._util._logging import get_logger
from ...net._network import SYSTEM, Network
from ..config._keywords import ProducerKeywords
from ..network._kafka_client import KafkaClient
from ..network._open_client import open_kafka_client
from ..security._settings import TokenProvider
from ._hooks import AcknowledgementHook, OnAcknowledgement, OnSend, SendHook, UnseenFailures
from ._metadata import MetadataWaiter, ProducerMetadata
from ._metrics import CallTimes, ProducerMetrics
from ._producer import Producer
from ._settings import ProducerSettings, producer_settings
from ._transactions import END_SECONDS, Transactions
from .batching._accumulator import RecordAccumulator
from .batching._buffer_pool import BufferPoolWaiters
from .sending._completion import Completion
from .sending._sender import Sender
from .transactions._transaction_manager import TransactionManager
from .transactions._transaction_state import TransactionState

logger = get_logger("trionet.client")


@asynccontextmanager
async def open_producer(
    bootstrap_servers: str | Iterable[str],
    config: Mapping[str, object] | ProducerSettings | None = None,
    *,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    on_send: OnSend | None = None,
    on_acknowledgement: OnAcknowledgement | None = None,
    **keywords: Unpack[ProducerKeywords],
) -> AsyncIterator[Producer]:
    """Open a producer, and close it when the block exits.

    When the block exits normally, the producer sends all buffered records and waits at most
    ``delivery.timeout.ms`` for the results. When the block exits with an exception, including
    cancellation, the producer does not wait. It drops the records that have not been sent yet;
    records that have been sent may still be written. In both cases every delivery is done
    afterwards. Until the block exits, the producer works even if the block is cancelled, for calls
    that shield themselves.

    If a transaction is still open when the block exits, it is aborted, which takes at most five
    seconds.

    If records failed and their deliveries were never read, a normal exit raises
    :class:`.UndeliveredError`. If the block raised an exception, these failures are logged in a
    single warning instead. A producer with ``on_acknowledgement`` does neither, since the callback
    has seen every failure.

    Args:
        bootstrap_servers: ``host:port`` strings, or one comma-separated string.
        config: settings keyed by Kafka's dotted names, as strings or Python values; or a settings
            object.
        network: opens connections.
        token_provider: returns the tokens for ``sasl.mechanism=OAUTHBEARER``; sync or async.
        on_send: called with every record; returns the record, or a copy with a different value,
            key, headers or timestamp. Must be a fast, synchronous function. It may be called again
            for a record that had to wait. If it raises, the exception is logged and the record
            is sent unchanged.
        on_acknowledgement: called with the result of every batch. Must be a fast, synchronous
            function. Its exceptions are logged.
        keywords: settings named by Kafka's keys, with dots replaced by underscores; they override
            ``config``.

    Raises:
        ConfigError: ``bootstrap_servers`` is malformed, a key is unknown, a value is not allowed,
            or values are inconsistent.
        TypeError: ``config`` is not settings, or is a settings object beside other settings.
        RuntimeError: trio does not run the calling task.
        UndeliveredError: the block has exited normally, and records failed whose deliveries were
            never read.
        TrionetError: the block has exited normally, but the producer has failed with this error and
            no earlier call has raised it.
    """
    settings = producer_settings(config, keywords, token_provider)
    async with open_kafka_client(
        bootstrap_servers, settings.client, network=network, kind="producer"
    ) as client:
        parts = _Parts(client, settings, network, on_send, on_acknowledgement)
        with parts.reporting_failures():
            # Not in the client's nursery: while this one ends, tasks that await deliveries see the
            # outcomes, which are then not reported as unseen.
            async with open_background_nursery() as nursery:
                # The start is not awaited, since records stay in the accumulator until then.
                nursery.start_soon(parts.sender.run)  # noqa: ASYNC113
                try:
                    yield parts.producer
                    parts.close()
                    await parts.abort_transaction()
                    await parts.producer._drain()  # noqa: SLF001 -- of this package
                finally:
                    parts.close()
                    with trio.move_on_after(END_SECONDS, shield=True):
                        await parts.abort_transaction()
                    parts.sender.end()


class _Parts:
    """A producer and its components."""

    def __init__(
        self,
        client: KafkaClient,
        settings: ProducerSettings,
        network: Network,
        on_send: OnSend | None,
        on_acknowledgement: OnAcknowledgement | None,
    ) -> None:
        self._undelivered = UnseenFailures()
        self._has_aborted = False
        rng = network.rng
        name = settings.transactional_id
        transaction = None if name is None else TransactionState(name)
        transaction_manager = TransactionManager(transaction) if settings.idempotence else None
        self.accumulator = RecordAccumulator(settings, rng, transaction_manager, transaction)
        self.waiters = BufferPoolWaiters(self.accumulator.pool)
        topics = ProducerMetadata(client.metadata, settings.metadata_idle_seconds)
        completion = Completion(
            self.accumulator.queues,
            client,
            transaction_manager,
            settings,
            # The failures of a transaction are reported by its end.
            AcknowledgementHook(on_acknowledgement, self._undelivered if name is None else None),
        )
        self.sender = Sender(
            client,
            self.accumulator.queues,
            completion,
            topics,
            settings,
            transaction_manager,
            rng,
        )
        times = CallTimes()
        self.transactions: Transactions | None = None
        if transaction is not None and self.sender.transaction_requests is not None:
            self.transactions = Transactions(
                transaction,
                self.sender.transaction_requests,
                self.accumulator,
                self.sender,
                settings.max_block_seconds,
                times,
            )
        counters, pool, waiters = completion.counters, self.accumulator.pool, self.waiters
        client.metrics.register(
            lambda: ProducerMetrics(client, counters, pool, waiters, times).collect
        )
        self.producer = Producer._create(  # noqa: SLF001 -- of this package
            self.accumulator,
            self.sender,
            MetadataWaiter(client, self.accumulator, topics, self.sender.check),
            self.waiters,
            network.now_ms,
            settings.max_block_seconds,
            times,
            None if on_send is None else SendHook(on_send),
            self.transactions,
        )

    def close(self) -> None:
        """Reject further records, and wake tasks waiting for memory (KAFKA-4235, KAFKA-9449)."""
        self.accumulator.close()
        self.waiters.wake_all()

    async def abort_transaction(self) -> None:  # noqa: ASYNC910 -- there may be none
        """Abort an open transaction, which takes a bounded time, and is not tried again then."""
        if self.transactions is not None and not self._has_aborted:
            await self.transactions.abort_at_once()
            self._has_aborted = True

    @contextmanager
    def reporting_failures(self) -> Iterator[None]:
        """When the block exits, report failed records whose deliveries were never read.

        If the block raises an exception, the failures are only logged.

        Raises:
            UndeliveredError: the block has exited normally, and there are such records.
        """
        try:
            yield
        except BaseException:
            if error := self._undelivered.error(self.sender.raised_error):
                logger.warning("%s", error)
            raise
        if error := self._undelivered.error(self.sender.raised_error):
            raise error
