"""Offset lookups for the user (Kafka: OffsetFetcher.fetchOffsetsByTimes)."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import trio

from ...._util._raising import raise_single_error
from ....errors import CallTimedOutError, DisconnectedError, TrionetError
from ....protocol import error_codes
from ....protocol.messages.list_offsets import ListOffsetsResponse
from ..._api_errors import STALE_METADATA, api_error, is_retriable, offset_error
from ..._backoff import ExponentialBackoff
from ..._topic_partition import TopicPartition
from ...network._cluster import Node
from ...network._kafka_client import KafkaClient
from ..state._subscription_state import SubscriptionState
from ._position_requests import UNKNOWN_OFFSET, by_leader, list_offsets_request, list_version_min


class OffsetAndTimestamp(NamedTuple):
    """The offset and timestamp of the first record at or after a timestamp.

    Attributes:
        offset: the offset of the record.
        timestamp: the timestamp of the record, in milliseconds since the epoch.
        leader_epoch: the leader epoch of the record; -1 if it is unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


class _Attempt:
    """The result of one round of requests."""

    def __init__(self) -> None:
        self.found: dict[TopicPartition, OffsetAndTimestamp] = {}
        self.failure: TrionetError | None = None
        self.error: TrionetError | None = None


class OffsetFetcher:
    """Looks up offsets by timestamp, and the partitions of topics.

    Args:
        client: polled by the network task.
        subscriptions: lists the topics whose metadata pending calls need.
        timeout_seconds: the time limit for a call, including retries (``default.api.timeout.ms``).
        is_read_committed: whether a log is taken to end where its first open transaction starts.
        retry: the backoff between attempts.
        rng: jitters backoffs.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        *,
        timeout_seconds: float,
        is_read_committed: bool,
        retry: ExponentialBackoff,
        rng: random.Random,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._timeout_seconds = timeout_seconds
        self._is_read_committed = is_read_committed
        self._retry = retry
        self._rng = rng

    async def fetch(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the first record at or after the given timestamp in each partition.

        The result for a partition is None if it has no such record.

        Args:
            timestamps: the timestamp for each partition, in milliseconds since the epoch; -1 for
                the end of the log, -2 for its start.

        Raises:
            CallTimedOutError: not all offsets could be looked up within
                ``default.api.timeout.ms``; the cause is the last error.
            TrionetError: a broker rejected the request.
        """
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        last: TrionetError | None = None
        failures = 0
        with trio.move_on_after(self._timeout_seconds), self._with_metadata_of(timestamps):
            await trio.lowlevel.checkpoint()
            while left := {each: at for each, at in timestamps.items() if each not in found}:
                if failures:
                    self._client.metadata.request_update()
                    wait = self._retry.seconds(failures, self._rng)
                    await trio.sleep(wait)
                await self._until_known({each.topic for each in left})
                result = await self._fetch_once(left)
                if result.error is not None:
                    raise result.error
                found |= result.found
                last = result.failure
                failures += 1
        if len(found) < len(timestamps):
            missing = ", ".join(str(each) for each in timestamps if each not in found)
            raise self._timed_out(f"the offsets of {missing}", last)
        return {
            each: None if found[each].offset == UNKNOWN_OFFSET else found[each]
            for each in timestamps
        }

    async def partitions_of(self, topic: str) -> list[int]:
        """Return a topic's partition numbers; an empty list if the topic does not exist.

        Raises:
            CallTimedOutError: there was no response within ``default.api.timeout.ms``.
            ApiError: a broker rejected the request.
        """
        await trio.lowlevel.checkpoint()
        with self._with_metadata_of([TopicPartition(topic, 0)]):
            with trio.move_on_after(self._timeout_seconds) as limit:
                await self._until_known({topic})
            known = self._client.metadata.cluster.topics.get(topic)
        if known is None:
            if limit.cancelled_caught:
                raise self._timed_out(f"topic {topic}", None)
            return []  # noqa: ASYNC910 -- a checkpoint was made above
        if known.error_code not in STALE_METADATA | {0}:
            raise api_error(known.error_code, f"topic {topic}")
        return sorted(known.partitions)

    def _timed_out(self, what: str, last: TrionetError | None) -> CallTimedOutError:
        problem = self._client.connection_problem() or str(last or "no broker has responded")
        error = CallTimedOutError(
            f"could not look up {what} within default.api.timeout.ms ="
            f" {self._timeout_seconds * 1000:.0f}: {problem}"
        )
        error.__cause__ = self._client.connection_error() or last
        return error

    # Metadata.

    @contextmanager
    def _with_metadata_of(self, names: Iterable[TopicPartition]) -> Iterator[None]:
        """Include the topics of these partitions in metadata requests within the block."""
        topics = {each.topic for each in names}
        subscriptions, metadata = self._subscriptions, self._client.metadata
        subscriptions.looked_up.update(topics)
        metadata.add_topics(topics)
        self._client.wakeup()
        try:
            yield
        finally:
            subscriptions.looked_up.subtract(topics)
            subscriptions.looked_up = +subscriptions.looked_up
            needed = subscriptions.metadata_topics
            if needed is not None:
                metadata.remove_topics(topics - needed)

    async def _until_known(self, topics: set[str]) -> None:
        """Wait for the metadata of these topics, which may report that a topic does not exist.

        Where all topics are requested, to match a pattern, a topic does not exist if it is missing
        from two updates; the first may have been requested earlier.
        """
        metadata = self._client.metadata
        await trio.lowlevel.checkpoint()
        missing = 0
        while not topics <= metadata.cluster.topics.keys() and missing < 2:
            if metadata.topics is None:
                metadata.request_update()
            await self._client.until_updated(metadata.updates)
            if metadata.has_all_topics:
                missing += 1

    # Requests.

    async def _fetch_once(self, timestamps: dict[TopicPartition, int]) -> _Attempt:
        leaders, _ = by_leader(self._client.metadata.cluster, timestamps)
        result = _Attempt()
        with raise_single_error():
            async with trio.open_nursery() as nursery:
                for node, names in leaders.items():
                    wanted = {each: timestamps[each] for each in names}
                    nursery.start_soon(partial(self._fetch_from, node, wanted, result))
        return result

    async def _fetch_from(
        self, node: Node, timestamps: dict[TopicPartition, int], result: _Attempt
    ) -> None:
        await trio.lowlevel.checkpoint()
        request = list_offsets_request(
            timestamps, self._client.metadata.cluster, is_read_committed=self._is_read_committed
        )
        try:
            response: ListOffsetsResponse = await self._client.request(
                node, request, version_min=list_version_min(self._is_read_committed)
            )
        except DisconnectedError as error:
            result.failure = error
        except TrionetError as error:
            result.error = error
        else:
            self._take(response, timestamps, result)

    def _take(
        self,
        response: ListOffsetsResponse,
        requested: Container[TopicPartition],
        result: _Attempt,
    ) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                name = TopicPartition(topic.name, each.partition_index)
                if name not in requested:
                    continue
                if each.error_code == error_codes.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                    result.found[name] = OffsetAndTimestamp(UNKNOWN_OFFSET, -1, -1)
                elif each.error_code:
                    error = api_error(each.error_code, f"the offsets of {name}")
                    if is_retriable(error) or each.error_code in STALE_METADATA:
                        result.failure = error
                    else:
                        result.error = error
                elif invalid := offset_error(each.offset, name):
                    result.error = invalid
                else:
                    result.found[name] = OffsetAndTimestamp(
                        each.offset, each.timestamp, each.leader_epoch
                    )
