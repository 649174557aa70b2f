"""Sources that read records: the tail of a topic, and the results of ``trionet pipeline run``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import trio

from ...client._topic_partition import TopicPartition
from ...client.admin import open_admin
from ...client.consumer import Consumer, ConsumerBatch, open_consumer
from ...errors import TrionetError
from ...net._network import SYSTEM, Network
from ..model._about import CLIENT_ID
from ..model._model import Model
from ..model._pipeline import MINUTES_MAX
from ._source import INTERVAL_SECONDS, Pace, Started

#: The initial number of records per partition.
FIRST_RECORDS: Final = 20
#: The maximum lag. A tail with more lag cannot keep up, and skips ahead.
LAG_MAX: Final = 500
#: The back-off after an error, in seconds.
RETRY_SECONDS: Final = 2.0
_TAIL_SETTINGS: Final[Mapping[str, object]] = {
    "client.id": f"{CLIENT_ID}-tail",
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
        self._settings = {**_TAIL_SETTINGS, **(settings or {})}
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

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        task_status.started()
        while True:
            await self._has_changed.wait()
            self._has_changed = trio.Event()
            focus = self._focus
            model.select_tail(focus)
            model.changed()
            if focus is None:
                continue
            with trio.CancelScope() as self._scope:
                await self._follow(model, *focus)

    async def _follow(self, model: Model, topic: str, partition: int | None) -> None:
        while True:
            try:
                async with open_consumer(
                    self._bootstrap_servers, self._settings, network=self._network
                ) as consumer:
                    await self._begin(consumer, topic, partition)
                    model.append_tail([], 0, trio.current_time())
                    model.changed()
                    await self._read(consumer, model)
            except (TrionetError, OSError) as error:
                model.tail.mark_failed(f"{topic} could not be read: {error}")
                model.changed()
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

    async def _read(self, consumer: Consumer, model: Model) -> None:
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
            model.changed()
            await pace.rest()


#: The results topic is by default named after the request log's topic, with this suffix.
SUFFIX: Final = "-results"
#: The interval between searches for a missing topic.
SEARCH_SECONDS: Final = 5.0
#: How often results are shown until all existing ones are read; showing sorts all rows.
CATCH_UP_SECONDS: Final = 0.5
_MS: Final = 1000
_PIPELINE_SETTINGS: Final[Mapping[str, object]] = {
    "max.poll.records": 500,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
}


class PipelineSource:
    """A :class:`.Part` that reads results, starting when results are first shown.

    Args:
        bootstrap_servers: the bootstrap servers of the cluster.
        settings: the client settings, keyed by Kafka's names.
        topic: the results topic; None to search for it.
        network: opens the connections.
        now_ms: returns the time in ms since the epoch.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, object] | None = None,
        *,
        topic: str | None = None,
        network: Network = SYSTEM,
        now_ms: Callable[[], int],
    ) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._bootstrap_servers = bootstrap_servers
        self._settings = {"client.id": f"{CLIENT_ID}-pipeline", **(settings or {})}
        self._topic = topic
        self._network = network
        self._now_ms = now_ms
        self._is_needed = trio.Event()

    def focus(self, section: str | None, key: object = None) -> None:  # noqa: ARG002 - Source
        """Start reading when results are first shown, and continue; see :meth:`.Source.focus`."""
        if section == "pipeline":
            self._is_needed.set()

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        task_status.started()
        await self._is_needed.wait()
        while True:
            try:
                topic = self._topic or await self._find()
                if topic is None:
                    model.pipeline.mark_missing(
                        "no results of `trionet pipeline run` found; if the name of their topic"
                        f" does not end with {SUFFIX}, set it with --pipeline-topic"
                    )
                else:
                    model.pipeline.topic = topic
                    await self._read(topic, model)
            except (TrionetError, OSError) as error:
                for section in model.pipeline.sections:
                    section.mark_failed(f"{error}")
            model.changed()
            await trio.sleep(SEARCH_SECONDS)

    async def _find(self) -> str | None:
        async with open_admin(
            self._bootstrap_servers, self._settings, network=self._network
        ) as admin:
            topics = await admin.list_topics(internal=True)
        return results_topic(topics)

    async def _read(self, topic: str, model: Model) -> None:
        settings = {**_PIPELINE_SETTINGS, **self._settings}
        async with open_consumer(
            self._bootstrap_servers, settings, network=self._network
        ) as consumer:
            await self._catch_up(consumer, await self._begin(consumer, topic), model)
            pace = Pace()
            while True:
                batch = await consumer.next_batch()
                pace.begin()
                _put(batch, model)
                model.pipeline.show(trio.current_time())
                model.changed()
                await pace.rest()

    async def _catch_up(
        self, consumer: Consumer, ends: Mapping[TopicPartition, int], model: Model
    ) -> None:
        """Read up to the given end offsets; ``model.pipeline.unread`` is then 0."""
        while True:
            positions = {each: consumer.position(each) for each in ends}
            unread = sum(max(0, end - (positions[each] or 0)) for each, end in ends.items())
            model.pipeline.unread = unread
            model.pipeline.show(trio.current_time())
            model.changed()
            if not unread:
                return
            # The position also passes offsets without a record, such as a transaction's marker.
            with trio.move_on_after(CATCH_UP_SECONDS):
                while True:
                    batch = await consumer.next_batch()
                    _put(batch, model)
                    partition = batch.topic_partition
                    if (consumer.position(partition) or 0) >= ends[partition]:
                        break

    async def _begin(self, consumer: Consumer, topic: str) -> Mapping[TopicPartition, int]:
        """Seek to the oldest minute kept, which works because results follow a minute's end.

        Returns the end offset of each partition.
        """
        numbers = await consumer.partitions_of(topic)
        if not numbers:
            raise TrionetError(f"topic {topic!r} does not exist")
        partitions = [TopicPartition(topic, number) for number in numbers]
        since = self._now_ms() - MINUTES_MAX * 60 * _MS
        found = await consumer.offsets_for_times(dict.fromkeys(partitions, since))
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for partition in partitions:
            offset = found.get(partition)
            consumer.seek(partition, ends[partition] if offset is None else offset.offset)
        return ends


def _put(batch: ConsumerBatch, model: Model) -> None:
    for key, value in zip(batch.keys, batch.values, strict=True):
        model.pipeline.put(key, value)


def results_topic(topics: Iterable[str]) -> str | None:
    """Return the first topic named after another topic with the suffix, or None."""
    names = set(topics)
    found = sorted(
        name for name in names if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in names
    )
    return found[0] if found else None
