"""Queries partitions and offsets for the plan of a query (the connector: KafkaOffsetReaderAdmin).

The queries return the partitions of topics, and their start offsets, end offsets and offsets by
timestamp. They require only the Describe permission on the topics. The client of a source is also
here: one per configuration and process, kept open by the loop host.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar, TypeVarTuple

import attrs
import trio

from ..._util._logging import get_logger
from ...client._api_errors import STALE_METADATA, api_error, is_retriable
from ...client._topic_partition import TopicPartition
from ...client.admin._calls import AdminSettings, Calls
from ...client.admin._conversions import id_bytes
from ...client.admin._partitions import ListedOffset, OffsetSpec, PartitionCalls
from ...client.admin._topics import TopicCalls, TopicDescription
from ...client.consumer._settings import ConsumerSettings, consumer_settings
from ...client.network._kafka_client import KafkaClient
from ...client.network._open_client import keep_polling, open_kafka_client, until_connected
from ...errors import ApiError, CallTimedOutError, DisconnectedError, TrionetError
from ...net._network import SYSTEM, Network
from ...protocol import error_codes
from ...protocol._config_types import LONG_MAX
from .._client_options import BOOTSTRAP_SERVERS, config_of, warn_once
from .._first_response import with_first_response
from .._loop_host import host
from .._offset_limits import (
    EARLIEST,
    LATEST,
    ByTimestamp,
    GlobalTimestamp,
    OffsetLimit,
    Offsets,
    PartitionsDeletedError,
    SpecificTimestamps,
    names_of,
    offsets_of_times,
)
from .._options import Assign, SourceOptions, SubscribePattern
from .._planning import OffsetRange, batch_plan, needs_split, split_plan

#: Defaults that differ from a consumer's: a task reads only one partition, as fast as possible.
DEFAULTS: Final = MappingProxyType(
    {
        "max.partition.fetch.bytes": str(4 * 1024 * 1024),
        # None, as in the connector: a batch that is huge when it is decompressed is read in parts.
        "fetch.max.decompressed.bytes": str(LONG_MAX),
        # The operating system's auto-tuning gives fewer and longer reads of responses of megabytes.
        "receive.buffer.bytes": "-1",
    }
)

#: How long UNKNOWN_TOPIC_OR_PARTITION is retried: the partitions existed when the query was
#: planned, so the broker's metadata may merely be stale.
UNKNOWN_TOPIC_SECONDS: Final = 1.0


@attrs.frozen
class SourceClient:
    """A network client, admin calls on the same connections, and a consumer's settings.

    An Admin has more calls, whose messages take half of the time that a planner needs for imports.

    Attributes:
        network: sends requests; polled by a background task.
        topics: queries topics.
        partitions: queries offsets.
        settings: the settings of a consumer.
    """

    network: KafkaClient
    topics: TopicCalls
    partitions: PartitionCalls
    settings: ConsumerSettings


def leased_client(options: SourceOptions) -> AbstractAsyncContextManager[SourceClient]:
    """Lease the client of a source, in the trio loop; see :meth:`.LoopHost.lease`."""
    settings = _settings(options)
    return host().lease(_key(settings), partial(open_source_client, settings))


def drop_client(options: SourceOptions) -> None:
    """Drop the shared client, so that the next task opens a new one (as in the connector)."""
    host().drop(_key(_settings(options)))


def on_driver(options: SourceOptions, afn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Run an async function that plans a query in the trio loop; blocks the calling thread.

    Args:
        options: the options of the source.
        afn: the function, which uses the source's client.
        args: the arguments of the function.

    Raises:
        DisconnectedError: no broker has ever responded to this process, see
            :mod:`.._first_response`.
        Exception: any error raised by the function.
    """
    return host().call(lambda: _reaching(options, afn, *args))


