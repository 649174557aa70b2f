"""The context manager that opens and closes a consumer."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

import trio

from ..._util._background import call_at_end
from ...net._network import SYSTEM, Network
from ..config._keywords import ConsumerKeywords
from ..network._kafka_client import KafkaClient
from ..network._open_client import open_kafka_client
from ..security._settings import TokenProvider
from ._consumer import Consumer
from ._metrics import ConsumerMetrics
from ._network_task import NetworkTask
from ._settings import ConsumerSettings, consumer_settings
from .coordinator._consumer_coordinator import ConsumerCoordinator
from .coordinator._rebalance_steps import RebalanceCallback
from .fetch._fetcher import Fetcher
from .offsets._offset_fetcher import OffsetFetcher
from .offsets._position_requests import OffsetReset, PositionValidator
from .records._chunk import NOTHING, RecordLoop
from .records._hooks import ConsumerHooks, OnCommit, OnConsume
from .state._pending_errors import PendingErrors
from .state._subscription_state import SubscriptionState


@asynccontextmanager
async def open_consumer(
    bootstrap_servers: str | Iterable[str],
    config: Mapping[str, object] | ConsumerSettings | None = None,
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
    """Open a consumer for use in an ``async with`` block.

    However the block ends, the consumer then commits finished records if ``enable.auto.commit`` is
    set, and leaves its group, all within a time limit. The last record or batch that was returned
    is not among them, unless the program has asked for the next one or committed it, as by
    ``await consumer.commit()``. Until the block ends, the consumer works even if the block is
    cancelled, for calls that shield themselves.

    Args:
        bootstrap_servers: ``host:port`` strings, or one comma-separated string.
        config: settings keyed by Kafka's dotted names, with strings or Python values;
            ``partition.assignment.strategy`` may contain custom assignors. A
            :class:`.ConsumerSettings` is also accepted, but only without other settings.
        topics: the topics to subscribe to; for this and the callbacks, see
            :meth:`.Consumer.subscribe`.
        on_assigned: called with the partitions that were added.
        on_revoked: called with the partitions that are about to be revoked.
        on_lost: called with partitions that other members may already own.
        network: provides connections, the wall-clock time and random numbers.
        token_provider: a plain or async function that returns tokens for
            ``sasl.mechanism=OAUTHBEARER``.
        on_consume: called with records of one partition before the first of them is returned. Must
            be a plain, fast function. Exceptions that it raises are logged, not propagated.
        on_commit: called with committed offsets. The same rules apply as for ``on_consume``.
        keywords: settings keyed by Kafka's names, with underscores in place of dots; they take
            precedence over ``config``.

    Raises:
        ConfigError: ``bootstrap_servers`` is malformed, a key is unknown, a value is not allowed,
            values contradict each other, or ``topics`` is set without ``group.id``.
        ValueError: ``topics`` or a topic name is empty.
        TypeError: a topic is not a str, ``config`` is not settings, or a
            :class:`.ConsumerSettings` is combined with other settings.
        RuntimeError: trio does not run the calling task.
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


class _Parts:
    """Builds a consumer from its parts, and runs its background tasks."""

    def __init__(
        self,
        client: KafkaClient,
        settings: ConsumerSettings,
        network: Network,
        hooks: ConsumerHooks,
    ) -> None:
        client.metadata.allow_auto_topic_creation = settings.allow_auto_topic_creation
        parking_lot = trio.lowlevel.ParkingLot()
        errors = PendingErrors(parking_lot.unpark_all)
        subscriptions = SubscriptionState(settings.reset)
        retry, rng = settings.client.metadata.retry, network.rng
        is_read_committed = settings.fetch.is_read_committed
        fetcher = Fetcher(
            client,
            subscriptions,
            settings.fetch,
            errors,
            replica_seconds=settings.client.metadata.max_age_seconds,
            retry=retry,
            rng=rng,
            notify=parking_lot.unpark_all,
            hooks=hooks,
        )
        requests = client, subscriptions, errors, retry, rng
        reset = OffsetReset(*requests, is_read_committed=is_read_committed, now_ms=network.now_ms)
        self.consumer = Consumer.__new__(Consumer)
        loop = RecordLoop(self.consumer._next_chunk)  # noqa: SLF001 -- of this package

        def interrupt() -> None:
            """Return no more decoded records: a step of a rebalance comes first."""
            loop.records = NOTHING
            parking_lot.unpark_all()

        self._client = client
        self._group = settings.group
        self._coordinator: ConsumerCoordinator | None = None
        find_offsets = subscriptions.assignment.reset_initial_positions
        if settings.group is not None:
            self._coordinator = ConsumerCoordinator(
                client,
                settings.group,
                subscriptions,
                rng,
                notify=interrupt,
                hooks=hooks,
            )
            find_offsets = self._coordinator.positions.find_soon
        self._network_task = NetworkTask(
            client,
            subscriptions,
            errors,
            (reset, PositionValidator(*requests), fetcher),
            find_offsets,
            parking_lot.unpark_all,
        )
        self.consumer._begin(  # noqa: SLF001 -- of this package
            client,
            subscriptions,
            fetcher,
            errors,
            settings,
            loop,
            parking_lot,
            self._coordinator,
            OffsetFetcher(
                client,
                subscriptions,
                timeout_seconds=settings.api_timeout_seconds,
                is_read_committed=is_read_committed,
                retry=retry,
                rng=rng,
            ),
        )
        coordinator = self._coordinator
        client.metrics.register(
            lambda: (
                ConsumerMetrics(
                    client,
                    subscriptions,
                    fetcher.counters,
                    is_read_committed=is_read_committed,
                    poll_interval=None if coordinator is None else coordinator.poll_interval,
                ).collect
            )
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the background tasks, and close the consumer when the block ends."""
        # Nothing has to wait for their start: the consumer's methods queue what they need.
        background = self._client.background
        background.start_soon(self._network_task.run)
        if self._coordinator is not None:
            background.start_soon(self._coordinator.run)
        background.start_soon(call_at_end, self.consumer._end)  # noqa: SLF001 -- of this package
        try:
            yield
        except BaseException:
            with trio.move_on_after(self._cancelled_close_seconds, shield=True):
                await self._close(is_normal=False)
            raise
        else:
            await self._close(is_normal=True)
        finally:
            self.consumer._end()  # noqa: SLF001 -- of this package

    @property
    def _cancelled_close_seconds(self) -> float:
        """The time limit for closing when the block fails or is cancelled, in seconds."""
        return 0.0 if self._group is None else 2 * self._group.cancelled_close_timeout_seconds

    async def _close(self, *, is_normal: bool) -> None:
        """Leave the group, even if the caller is already cancelled."""
        if self._coordinator is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._coordinator.close(is_normal=is_normal)
