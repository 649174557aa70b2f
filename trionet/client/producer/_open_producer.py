"""Opens a producer, and closes it with its block."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Unpack

import trio

from ..._util._single_error import raise_single_error
from ...net._network import SYSTEM, Network
from ...protocol.records.compression._codecs import NAMES
from ..config._keywords import ProducerKeywords
from ..network._kafka_client import KafkaClient
from ..network._opening import open_kafka_client
from ..security._settings import TokenProvider
from ._config import producer_settings
from ._metrics import ProducerMetrics
from ._producer import Producer
from ._settings import ProducerSettings
from ._wait_on_metadata import TopicWait
from .batching._accumulator import RecordAccumulator
from .batching._accumulator_settings import AccumulatorSettings
from .batching._buffer_pool_waiters import Room
from .delivery._unseen_failures import Undelivered
from .sending._completion import Completion, DeliveryLimits
from .sending._hooks import AcknowledgementHook, OnAcknowledgement, OnSend, SendHook
from .sending._producer_metadata import UsedTopics
from .sending._sender import Sender
from .transactions._init_producer_id import ProducerIdAsker
from .transactions._transaction_manager import Idempotence

logger = logging.getLogger("trionet.client")

_CODECS: Final = {name: number for number, name in NAMES.items()}


@asynccontextmanager
async def open_producer(
    bootstrap_servers: str | Iterable[str],
    config: Mapping[str, object] | ProducerSettings | None = None,
    /,
    *,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    on_send: OnSend | None = None,
    on_acknowledgement: OnAcknowledgement | None = None,
    **keywords: Unpack[ProducerKeywords],
) -> AsyncIterator[Producer]:
    """A producer for the length of a block.

    A normal end of the block sends what is there and waits for what becomes of it, which takes
    ``delivery.timeout.ms`` at most. An end by an error or by cancellation does not wait: what was
    not sent is not, and what was sent may be written. Every delivery is decided afterwards.

    Records that failed without a look at their deliveries are raised at a normal end; at any other
    end they are logged, in one warning. A producer with ``on_acknowledgement`` does neither.

    Args:
        bootstrap_servers: ``host:port`` texts, or one text of them with commas.
        config: settings by Kafka's dotted keys, as texts or Python values; or made settings.
        network: where connections come from.
        token_provider: gives the tokens of ``sasl.mechanism=OAUTHBEARER``; plain or async.
        on_send: sees every record, and gives it back, or one with another value, key, headers or
            timestamp; plain, and quick. One that had to wait for room may be shown again.
        on_acknowledgement: told of every batch when it is decided what became of its records; the
            same. Errors of both are told in the log.
        keywords: settings by Kafka's keys with underscores for dots; they win.

    Raises:
        ConfigError: ``bootstrap_servers`` is not of that form, a key is unknown, a value is not
            allowed, or values do not fit each other.
        UndeliveredError: at the end, see above.
    """
    settings = producer_settings(config, keywords, token_provider)
    async with open_kafka_client(
        bootstrap_servers, settings.client, network=network, kind="producer"
    ) as client:
        parts = _Parts(client, settings, network, on_send, on_acknowledgement)
        with parts.reporting_failures(), raise_single_error() as caller:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(parts.sender.keep_sending)
                try:
                    with caller.block():
                        yield parts.producer
                    parts.close()
                    await parts.producer.drain()
                finally:
                    parts.close()
                    parts.sender.end()
                    nursery.cancel_scope.cancel(reason="the producer is closed")


class _Parts:
    """A producer and what it is made of."""

    def __init__(
        self,
        client: KafkaClient,
        settings: ProducerSettings,
        network: Network,
        on_send: OnSend | None,
        on_acknowledgement: OnAcknowledgement | None,
    ) -> None:
        self._undelivered = Undelivered()
        chance = network.chance
        requests = settings.client.requests
        idempotence = Idempotence() if settings.idempotence else None
        self.accumulator = RecordAccumulator(_gathering(settings), chance, idempotence)
        self.room = Room(self.accumulator.pool)
        topics = UsedTopics(client.metadata, settings.metadata_idle_seconds)
        completion = Completion(
            self.accumulator,
            client.metadata,
            idempotence,
            DeliveryLimits(seconds=settings.delivery_seconds, retries=settings.retries),
            keeps_order=requests.in_flight_max == 1,
            hook=AcknowledgementHook(on_acknowledgement, self._undelivered),
            connection_problem=client.connection_problem,
        )
        self.sender = Sender(
            client,
            self.accumulator,
            completion,
            topics,
            acks=settings.acks,
            request_bytes_max=settings.request_bytes_max,
            timeout_ms=round(requests.timeout_seconds * 1000),
        )
        if idempotence is not None:
            refused = self.sender.refused
            asker = ProducerIdAsker(client, idempotence, settings.retry, chance, refused)
            self.sender.number_batches(idempotence, asker)
        counters, pool, room = completion.counters, self.accumulator.pool, self.room
        client.metrics.register(lambda: ProducerMetrics(client, counters, pool, room).collect)
        self.producer = Producer(
            self.accumulator,
            self.sender,
            TopicWait(client, self.accumulator, topics),
            self.room,
            network.now_ms,
            settings.max_block_seconds,
            None if on_send is None else SendHook(on_send),
        )

    def close(self) -> None:
        """Nothing is taken any more; who waits for that hears of it (KAFKA-4235, KAFKA-9449)."""
        self.accumulator.close()
        self.room.wake_all()

    @contextmanager
    def reporting_failures(self) -> Iterator[None]:
        """Around all that runs, since tasks that await a delivery look at it by then.

        Raises:
            UndeliveredError: records failed, and were not looked at; only logged where something
                else is raised.
        """
        try:
            yield
        except BaseException:
            if error := self._undelivered.error(self.sender.raised_error):
                logger.warning("%s", error)
            raise
        if error := self._undelivered.error(self.sender.raised_error):
            raise error


def _gathering(settings: ProducerSettings) -> AccumulatorSettings:
    return AccumulatorSettings(
        batch_bytes=settings.batch_bytes,
        linger_seconds=settings.linger_seconds,
        buffer_bytes=settings.buffer_bytes,
        request_bytes_max=settings.request_bytes_max,
        delivery_seconds=settings.delivery_seconds,
        retry=settings.retry,
        codec=_CODECS[settings.compression],
        level=settings.compression_level,
        is_adaptive=settings.adaptive_partitioning,
        availability_seconds=settings.partitioner_availability_seconds,
        ignores_keys=settings.partitioner_ignores_keys,
    )
