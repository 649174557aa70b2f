"""A source that reads the last records of a topic and, while shown, new records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import trio

from ...client._topic_partition import TopicPartition
from ...client.consumer import Consumer, open_consumer
from ...errors import TrionetError
from ...net._network import SYSTEM, Network
from ..model._model import Model
from ._pacing import Pace
from ._source import INTERVAL_SECONDS

#: The initial number of records per partition.
FIRST_RECORDS: Final = 20
#: The maximum lag. A tail with more lag cannot keep up, and skips ahead.
LAG_MAX: Final = 500
#: The back-off after an error, in seconds.
RETRY_SECONDS: Final = 2.0
_SETTINGS: Final[Mapping[str, object]] = {
    "client.id": "trionet-dashboard-tail",
    "max.poll.records": 100,
    "fetch.max.bytes": 256 * 1024,
    "max.partition.fetch.bytes": 64 * 1024,
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
}


class TailSource:
    """A :class:`.Part` that reads the records of a topic.

    Args:
        bootstrap_servers: the bootstrap servers of the cluster.
        settings: the client settings, keyed by Kafka's names.
        network: opens the connections.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, object] | None = None,
        *,
        network: Network = SYSTEM,
    ) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._bootstrap_servers = bootstrap_servers
        self._settings = {**_SETTINGS, **(settings or {})}
        self._network = network
        self._focus: tuple[str, int | None] | None = None
        self._has_changed = trio.Event()
        self._scope = trio.CancelScope()

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the topic and the partition (None for all); see :meth:`.Source.focus`."""
        focus = None
        if section == "tail":
            assert isinstance(key, tuple)
            focus = key
        if focus != self._focus:
            self._focus = focus
            self._scope.cancel(reason="another topic is shown")
            self._has_changed.set()

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        task_status.started()
        while True:
            await self._has_changed.wait()
            self._has_changed = trio.Event()
            focus = self._focus
            model.select_tail(focus)
            changed()
            if focus is None:
                continue
            with trio.CancelScope() as self._scope:
                await self._follow(model, changed, *focus)

    async def _follow(
        self, model: Model, changed: Callable[[], None], topic: str, partition: int | None
    ) -> None:
        while True:
            try:
                async with open_consumer(
                    self._bootstrap_servers, self._settings, network=self._network
                ) as consumer:
                    await self._begin(consumer, topic, partition)
                    model.append_tail([], 0, trio.current_time())
                    changed()
                    await self._read(consumer, model, changed)
            except (TrionetError, OSError) as error:
                model.tail.mark_failed(f"{topic} could not be read: {error}")
                changed()
            await trio.sleep(RETRY_SECONDS)

    async def _begin(self, consumer: Consumer, topic: str, partition: int | None) -> None:
        numbers = await consumer.partitions_of(topic) if partition is None else [partition]
        partitions = [TopicPartition(topic, number) for number in numbers]
        if not partitions:
            raise TrionetError("the topic does not exist")
        ends = await consumer.end_offsets(partitions)
        starts = await consumer.beginning_offsets(partitions)
        consumer.assign(partitions)
        for each in partitions:
            if each in ends:
                consumer.seek(each, max(starts.get(each, 0), ends[each] - FIRST_RECORDS))

    async def _read(self, consumer: Consumer, model: Model, changed: Callable[[], None]) -> None:
        pace = Pace()
        while True:
            batch = await consumer.next_batch()
            pace.begin()
            skipped = 0
            partition = batch.topic_partition
            lag, position = consumer.lag(partition), consumer.position(partition)
            if lag is not None and position is not None and lag > LAG_MAX:
                skipped = lag - FIRST_RECORDS
                consumer.seek(partition, position + skipped)
            model.append_tail(list(batch), skipped, trio.current_time())
            changed()
            await pace.rest()