async def _reaching(options: SourceOptions, afn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    if _API_TIMEOUT in options.client:
        return await afn(*args)
    async with leased_client(options) as client:
        return await with_first_response(
            partial(until_connected, client.network),
            client.network.connection_problem,
            _key(_settings(options)),
            f"kafka.{_API_TIMEOUT}",
            afn,
            *args,
        )


_API_TIMEOUT: Final = "default.api.timeout.ms"


def _settings(options: SourceOptions) -> dict[str, str]:
    return {**DEFAULTS, "client.id": options.group_label, **options.client}


def _key(settings: Mapping[str, str]) -> Hashable:
    return "source", frozenset(settings.items())


@asynccontextmanager
async def open_source_client(
    settings: Mapping[str, str], *, network: Network = SYSTEM
) -> AsyncIterator[SourceClient]:
    """Open a client for the duration of a block.

    Args:
        settings: consumer settings, including ``bootstrap.servers``.
        network: opens connections.

    Raises:
        ConfigError: the settings conflict with each other.

    Cancellation: at the end of the block, all connections are closed immediately.
    """
    servers = settings[BOOTSTRAP_SERVERS]
    settings_of_consumer = consumer_settings(config_of(settings), {})
    of_admin = AdminSettings(
        client=settings_of_consumer.client,
        api_timeout_seconds=settings_of_consumer.api_timeout_seconds,
        retry=settings_of_consumer.client.metadata.retry,
        unknown_topic_seconds=UNKNOWN_TOPIC_SECONDS,
    )
    async with open_kafka_client(
        servers, settings_of_consumer.client, network=network, kind="consumer"
    ) as client:
        client.metadata.allow_auto_topic_creation = False
        client.background.start_soon(keep_polling, client)
        calls = Calls(client, of_admin, network.rng)
        yield SourceClient(client, TopicCalls(calls), PartitionCalls(calls), settings_of_consumer)


logger = get_logger("trionet.spark")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: The partition has no record at or after the timestamp.
NO_MATCH: Final = -1


@attrs.define
class OffsetReader:
    """Queries partitions and their offsets, with retries.

    The methods run in the trio loop: ``host().call(reader.partitions)``. A reader can be pickled,
    because the client and its connections belong to the host.

    Attributes:
        options: the options of the source.
        topic_ids: the topic ids from the last :meth:`partitions`; empty for brokers without topic
            ids.
    """

    options: SourceOptions
    topic_ids: dict[str, bytes] = attrs.field(factory=dict)

    async def partitions(self, known: Collection[str] = ()) -> list[TopicPartition]:
        """Return the current partitions of the query, sorted, excluding internal topics.

        Args:
            known: topics that existed earlier in the run; they may have been deleted since.

        Raises:
            ApiError: a subscribed topic does not exist and is not in ``known``, or the client may
                not describe it.
            TrionetError: the cluster cannot be queried; see :class:`.TopicCalls`.
        """
        return await self._retried(partial(self._partitions, known=known))

    async def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the first available offset of each partition, omitting deleted partitions.

        Raises:
            TrionetError: see :meth:`partitions`.
        """
        return await self._listed(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    async def latest(
        self,
        partitions: Collection[TopicPartition],
        known: Mapping[TopicPartition, int] | None = None,
    ) -> Offsets:
        """Return the end of each partition, omitting deleted partitions.

        With ``isolation.level=read_committed``, the end is the last stable offset.

        Args:
            partitions: the partitions.
            known: previously known ends. An end that seems to have decreased is queried again, up
                to ``fetchOffset.numRetries`` times: the response may come from a lagging broker
                (SPARK-26267). If the end is still lower after that, records have been lost.

        Raises:
            TrionetError: see :meth:`partitions`.
        """
        before = known or {}
        specs = dict.fromkeys(partitions, OffsetSpec.LATEST)
        found = await self._listed(specs)
        for _ in range(self.options.fetch_retries):
            back = {each for each, offset in found.items() if offset < before.get(each, 0)}
            if not back:
                break
            logger.warning("the end offsets of %s decreased; querying them again", back)
            await trio.sleep(self.options.fetch_retry_seconds)
            found = await self._listed(specs)
        return found

    async def for_times(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """Return the first offset at or after each timestamp; -1 if no record is that recent.

        Args:
            times: the timestamps, in ms since the epoch, keyed by partition.

        Raises:
            TrionetError: see :meth:`partitions`.
        """
        return await self._listed({each: max(time, 0) for each, time in times.items()})

    async def resolved(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """Return the offsets, with -2 and -1 replaced by the current earliest and latest offsets.

        Partitions that were deleted meanwhile are omitted where they would have been replaced.

        Raises:
            TrionetError: see :meth:`partitions`.
        """
        found = {each: offset for each, offset in offsets.items() if offset >= 0}
        earliest = [each for each, offset in offsets.items() if offset == EARLIEST]
        latest = [each for each, offset in offsets.items() if offset == LATEST]
        await trio.lowlevel.checkpoint()
        if earliest:
            found.update(await self.earliest(earliest))
        if latest:
            found.update(await self.latest(latest))
        return found

    async def limit(
        self, limit: OffsetLimit, partitions: Collection[TopicPartition], *, is_start: bool
    ) -> Offsets:
        """Return the start or end of a query as offsets, resolving timestamps but not -2 and -1.

        Args:
            limit: the start or end specified by the user.
            partitions: all partitions that the query reads.
            is_start: whether the limit is the start.

        Raises:
            OffsetsMismatchError: the limit does not match the partitions, or there is no record at
                or after a timestamp.
            TrionetError: see :meth:`partitions`.
        """
        if not isinstance(limit, SpecificTimestamps | GlobalTimestamp):
            await trio.lowlevel.checkpoint()
            return limit.for_partitions(partitions)
        return await self._of_times(limit, partitions, is_start=is_start)

    async def _of_times(
        self, limit: ByTimestamp, partitions: Collection[TopicPartition], *, is_start: bool
    ) -> Offsets:
        times = limit.for_partitions(partitions, is_start=is_start)
        found = await self.for_times(times)
        return offsets_of_times(limit, times, found, is_start=is_start)

    async def _partitions(
        self, client: SourceClient, known: Collection[str]
    ) -> list[TopicPartition]:
        subscription = self.options.subscription
        if isinstance(subscription, SubscribePattern):
            topics = subscription.topics_among(await client.topics.list())
        else:
            topics = subscription.topics
        described = await client.topics.describe(topics)
        for topic, error in described.errors.items():
            # With a pattern, topics may have been deleted since they were listed.
            if not isinstance(subscription, SubscribePattern) and not (
                topic in known and _is_gone(error)
            ):
                raise self._explained(topic, error)
        found = {
            name: each
            for name, each in described.items()
            if isinstance(each, TopicDescription) and not each.is_internal
        }
        self.topic_ids = {name: id for name, each in found.items() if any(id := id_bytes(each.id))}
        existing = [
            TopicPartition(name, number)
            for name, each in found.items()
            for number in each.partitions
        ]
        if isinstance(subscription, Assign):
            missing = set(subscription.partitions) - set(existing)
            # Not an error, as in the connector: they may be added, and a stream reads them then.
            if missing := {each for each in missing if each.topic in found}:
                warn_once(f"option assign: {names_of(missing)} do not exist, and are not read")
        return subscription.select(existing)

    def _explained(self, topic: str, error: TrionetError) -> TrionetError:
        """Return the error about a topic, with what its user can do."""
        if not isinstance(error, ApiError):
            return error
        servers = self.options.client[BOOTSTRAP_SERVERS]
        match error.error_code:
            case error_codes.UNKNOWN_TOPIC_OR_PARTITION:
                hint = f"it does not exist at {servers}; create it, or correct its name"
            case error_codes.TOPIC_AUTHORIZATION_FAILED:
                hint = f"this client may not describe it at {servers}; grant it the right Read"
            case _:
                return error
        return api_error(error.error_code, f"topic {topic!r}", hint)

    async def _listed(self, specs: Mapping[TopicPartition, OffsetSpec | int]) -> Offsets:
        async def ask(client: SourceClient) -> Offsets:
            is_read_committed = client.settings.fetch.is_read_committed
            listed = await client.partitions.list_offsets(specs, read_committed=is_read_committed)
            for each, error in listed.errors.items():
                if not _is_gone(error):
                    raise error
                logger.warning("skipping %s, which no longer exists: %s", each, error)
            return {
                each: NO_MATCH if found.offset is None else found.offset
                for each, found in sorted(listed.items())
                if isinstance(found, ListedOffset)
            }

        if not specs:
            await trio.lowlevel.checkpoint()
            return {}
        return await self._retried(ask)

    async def _retried(self, ask: Callable[[SourceClient], Awaitable[T]]) -> T:
        """Query the cluster up to ``fetchOffset.numRetries`` times (the connector: withRetries)."""
        attempt = 1
        while True:
            try:
                async with leased_client(self.options) as client:
                    return await ask(client)
            except (ApiError, CallTimedOutError, DisconnectedError) as error:
                if attempt >= self.options.fetch_retries or not _may_pass(error):
                    raise
                logger.warning("attempt %d to query offsets failed: %s", attempt, error)
            attempt += 1
            await trio.sleep(self.options.fetch_retry_seconds)


def _is_gone(error: TrionetError) -> bool:
    """Return whether the item does not exist; the admin client has already retried."""
    return (
        isinstance(error, ApiError) and error.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    )


def _may_pass(error: ApiError | CallTimedOutError | DisconnectedError) -> bool:
    if isinstance(error, ApiError):
        return is_retriable(error) or error.error_code in STALE_METADATA
    return True


async def batch_ranges(options: SourceOptions, reader: OffsetReader) -> list[OffsetRange]:
    """Return the range of offsets that each task of a batch reads.

    Earliest and latest remain unresolved if possible: the task resolves them when it reads its
    range, so that reading a table again includes new records.

    Args:
        options: the options of the source.
        reader: queries the cluster.

    Raises:
        OffsetsMismatchError: the specified offsets do not match the partitions that the query
            reads, or a partition ends before it starts.
        DataLossError: partitions have been deleted, and ``failOnDataLoss`` is true.
        TrionetError: the cluster cannot be queried.
    """
    partitions = await reader.partitions()
    start = await reader.limit(options.starting, partitions, is_start=True)
    end = await reader.limit(options.ending, partitions, is_start=False)
    ranges = batch_plan(start, end, topic_ids=reader.topic_ids)
    least, most = options.min_partitions, options.max_records_per_partition
    if not needs_split(ranges, least, most):
        return ranges
    start, end = await reader.resolved(start), await reader.resolved(end)
    existing = start.keys() & end.keys()
    if deleted := {each.topic_partition for each in ranges} - existing:
        loss = PartitionsDeletedError(f"partitions have been deleted: {names_of(deleted)}")
        if options.fail_on_data_loss:
            raise loss
        logger.warning("%s", loss)
    remaining = [each for each in ranges if each.topic_partition in existing]
    return split_plan(remaining, start, end, least, most)
