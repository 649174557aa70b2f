"""Controls a broker under test that runs in the test's own trio loop."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...broker import Broker
from ..faults._faults import Apis
from ..internals import _broker_operations as operations
from ..internals._broker_internals import call_directly
from ..internals._groups import GroupView
from ..internals._records import Record, Seed
from ..requests._seen_requests import SeenRequest
from ._controls import Controls


class BrokerControl(Controls):
    """A handle for controlling a broker from a trio program; created by :func:`control`.

    Every async method is a checkpoint. To put a timeout on a wait, use ``trio.fail_after``.

    Attributes:
        broker: the broker under test.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, call_directly)
        self.broker = broker

    async def create_topic(
        self, name: str, partitions: int | None = None, **configs: object
    ) -> None:
        """Create a topic.

        Args:
            name: the name of the topic.
            partitions: the number of partitions; None for ``num.partitions``.
            configs: topic configs, with underscores instead of dots.

        Raises:
            ApiError: the topic exists, or an argument is invalid.
        """
        await operations.create_topic(self._internals, name, partitions, configs)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            ApiError: the topic does not exist.
        """
        await operations.delete_topic(self._internals, name)

    async def seed(self, topic: str, records: Iterable[Seed]) -> list[Record]:
        """Append records to a topic, creating it if needed.

        Args:
            topic: the name of the topic.
            records: the records; each is a value, a tuple of a key and a value, or a dict with
                any of ``partition``, ``key``, ``value``, ``headers`` and ``timestamp``. The key
                determines the partition, as in Kafka's own producer; records without a key are
                distributed round-robin.

        Returns:
            The appended records, ordered by partition and offset.

        Raises:
            ApiError: the broker rejected a batch; earlier batches were appended.
            TypeError: a record is invalid; nothing was appended.
            ValueError: a field is invalid, or the partition does not exist; nothing was appended.
        """
        return await operations.seed(self._internals, topic, records)

    async def load(self, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
        """Append the records in a JSON Lines file to their topics; see :meth:`seed`.

        Raises:
            OSError: the file cannot be read.
            ValueError: a line is invalid; nothing was appended.
        """
        return await operations.load(self._internals, path)

    async def apply_retention(self) -> None:
        """Apply retention now, without waiting for ``log.retention.check.interval.ms``."""
        await operations.apply_retention(self._internals)

    async def wait_for_records(
        self, topic: str, count: int = 1, *, partition: int | None = None
    ) -> list[Record]:
        """Wait until a topic has at least ``count`` records. Returns the records.

        Args:
            topic: the topic name; the topic need not exist yet.
            count: the minimum number of records, including those of open and aborted transactions.
            partition: the partition whose records are counted; None for all partitions.

        Raises:
            LookupError: the topic exists, but the partition does not.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(self._internals, self._enough_records(topic, count, partition))

    async def wait_for_requests(
        self, apis: Apis = None, count: int = 1, *, topic: str | None = None
    ) -> list[SeenRequest]:
        """Wait until at least ``count`` requests have been received. Returns the requests.

        Args:
            apis: one API or several, by name or number; None for all.
            count: the minimum number of requests.
            topic: the topic that the requests must be about; None for any.

        Raises:
            ValueError: an API is unknown.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(self._internals, self._enough_requests(apis, count, topic))

    async def wait_for_group(
        self, id: str, state: str = "Stable", *, members: int | None = None
    ) -> GroupView:
        """Wait until a group has the given state and number of members. Returns the group.

        Args:
            id: the group id; the group need not exist yet.
            state: the state, by Kafka's name.
            members: the exact number of members; None for any number.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(self._internals, self._group_in_state(id, state, members))

    async def wait_for_offset(
        self, group: str, topic: str, offset: int, *, partition: int = 0
    ) -> GroupView:
        """Wait until a group's committed offset is at least ``offset``. Returns the group.

        Args:
            group: the group id; the group need not exist yet.
            topic: the name of the topic.
            offset: the minimum committed offset.
            partition: the partition number.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(
            self._internals, self._committed(group, topic, partition, offset)
        )


def control(broker: Broker) -> BrokerControl:
    """Take control of a broker opened with :func:`trionet.open_broker`.

    After this call, the broker's requests are recorded and faults can be injected.

    Raises:
        LocalProtocolError: the broker is already under control; call this function once per broker.
    """
    return BrokerControl(broker)
