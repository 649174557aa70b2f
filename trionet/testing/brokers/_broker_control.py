"""A broker under test in a trio program, on the test's own loop."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...broker import Broker
from ..faults._faults import Apis
from ..internals import _broker_operations as chores
from ..internals._broker_internals import in_this_loop
from ..internals._groups import GroupView
from ..internals._records import Record, Seed
from ..requests._seen_requests import SeenRequest
from ._controls import Controls


class BrokerControl(Controls):
    """What a trio program asks of its broker, and tells it; made by :func:`control`.

    Every coroutine is a checkpoint. None has a deadline: use ``trio.fail_after``.

    Attributes:
        broker: the one that is under test.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, in_this_loop)
        self.broker = broker

    async def create_topic(
        self, name: str, partitions: int | None = None, **configs: object
    ) -> None:
        """Make a topic.

        Args:
            name: of the topic.
            partitions: how many; None for ``num.partitions``.
            configs: its own settings, with underscores for dots.

        Raises:
            ApiError: it exists, or what was asked for is not allowed.
        """
        await chores.create_topic(self._inside, name, partitions, configs)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            ApiError: there is none of that name.
        """
        await chores.delete_topic(self._inside, name)

    async def seed(self, topic: str, records: Iterable[Seed]) -> list[Record]:
        """Put records into a topic, which is made if it is not there.

        Args:
            topic: its name.
            records: each a value, a tuple of a key and a value, or a dict of ``partition``,
                ``key``, ``value``, ``headers``, ``timestamp``. A key decides on the partition as
                in Kafka's own producer; records without a key take turns.

        Returns:
            What they are there, in the order of partitions and offsets.

        Raises:
            ApiError: the broker refused some; those of partitions before are there.
            TypeError: one of them is no record; nothing was put there.
            ValueError: the same, or there is no such partition.
        """
        return await chores.seed(self._inside, topic, records)

    async def load(self, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
        """Put the records of a file of JSON lines into their topics; see :meth:`seed`.

        Raises:
            OSError: the file cannot be read.
            ValueError: a line is not what it should be; nothing was put anywhere.
        """
        return await chores.load(self._inside, path)

    async def apply_retention(self) -> None:
        """Remove what is too old or too much by now (``log.retention.check.interval.ms``)."""
        await chores.apply_retention(self._inside)

    async def wait_for_records(
        self, topic: str, count: int = 1, *, partition: int | None = None
    ) -> list[Record]:
        """Wait until a topic has this many records, or more; gives them."""
        return await chores.until(self._inside, self._enough_records(topic, count, partition))

    async def wait_for_requests(
        self, apis: Apis = None, count: int = 1, *, topic: str | None = None
    ) -> list[SeenRequest]:
        """Wait until this many requests have come; gives them."""
        return await chores.until(self._inside, self._enough_requests(apis, count, topic))

    async def wait_for_group(
        self, id: str, state: str = "Stable", *, members: int | None = None
    ) -> GroupView:
        """Wait until a group is in a state, and has this many members; gives it."""
        return await chores.until(self._inside, self._group_in_state(id, state, members))

    async def wait_for_offset(
        self, group: str, topic: str, offset: int, *, partition: int = 0
    ) -> GroupView:
        """Wait until a group has committed an offset, or a later one; gives it."""
        return await chores.until(self._inside, self._committed(group, topic, partition, offset))


def control(broker: Broker) -> BrokerControl:
    """Take a broker of :func:`trionet.open_broker` under test.

    From here on its requests are remembered, and faults may meet them.

    Raises:
        LocalProtocolError: it is under test already: this is called once a broker.
    """
    return BrokerControl(broker)
