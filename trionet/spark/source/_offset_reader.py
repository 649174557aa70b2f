"""What a query asks the cluster when it is planned (the connector: KafkaOffsetReaderAdmin).

Which partitions there are, where they begin and end, and which offsets belong to times. Nothing
needs more than the right to describe the topics.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, TypeVar

import attrs
import trio

from ...client._api_errors import STALE_METADATA, is_retriable
from ...client._topic_partition import TopicPartition
from ...client.admin.calls._conversions import id_bytes
from ...client.admin.topics._partitions import ListedOffset, OffsetSpec
from ...client.admin.topics._topic_descriptions import TopicDescription
from ...errors import ApiError, CallTimedOutError, DisconnectedError, TrionetError
from ...protocol import error_codes
from ..offsets._offset_limits import (
    ByTimestamp,
    GlobalTimestamp,
    OffsetLimit,
    SpecificTimestamps,
    offsets_of_times,
)
from ..offsets._partition_offsets import EARLIEST, LATEST, Offsets
from ..options._options import SourceOptions
from ..runtime._source_client import SourceClient, leased_client

logger = logging.getLogger("trionet.spark")

T = TypeVar("T")

#: No record is as late as the time that was asked for.
NO_MATCH: Final = -1


@attrs.define
class OffsetReader:
    """See the module; its methods are for the loop: ``host().call(reader.partitions)``.

    It can be pickled, and holds no connection: that is kept by the host.

    Attributes:
        options: of the source.
        topic_ids: of the topics, as :meth:`partitions` has found them last; without those whose
            broker tells none.
    """

    options: SourceOptions
    topic_ids: dict[str, bytes] = attrs.field(factory=dict)

    async def partitions(self) -> list[TopicPartition]:
        """The partitions that the query reads, as they are now, in order; no internal topic's.

        Raises:
            ApiError: a topic that was named is not there, or may not be read.
            TrionetError: the cluster could not be asked, see :class:`.Admin`.
        """
        return await self._retried(self._partitions)

    async def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset that each partition still has; one that is gone is left out.

        Raises:
            TrionetError: as :meth:`partitions`.
        """
        return await self._listed(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    async def latest(
        self,
        partitions: Collection[TopicPartition],
        known: Mapping[TopicPartition, int] | None = None,
    ) -> Offsets:
        """The end of each partition; with ``isolation.level=read_committed`` of what is decided.

        A partition that is gone is left out.

        Args:
            partitions: which.
            known: ends that were seen before. One that seems to go back is asked for again: the
                answer may come from a broker that is behind (SPARK-26267). Who still gets less
                after ``fetchOffset.numRetries`` has to take it for lost.

        Raises:
            TrionetError: as :meth:`partitions`.
        """
        before = known or {}
        specs = dict.fromkeys(partitions, OffsetSpec.LATEST)
        found = await self._listed(specs)
        for _ in range(self.options.fetch_retries):
            back = {each for each, offset in found.items() if offset < before.get(each, 0)}
            if not back:
                break
            logger.warning("the ends of %s seem to have gone back; they are asked for again", back)
            await trio.sleep(self.options.fetch_retry_seconds)
            found = await self._listed(specs)
        return found

    async def for_times(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset at or after a time, -1 where no record is as late as that.

        Args:
            times: in milliseconds since 1970.

        Raises:
            TrionetError: as :meth:`partitions`.
        """
        return await self._listed({each: max(time, 0) for each, time in times.items()})

    async def resolved(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """The same offsets with what -2 and -1 stand for now.

        Raises:
            TrionetError: as :meth:`partitions`.
        """
        found = dict(offsets)
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
        """Where a query begins or ends: -2 and -1 stay, times become offsets.

        Args:
            limit: what the user has said.
            partitions: all that the query reads.
            is_start: whether this is where it begins.

        Raises:
            OffsetsMismatchError: the limit does not fit the partitions, or no record is as late as
                a time.
            TrionetError: as :meth:`partitions`.
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

    # Asking.

    async def _partitions(self, client: SourceClient) -> list[TopicPartition]:
        topics = self.options.subscription.topics
        if topics is None:
            topics = tuple(await client.admin.list_topics())
        described = await client.admin.describe_topics(topics)
        if self.options.subscription.topics is None:  # one that was deleted between the two
            known = {
                name: each for name, each in described.items() if isinstance(each, TopicDescription)
            }
        else:
            known = described.checked()
        known = {name: each for name, each in known.items() if not each.is_internal}
        self.topic_ids = {name: id for name, each in known.items() if any(id := id_bytes(each.id))}
        return self.options.subscription.chosen(
            TopicPartition(name, number)
            for name, each in known.items()
            for number in each.partitions
        )

    async def _listed(self, specs: Mapping[TopicPartition, OffsetSpec | int]) -> Offsets:
        async def ask(client: SourceClient) -> Offsets:
            is_read_committed = client.settings.fetch.is_read_committed
            listed = await client.admin.list_offsets(specs, read_committed=is_read_committed)
            for each, error in listed.errors.items():
                if not _is_gone(error):
                    raise error
                logger.warning("%s is left out, it is not there any more: %s", each, error)
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
        """Ask up to ``fetchOffset.numRetries`` times (the connector: withRetries)."""
        attempt = 1
        while True:
            try:
                async with leased_client(self.options) as client:
                    return await ask(client)
            except (ApiError, CallTimedOutError, DisconnectedError) as error:
                if attempt >= self.options.fetch_retries or not _may_pass(error):
                    raise
                logger.warning("attempt %d to ask for offsets has failed: %s", attempt, error)
            attempt += 1
            await trio.sleep(self.options.fetch_retry_seconds)


def _is_gone(error: TrionetError) -> bool:
    """Whether there is no such partition; whoever was asked said so for a while."""
    return (
        isinstance(error, ApiError) and error.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    )


def _may_pass(error: ApiError | CallTimedOutError | DisconnectedError) -> bool:
    if isinstance(error, ApiError):
        return is_retriable(error) or error.error_code in STALE_METADATA
    return True
