"""Brokers with a log that a consumer reads, on a network in memory; they respond as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import trio

from support.calls import batch
from support.scripted_node import PORT, Hangup, ScriptedNode, Seen
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from trionet.testing import MemoryNetwork


class Logs:
    """A cluster with one partition of a topic ``t``.

    A fetch that finds nothing is not answered, so that no time is spent in vain.

    Args:
        network: where it is.
        nodes: how many there are, numbered from 1.

    Attributes:
        nodes: by id.
        topic_id: the id of the topic.
        leader: the leader's node id and the leader epoch.
        end: the offset after the last record.
        epoch_ends: the end offset of each leader epoch.
        answers: what is said to the next fetches, one after the other; None is the truth.
        fetches: node id and offset of each fetch that came.
        fetch_times: when each came, by the loop's clock.
        list_errors: error codes of the next responses to ListOffsets.
        list_offsets: what the next responses to ListOffsets say in place of the truth.
        list_times: when each question of that API came.
        epoch_offsets: what the next responses to OffsetForLeaderEpoch say in place of the truth.
        epoch_errors: error codes of the next responses to OffsetForLeaderEpoch.
        epoch_times: when each question of that API came.
        tells_leaders: whether a node that is not the leader says who is (KIP-951).
    """

    def __init__(self, network: MemoryNetwork, nodes: int = 1) -> None:
        hosts = [(number, f"10.0.0.{number}") for number in range(1, nodes + 1)]
        self.nodes = {id: ScriptedNode(network, id, host, hosts) for id, host in hosts}
        self.topic_id = b"t".ljust(16, b"\0")
        self.leader = 1, 1
        self.end = 0
        self.epoch_ends: dict[int, int] = {}
        self.answers: list[PartitionData | Hangup | None] = []
        self.fetches: list[tuple[int, int]] = []
        self.fetch_times: list[float] = []
        self.list_errors: list[int] = []
        self.list_offsets: list[int] = []
        self.epoch_offsets: list[int] = []
        self.list_times: list[float] = []
        self.epoch_errors: list[int] = []
        self.epoch_times: list[float] = []
        self.tells_leaders = False
        self._batches: list[tuple[int, bytes]] = []
        for node in self.nodes.values():
            node.replies["Metadata"] = self._describe
            node.replies["ListOffsets"] = self._list
            node.replies["OffsetForLeaderEpoch"] = self._tell_epoch
            node.replies["Fetch"] = partial(self._fetch, node.node_id)

    @property
    def address(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Logs]:
        async with AsyncExitStack() as stack:
            for node in self.nodes.values():
                await stack.enter_async_context(node.listening())
            yield self

    def write(self, *values: bytes) -> None:
        """Append each value as a batch of its own."""
        for value in values:
            records = batch(value, base_offset=self.end, leader_epoch=self.leader[1])
            self._batches.append((self.end, records))
            self.end += 1

    def create_anew(self, leader: tuple[int, int]) -> None:
        """Delete the topic with its records, and create it again, with this leader."""
        self.topic_id = b"anew".ljust(16, b"\0")
        self.leader = leader
        self.end = 0
        self._batches.clear()

    def asked(self, name: str) -> int:
        """How often an API was asked for, of all nodes."""
        return sum(node.names().count(name) for node in self.nodes.values())

    # What is asked.

    def _describe(self, seen: Seen) -> MetadataResponse:
        leader, epoch = self.leader
        partition = MetadataResponsePartition(
            leader_id=leader, leader_epoch=epoch, replica_nodes=list(self.nodes)
        )
        topic = MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=[partition])
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=each.node_id, host=each.host, port=PORT)
                for each in self.nodes.values()
            ],
            controller_id=1,
            topics=[topic] if seen.body.topics else [],
        )

    def _list(self, seen: Seen) -> ListOffsetsResponse:
        [topic] = seen.body.topics
        self.list_times.append(trio.current_time())
        offset = self.end if topic.partitions[0].timestamp == -1 else 0
        if self.list_offsets:
            offset = self.list_offsets.pop(0)
        code = self.list_errors.pop(0) if self.list_errors else 0
        found = ListOffsetsPartitionResponse(
            error_code=code, offset=offset, leader_epoch=self.leader[1]
        )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])

    def _tell_epoch(self, seen: Seen) -> OffsetForLeaderEpochResponse:
        [topic] = seen.body.topics
        self.epoch_times.append(trio.current_time())
        code = self.epoch_errors.pop(0) if self.epoch_errors else 0
        epoch = topic.partitions[0].leader_epoch
        offset = self.epoch_ends.get(epoch, self.end if epoch <= self.leader[1] else -1)
        if self.epoch_offsets:
            offset = self.epoch_offsets.pop(0)
        end = EpochEndOffset(error_code=code, leader_epoch=epoch, end_offset=offset)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic="t", partitions=[end])]
        )

    def _fetch(self, node_id: int, seen: Seen) -> FetchResponse | Hangup | None:
        if not seen.body.topics:
            return None
        [topic] = seen.body.topics
        [partition] = topic.partitions
        self.fetches.append((node_id, partition.fetch_offset))
        self.fetch_times.append(trio.current_time())
        answer = self.answers.pop(0) if self.answers else None
        if answer is None:
            answer = self._data(node_id, partition)
        if answer is None or isinstance(answer, Hangup):
            return answer
        endpoints = []
        if answer.error_code == error_codes.NOT_LEADER_OR_FOLLOWER and self.tells_leaders:
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=self.leader[0], leader_epoch=self.leader[1]
            )
            host = self.nodes[self.leader[0]].host
            endpoints = [NodeEndpoint(node_id=self.leader[0], host=host, port=PORT)]
        topics = [FetchableTopicResponse(topic_id=topic.topic_id, partitions=[answer])]
        return FetchResponse(responses=topics, node_endpoints=endpoints)

    def _data(self, node_id: int, partition: FetchPartition) -> PartitionData | None:
        if partition.current_leader_epoch > self.leader[1]:
            return PartitionData(error_code=error_codes.UNKNOWN_LEADER_EPOCH)
        if node_id != self.leader[0] and partition.current_leader_epoch < self.leader[1]:
            return PartitionData(error_code=error_codes.NOT_LEADER_OR_FOLLOWER)
        found = [each for at, each in self._batches if at >= partition.fetch_offset]
        if not found:
            return None
        return PartitionData(
            high_watermark=self.end, last_stable_offset=self.end, records=b"".join(found)
        )
