"""Opens a consumer and closes it with its block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import trio

from ..._util.single_error import raise_single_error
from ...net.network import SYSTEM, Network
from ..network_client import NetworkClient
from ..opening import open_network_client
from .background import Background
from .consumer import Consumer
from .failures import Failures
from .fetcher import Fetcher
from .offset_reset import OffsetReset
from .settings import ConsumerSettings
from .subscription_state import SubscriptionState


@asynccontextmanager
async def open_consumer(
    bootstrap_servers: str | Iterable[str],
    settings: ConsumerSettings | None = None,
    *,
    network: Network = SYSTEM,
) -> AsyncIterator[Consumer]:
    """A consumer for the length of the block.

    Args:
        bootstrap_servers: ``host:port`` texts, or one text of them with commas.
        settings: Kafka's defaults without.
        network: where connections come from.

    Raises:
        ConfigError: a setting is not allowed.
    """
    settings = settings or ConsumerSettings()
    async with open_network_client(bootstrap_servers, settings.client, network=network) as client:
        news = trio.lowlevel.ParkingLot()
        consumer, background = _made(client, settings, network, news)
        with raise_single_error() as caller:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(background.run)
                try:
                    with caller.block():
                        yield consumer
                finally:
                    consumer.end()
                    nursery.cancel_scope.cancel(reason="the consumer is closed")


def _made(
    client: NetworkClient,
    settings: ConsumerSettings,
    network: Network,
    news: trio.lowlevel.ParkingLot,
) -> tuple[Consumer, Background]:
    client.metadata.allow_auto_topic_creation = settings.allow_auto_topic_creation
    failures = Failures(news.unpark_all)
    subscriptions = SubscriptionState(settings.reset)
    retry = settings.client.metadata.retry
    fetcher = Fetcher(
        client,
        subscriptions,
        settings.fetch,
        failures,
        replica_seconds=settings.client.metadata.max_age_seconds,
        retry=retry,
        chance=network.chance,
        on_news=news.unpark_all,
    )
    reset = OffsetReset(
        client,
        subscriptions,
        failures,
        is_read_committed=settings.fetch.is_read_committed,
        retry=retry,
        chance=network.chance,
        now_ms=network.now_ms,
    )

    def begin_without_group() -> None:
        for each in subscriptions.initializing():
            subscriptions.request_reset(each)

    consumer = Consumer(client, subscriptions, fetcher, failures, settings, news)
    background = Background(client, subscriptions, failures, (reset, fetcher), begin_without_group)
    return consumer, background
