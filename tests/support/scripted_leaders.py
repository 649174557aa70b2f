"""Brokers that take a producer's batches as a test says, on a network in memory.

They keep to Kafka's rules of numbers (:mod:`trionet.broker.log.state._producer_state` has all):
a batch that is not next is refused, one that is there already is acknowledged again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, cast

import trio

from support.scripted_node import PORT, Hangup, ScriptedNode, Seen
from trionet import Producer, open_producer
from trionet.client.producer._settings import ProducerSettings
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import InitProducerIdResponse
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from trionet.protocol.records._batch import read_header
from trionet.protocol.records._records import decode_values
from trionet.testing import MemoryNetwork

#: Without any waits of the producer's own.
AT_ONCE = ProducerSettings(linger_seconds=0.0)


class Batch(NamedTuple):
    """One batch of a Produce request as it came."""

    node: int
    partition: tuple[str, int]
    epoch: int
    sequence: int
    values: list[bytes | None]
    at: float


Answer = Callable[[Batch], "PartitionProduceResponse | Hangup | None"]
"""What to say to a batch; None is silence, to all that comes on that connection from then on."""


class Leaders:
    """A cluster.

    Args:
        network: where it is.
        nodes: how many there are, numbered from 1.
        topics: names, each with how many partitions it has; the nodes lead them in turn.

    Attributes:
        network: where it is.
        nodes: by id.
        leaders: node id and leader epoch by partition.
        batches: those that came, in order.
        log: the values that were written, by partition.
        answers: what is said to the next batches, one after the other; what is beyond is written.
        describes: whether Metadata requests get responses.
        id: the producer id that is given.
    """

    def __init__(
        self, network: MemoryNetwork, nodes: int = 1, topics: dict[str, int] | None = None
    ) -> None:
        self.network = network
        hosts = [(number, f"10.0.0.{number}") for number in range(1, nodes + 1)]
        self.nodes = {id: ScriptedNode(network, id, host, hosts) for id, host in hosts}
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self.topics = {"t": 1} if topics is None else topics
        self.batches: list[Batch] = []
        self.log: dict[tuple[str, int], list[bytes | None]] = {}
        self.answers: list[Answer] = []
        self.id = 7
        self._written: dict[tuple[tuple[str, int], int, int], dict[int, tuple[int, int]]] = {}
        for node in self.nodes.values():
            node.replies["Metadata"] = self._describe
            node.replies["InitProducerId"] = self._give_id
            node.replies["Produce"] = self.replier(node.node_id)
        for name, partitions in self.topics.items():
            for index in range(partitions):
                self.leaders[name, index] = index % nodes + 1, 1

    @property
    def address(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Leaders]:
        async with AsyncExitStack() as stack:
            for node in self.nodes.values():
                await stack.enter_async_context(node.listening())
            yield self

    @asynccontextmanager
    async def producer(
        self, settings: ProducerSettings, /, **options: Any
    ) -> AsyncIterator[Producer]:
        """A producer of this cluster, which listens as long."""
        async with (
            self.listening(),
            open_producer(self.address, settings, network=self.network, **options) as producer,
        ):
            yield producer

    def values(self) -> list[bytes | None]:
        """What was written to the first partition of topic t."""
        return self.log.get(("t", 0), [])

    def numbers(self) -> list[tuple[int, int]]:
        """Epoch and sequence of each batch that came."""
        return [(each.epoch, each.sequence) for each in self.batches]

    # What is asked.

    def topic_id(self, name: str) -> bytes:
        return name.encode().ljust(16, b"\0")

    def _describe(self, seen: Seen) -> MetadataResponse:
        asked = [each.name for each in seen.body.topics or []]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=each.node_id, host=each.host, port=PORT)
                for each in self.nodes.values()
            ],
            topics=[self._topic(name) for name in asked],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
            return MetadataResponseTopic(name=name, error_code=code)
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=id, leader_epoch=epoch)
            for (topic, index), (id, epoch) in self.leaders.items()
            if topic == name
        ]
        return MetadataResponseTopic(name=name, topic_id=self.topic_id(name), partitions=partitions)

    def _give_id(self, _: Seen) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=self.id, producer_epoch=0)

    # Batches.

    def replier(self, node_id: int) -> Callable[[Seen], Any]:
        """How a node responds to Produce."""

        def reply(seen: Seen) -> Any:
            topics: list[TopicProduceResponse] = []
            for topic in seen.body.topic_data:
                name = topic.name or topic.topic_id.rstrip(b"\0").decode()
                answers = [
                    self._take(self._batch(node_id, name, each.index, each.records))
                    for each in topic.partition_data
                ]
                for answer in answers:
                    if answer is None:
                        self.nodes[node_id].silent.add(seen.stream)
                    if answer is None or isinstance(answer, Hangup):
                        return answer
                partitions = cast("list[PartitionProduceResponse]", answers)
                topics.append(
                    TopicProduceResponse(
                        name=name, topic_id=topic.topic_id, partition_responses=partitions
                    )
                )
            return ProduceResponse(responses=topics) if seen.body.acks else None

        return reply

    def _batch(self, node_id: int, topic: str, index: int, records: Any) -> Batch:
        header = read_header(records)
        values = decode_values(bytes(records))
        where = (topic, index)
        now = trio.current_time()
        return Batch(node_id, where, header.producer_epoch, header.base_sequence, values, now)

    def _take(self, batch: Batch) -> PartitionProduceResponse | Hangup | None:
        self.batches.append(batch)
        if self.answers:
            return self.answers.pop(0)(batch)
        return self.write(batch)

    def write(self, batch: Batch) -> PartitionProduceResponse:
        """Write a batch as a leader does, and say where."""
        index = batch.partition[1]
        if self.leaders[batch.partition][0] != batch.node:
            return refused(batch, error_codes.NOT_LEADER_OR_FOLLOWER)
        log = self.log.setdefault(batch.partition, [])
        if batch.sequence >= 0:
            written = self._written.setdefault((batch.partition, self.id, batch.epoch), {})
            if batch.sequence in written:
                offset, _ = written[batch.sequence]
                return PartitionProduceResponse(index=index, base_offset=offset)
            following = max((end for _, end in written.values()), default=0)
            if self._knows_producer(batch) and batch.sequence != following:
                return refused(batch, error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER)
            written[batch.sequence] = len(log), batch.sequence + len(batch.values)
        log += batch.values
        return PartitionProduceResponse(index=index, base_offset=len(log) - len(batch.values))

    def _knows_producer(self, batch: Batch) -> bool:
        """Whether it has a batch of this producer; the number of the first one may be any."""
        return any(
            written and (partition, id) == (batch.partition, self.id)
            for (partition, id, _), written in self._written.items()
        )

    def write_and(self, say: Answer) -> Answer:
        """Write a batch, and say something else."""

        def answer(batch: Batch) -> PartitionProduceResponse | Hangup | None:
            self.write(batch)
            return say(batch)

        return answer

    def restart(self) -> None:
        """Of each producer only the last batch is known afterwards, as in Kafka's snapshots."""
        for written in self._written.values():
            for sequence in sorted(written)[:-1]:
                del written[sequence]

    def forget_producers(self) -> None:
        """As after producer.id.expiration.ms, or an unclean election: any number may be next."""
        self._written.clear()

    def lose(self, count: int) -> None:
        """The last batches of the first partition of topic t, each of one record, are gone."""
        del self.values()[-count:]
        for written in self._written.values():
            for sequence in sorted(written)[-count:]:
                del written[sequence]


def refused(batch: Batch, code: int, **fields: Any) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=batch.partition[1], error_code=code, base_offset=-1, **fields
    )


def refusal(code: int, **fields: Any) -> Answer:
    return lambda batch: refused(batch, code, **fields)


def hang_up(_: Batch) -> Hangup:
    return Hangup()


def say_nothing(_: Batch) -> None:
    return None
