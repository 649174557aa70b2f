"""Opens a consumer and closes it with its block."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

import trio

from ..._util._single_error import raise_single_error
from ...metrics._registry import Collect
from ...net._network import SYSTEM, Network
from ..config._keywords import ConsumerKeywords
from ..network._kafka_client import KafkaClient
from ..network._opening import open_kafka_client
from ..security._settings import TokenProvider
from ._config import consumer_settings
from ._consumer import Consumer
from ._metrics import ConsumerMetrics
from ._network_task import Background
from ._settings import ConsumerSettings
from .coordinator._consumer_coordinator import ConsumerCoordinator
from .coordinator._rebalance_callbacks import RebalanceCallback
from .fetch._fetcher import Fetcher
from .offsets._leader_requests import LeaderQuestions
from .offsets._offset_fetcher import OffsetQuestions
from .offsets._offset_reset import OffsetReset
from .offsets._position_validation import Validation
from .records._hooks import ConsumerHooks, OnCommit, OnConsume
from .state._pending_errors import Failures
from .state._subscription_state import SubscriptionState


@asynccontextmanager
async def open_consumer(
    bootstrap_servers: str | Iterable[str],
    config: Mapping[str, object] | ConsumerSettings | None = None,
    /,
    *,
    topics: str | Iterable[str] | re.Pattern[str] | None = None,
    on_assigned: RebalanceCallback | None = None,
    on_revoked: RebalanceCallback | None = None,
    on_lost: RebalanceCallback | None = None,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    on_consume: OnConsume | None = None,
    on_commit: OnCommit | None = None,
    **keywords: Unpack[ConsumerKeywords],
) -> AsyncIterator[Consumer]:
    """A consumer for the length of the block.

    At a normal end of the block everything that was handed out counts as finished; after an error
    or a cancellation the last record does not. What is finished is committed if
    ``enable.auto.commit`` is set, and the group is left, both within a bounded time.

    Args:
        bootstrap_servers: ``host:port`` texts, or one text of them with commas.
        config: settings by Kafka's dotted keys, as texts or Python values, among the names of
            ``partition.assignment.strategy`` also assignors of your own; or made settings.
        topics: to subscribe to; see :meth:`.Consumer.subscribe`, as for the callbacks.
        on_assigned: told of partitions that were added.
        on_revoked: told of partitions that are to be given up.
        on_lost: told of partitions that were lost to others.
        network: where connections come from.
        token_provider: gives the tokens of ``sasl.mechanism=OAUTHBEARER``; plain or async.
        on_consume: shown records, those of one partition together, before the first of them is
            handed out; plain, and quick.
        on_commit: told of offsets that were committed; the same. Errors of both are told in the
            log.
        keywords: settings by Kafka's keys with underscores for dots; they win.

    Raises:
        ConfigError: ``bootstrap_servers`` is not of that form, a key is unknown, a value is not
            allowed, or values do not fit each other.
        ValueError: there are topics, and no ``group.id``.
    """
    settings = consumer_settings(config, keywords, token_provider)
    async with open_kafka_client(
        bootstrap_servers, settings.client, network=network, kind="consumer"
    ) as client:
        parts = _Parts(client, settings, network, ConsumerHooks(on_consume, on_commit))
        if topics is not None:
            parts.consumer.subscribe(
                topics, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost
            )
        async with parts.running():
            yield parts.consumer


class _Polling:
    """The background, which a cancellation of the user's block does not end."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self.scope = trio.CancelScope(shield=True)

    async def go_on(self) -> None:
        """Poll until the scope is cancelled, which the end of the block does in bounded time."""
        with self.scope:
            await self._background.run()


class _Parts:
    """A consumer and what it is made of."""

    def __init__(
        self,
        client: KafkaClient,
        settings: ConsumerSettings,
        network: Network,
        hooks: ConsumerHooks,
    ) -> None:
        client.metadata.allow_auto_topic_creation = settings.allow_auto_topic_creation
        self._client = client
        self._settings = settings
        self._network = network
        self._hooks = hooks
        self._news = trio.lowlevel.ParkingLot()
        self._failures = Failures(self._news.unpark_all)
        self._subscriptions = SubscriptionState(settings.reset)
        self._coordinator = self._made_coordinator()
        self._fetcher = self._made_fetcher()
        self._background = self._made_background()
        self.consumer = Consumer(
            client,
            self._subscriptions,
            self._fetcher,
            self._failures,
            settings,
            self._news,
            self._coordinator,
            OffsetQuestions(client, settings, network.chance),
        )
        client.metrics.register(self._measuring)

    def _made_coordinator(self) -> ConsumerCoordinator | None:
        if self._settings.group is None:
            return None
        return ConsumerCoordinator(
            self._client,
            self._settings.group,
            self._subscriptions,
            self._network.chance,
            on_news=self._news.unpark_all,
            hooks=self._hooks,
        )

    def _made_fetcher(self) -> Fetcher:
        metadata = self._settings.client.metadata
        return Fetcher(
            self._client,
            self._subscriptions,
            self._settings.fetch,
            self._failures,
            replica_seconds=metadata.max_age_seconds,
            retry=metadata.retry,
            chance=self._network.chance,
            on_news=self._news.unpark_all,
            hooks=self._hooks,
        )

    def _made_background(self) -> Background:
        client, subscriptions, failures = self._client, self._subscriptions, self._failures
        retry = self._settings.client.metadata.retry
        questions = LeaderQuestions(client, failures, retry, self._network.chance)
        reset = OffsetReset(
            client,
            subscriptions,
            failures,
            questions,
            is_read_committed=self._settings.fetch.is_read_committed,
            now_ms=self._network.now_ms,
        )
        validation = Validation(client, subscriptions, failures, questions)
        workers = reset, validation, self._fetcher
        coordinator = self._coordinator
        look = self._begin_without_group if coordinator is None else coordinator.look_for_offsets
        return Background(client, subscriptions, failures, workers, look)

    def _measuring(self) -> Collect:
        coordinator = self._coordinator
        return ConsumerMetrics(
            self._client,
            self._subscriptions,
            self._fetcher.counters,
            is_read_committed=self._settings.fetch.is_read_committed,
            asked_at=None if coordinator is None else lambda: coordinator.poll_interval.asked_at,
        ).collect

    def _begin_without_group(self) -> None:
        for each in self._subscriptions.initializing():
            self._subscriptions.request_reset(each)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work in the background until the block ends, and close then."""
        with raise_single_error() as caller:
            async with trio.open_nursery() as nursery:
                # A cancelled block leaves its group, too; until then answers have to be read.
                polling = _Polling(self._background)
                nursery.start_soon(polling.go_on)
                if self._coordinator is not None:
                    nursery.start_soon(self._coordinator.go_on)
                try:
                    with caller.block():
                        yield
                except BaseException:
                    with trio.move_on_after(self._cancelled_close_seconds, shield=True):
                        await self._close(is_normal=False)
                    raise
                else:
                    await self._close(is_normal=True)
                finally:
                    self.consumer.end()
                    polling.scope.cancel(reason="the consumer is closed")
                    nursery.cancel_scope.cancel(reason="the consumer is closed")

    @property
    def _cancelled_close_seconds(self) -> float:
        """How long :meth:`_close` may take when the end is not normal, callbacks and farewell."""
        group = self._settings.group
        return 0.0 if group is None else 2 * group.cancelled_close_seconds_max

    async def _close(self, *, is_normal: bool) -> None:
        """Leave the group, also if the end is cancelled before it has begun."""
        if self._coordinator is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._coordinator.close(is_normal=is_normal)
