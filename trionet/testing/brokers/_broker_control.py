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
    """Inspects and controls a broker from a trio program; created by :func:`control`.

    Every coroutine is a checkpoint. Coroutines have no timeout: use ``trio.fail_after``.

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
            configs: topic configs, with underscores for dots.

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
            records: each a value, a tuple of a key and a value, or a dict of ``partition``,
                ``key``, ``value``, ``headers``, ``timestamp``. Keys choose the partition as in
                Kafka's own producer; records without a key are distributed round-robin.

        Returns:
            The appended records, in the order of partitions and offsets.

        Raises:
            ApiError: the broker rejected a batch; earlier batches were appended.
            TypeError: a record is invalid; nothing was appended.
            ValueError: a field is invalid, or the partition does not exist; nothing was appended.
        """
        return await operations.seed(self._internals, topic, records)

    async def load(self, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
        """Append the records of a JSON Lines file to their topics; see :meth:`seed`.

        Raises:
            OSError: the file cannot be read.
            ValueError: a line is invalid; nothing was appended.
        """
        return await operations.load(self._internals, path)

    async def apply_retention(self) -> None:
        """Delete old records now, instead of after ``log.retention.check.interval.ms``."""
        await operations.apply_retention(self._internals)

    async def wait_for_records(
        self, topic: str, count: int = 1, *, partition: int | None = None
    ) -> list[Record]:
        """Wait until a topic has at least ``count`` records. Returns the records.

        Args:
            topic: the name of the topic, which need not exist yet.
            count: the minimum number of records, including those of open and aborted transactions.
            partition: the only partition whose records count; None for all.

        Raises:
            LookupError: the topic has no such partition.

        Cancellation: changes nothing.
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
            ValueError: an API does not exist.

        Cancellation: changes nothing.
        """
        return await operations.wait(self._internals, self._enough_requests(apis, count, topic))

    async def wait_for_group(
        self, id: str, state: str = "Stable", *, members: int | None = None
    ) -> GroupView:
        """Wait until a group has a state and a number of members. Returns the group.

        Args:
            id: the id of the group, which need not exist yet.
            state: Kafka's name for the state.
            members: the exact number of members; None for any number.

        Cancellation: changes nothing.
        """
        return await operations.wait(self._internals, self._group_in_state(id, state, members))

    async def wait_for_offset(
        self, group: str, topic: str, offset: int, *, partition: int = 0
    ) -> GroupView:
        """Wait until a group has committed an offset, or a later offset. Returns the group.

        Args:
            group: the id of the group, which need not exist yet.
            topic: the name of the topic.
            offset: the minimum offset.
            partition: the number of the partition.

        Cancellation: changes nothing.
        """
        return await operations.wait(
            self._internals, self._committed(group, topic, partition, offset)
        )


def control(broker: Broker) -> BrokerControl:
    """Control a broker opened with :func:`trionet.open_broker`.

    Its requests are recorded from this call on, and faults can be injected.

    Raises:
        LocalProtocolError: the broker is already under control; call this once per broker.
    """
    return BrokerControl(broker)
