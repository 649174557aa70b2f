"""A cluster with the coordinator of one transactional id, on a network in memory.

The coordinator keeps to the rules of Kafka's TransactionCoordinator for both protocols; markers are
written at once, unless a test lets the end of a transaction take time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from support.scripted_leaders import Batch, Leaders, refused
from support.scripted_node import PORT, Hangup, ScriptedNode, Seen
from trionet.client._topic_partition import TopicPartition
from trionet.protocol import error_codes
from trionet.protocol._wire import Message
from trionet.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from trionet.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from trionet.protocol.messages.end_txn import EndTxnResponse
from trionet.protocol.messages.find_coordinator import Coordinator as Found
from trionet.protocol.messages.find_coordinator import FindCoordinatorResponse
from trionet.protocol.messages.init_producer_id import InitProducerIdResponse
from trionet.protocol.messages.produce import PartitionProduceResponse
from trionet.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from trionet.testing import MemoryNetwork

EMPTY, ONGOING, COMMITTED, ABORTED = "Empty", "Ongoing", "CompleteCommit", "CompleteAbort"
NONE = error_codes.NONE

Fault = Callable[[Seen, Callable[[Seen], Message]], "Message | Hangup | None"]
"""What becomes of a request, and of the response that the function it gets would return."""

#: Every request of a transactional producer besides Produce.
REQUESTS = (
    "FindCoordinator",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
)


def lose_request(_: Seen, __: Callable[[Seen], Message]) -> Hangup:
    return Hangup()


def lose_response(seen: Seen, reply: Callable[[Seen], Message]) -> Hangup:
    reply(seen)
    return Hangup()


class CoordinatedLeaders(Leaders):
    """Leaders, and the coordinator of one transactional id, on the last node.

    Args:
        network: where it is.
        level: of the feature ``transaction.version``.
        nodes: how many there are.
        topics: names, each with how many partitions it has.

    Attributes:
        level: see the argument; with a new connection, clients learn of another one.
        faults: what becomes of the next requests, by API; what is beyond gets its response.
        unfinished: how many requests still find the last transaction unfinished.
        state: of the transactional id.
        epoch: of the producer.
        committed: the values that readers of committed records see, by partition.
        offsets: the committed offsets, by group and partition.
        coordinator: the node id of the coordinator.
        requests: the APIs of the requests to the coordinator that were carried out, in order.
    """

    def __init__(
        self,
        network: MemoryNetwork,
        level: int = 2,
        nodes: int = 1,
        topics: dict[str, int] | None = None,
    ) -> None:
        super().__init__(network, nodes, topics)
        self.level = level
        self.faults: dict[str, list[Fault]] = {}
        self.unfinished = 0
        self.state = EMPTY
        self.epoch = -1
        self.last_epoch = -1
        self.committed: dict[tuple[str, int], list[bytes | None]] = {}
        self.offsets: dict[tuple[str, TopicPartition], int] = {}
        self.coordinator = nodes
        self.requests: list[str] = []
        self._features_epoch = 0
        self._is_v2 = False
        self._added: set[tuple[str, int]] = set()
        self._groups: set[str] = set()
        self._open: list[tuple[tuple[str, int], list[bytes | None]]] = []
        self._pending: dict[tuple[str, TopicPartition], int] = {}
        replies: dict[str, Callable[[Seen], Message]] = {
            "FindCoordinator": self._find,
            "InitProducerId": self._initialize,
            "AddPartitionsToTxn": self._add_partitions,
            "AddOffsetsToTxn": self._add_offsets,
            "TxnOffsetCommit": self._commit_offsets,
            "EndTxn": self._end,
        }
        for node in self.nodes.values():
            node.replies["ApiVersions"] = partial(self._versions, node)
            for name, reply in replies.items():
                node.replies[name] = self._faulty(node.node_id, name, reply)

    def finalize(self, level: int) -> None:
        """Another level of the feature, of which clients learn with their next connection."""
        self.level = level
        self._features_epoch += 1

    def values_committed(self) -> list[bytes | None]:
        """What a reader of committed records sees of the first partition of topic t."""
        return self.committed.get(("t", 0), [])

    def time_out(self) -> None:
        """What the coordinator does with a transaction that is open for too long."""
        assert self.state == ONGOING
        self.last_epoch = self.epoch if self.level >= 2 else -1
        self.epoch += 1
        self._close(commits=False)

    def replace_producer(self) -> None:
        """What InitProducerId of a newer producer does to an open transaction, and after it."""
        self.time_out()
        self.epoch, self.last_epoch, self.state = self.epoch + 1, -1, EMPTY

    def _versions(self, node: ScriptedNode, _: Seen) -> ApiVersionsResponse:
        response = node.api_versions()
        response.finalized_features_epoch = self._features_epoch
        response.finalized_features = [
            FinalizedFeatureKey(
                name="transaction.version",
                max_version_level=self.level,
                min_version_level=self.level,
            )
        ]
        return response

    def _faulty(self, node_id: int, name: str, reply: Callable[[Seen], Message]) -> Any:
        def carry_out(seen: Seen) -> Message:
            self.requests.append(name)
            if name != "FindCoordinator" and node_id != self.coordinator:
                return refusal_of(seen, error_codes.NOT_COORDINATOR)
            return reply(seen)

        def answer(seen: Seen) -> Any:
            faults = self.faults.get(name)
            return faults.pop(0)(seen, carry_out) if faults else carry_out(seen)

        return answer

    # The coordinator.

    def _find(self, seen: Seen) -> FindCoordinatorResponse:
        node = self.nodes[self.coordinator]
        if seen.version < 4:
            return FindCoordinatorResponse(node_id=node.node_id, host=node.host, port=PORT)
        keys = seen.body.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=[
                Found(key=key, node_id=node.node_id, host=node.host, port=PORT) for key in keys
            ]
        )

    def _is_unfinished(self) -> bool:
        self.unfinished -= 1
        return self.unfinished >= 0

    def _initialize(self, seen: Seen) -> InitProducerIdResponse:
        code, body = NONE, seen.body
        if self._is_unfinished():
            code = error_codes.CONCURRENT_TRANSACTIONS
        elif body.producer_id not in {-1, self.id}:
            code = error_codes.PRODUCER_FENCED
        elif self.state == ONGOING:
            self.time_out()
            code = error_codes.CONCURRENT_TRANSACTIONS
        elif body.producer_epoch == -1:
            self.epoch, self.last_epoch, self.state = self.epoch + 1, -1, EMPTY
        elif body.producer_epoch == self.epoch:
            self.epoch, self.last_epoch, self.state = self.epoch + 1, self.epoch, EMPTY
        elif body.producer_epoch != self.last_epoch:
            code = error_codes.PRODUCER_FENCED
        if code:
            return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
        return InitProducerIdResponse(producer_id=self.id, producer_epoch=self.epoch)

    def _addition(self, producer_id: int, epoch: int) -> int:
        """The error of adding something to the transaction, which begins it."""
        if self._is_unfinished():
            return error_codes.CONCURRENT_TRANSACTIONS
        if producer_id != self.id:
            return error_codes.INVALID_PRODUCER_ID_MAPPING
        if epoch != self.epoch:
            return error_codes.PRODUCER_FENCED
        self.state = ONGOING
        return NONE

    def _add_partitions(self, seen: Seen) -> AddPartitionsToTxnResponse:
        body = seen.body
        assert seen.version <= 3
        code = self._addition(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
        places = [
            (topic.name, each) for topic in body.v3_and_below_topics for each in topic.partitions
        ]
        if not code:
            self._added.update(places)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=each, partition_error_code=code
                        )
                    ],
                )
                for topic, each in places
            ]
        )

    def _add_offsets(self, seen: Seen) -> AddOffsetsToTxnResponse:
        code = self._addition(seen.body.producer_id, seen.body.producer_epoch)
        if not code:
            self._groups.add(seen.body.group_id)
        return AddOffsetsToTxnResponse(error_code=code)

    def _commit_offsets(self, seen: Seen) -> TxnOffsetCommitResponse:
        body = seen.body
        code = NONE
        if seen.version >= 5:
            code = self._addition(body.producer_id, body.producer_epoch)
            if code == error_codes.PRODUCER_FENCED:
                code = error_codes.INVALID_PRODUCER_EPOCH
        elif body.group_id not in self._groups:
            code = error_codes.TRANSACTION_ABORTABLE
        topics = []
        for topic in body.topics:
            for each in topic.partitions:
                if not code:
                    place = TopicPartition(topic.name, each.partition_index)
                    self._pending[body.group_id, place] = each.committed_offset
            topics.append(
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
            )
        return TxnOffsetCommitResponse(topics=topics)

    def _end(self, seen: Seen) -> EndTxnResponse:
        body, is_v2 = seen.body, seen.version >= 5
        done = COMMITTED if body.committed else ABORTED
        is_retry = is_v2 and body.producer_epoch == self.epoch - 1
        if self._is_unfinished():
            return EndTxnResponse(error_code=error_codes.CONCURRENT_TRANSACTIONS)
        if body.producer_id != self.id:
            return EndTxnResponse(error_code=error_codes.INVALID_PRODUCER_ID_MAPPING)
        if body.producer_epoch != self.epoch and not is_retry:
            return EndTxnResponse(error_code=error_codes.PRODUCER_FENCED)
        if is_retry and self.state in {EMPTY, ONGOING}:
            return EndTxnResponse(error_code=error_codes.PRODUCER_FENCED)
        if is_retry or (not is_v2 and self.state != ONGOING):
            if self.state != done:
                return EndTxnResponse(error_code=error_codes.INVALID_TXN_STATE)
            return self._ended(is_v2=is_v2)
        if self.state != ONGOING and body.committed:
            return EndTxnResponse(error_code=error_codes.INVALID_TXN_STATE)
        if is_v2:
            self.epoch, self.last_epoch = self.epoch + 1, self.epoch
        self._close(commits=body.committed)
        return self._ended(is_v2=is_v2)

    def _ended(self, *, is_v2: bool) -> EndTxnResponse:
        if not is_v2:
            return EndTxnResponse()
        return EndTxnResponse(producer_id=self.id, producer_epoch=self.epoch)

    def _close(self, *, commits: bool) -> None:
        self.state = COMMITTED if commits else ABORTED
        if commits:
            for place, values in self._open:
                self.committed.setdefault(place, []).extend(values)
            self.offsets.update(self._pending)
        self._open.clear()
        self._pending.clear()
        self._added.clear()
        self._groups.clear()

    # Leaders.

    def replier(self, node_id: int) -> Callable[[Seen], Any]:
        """How a node responds to Produce, by whose version leaders know the protocol."""
        reply = super().replier(node_id)

        def note_version(seen: Seen) -> Any:
            self._is_v2 = seen.version >= 12
            return reply(seen)

        return note_version

    def write(self, batch: Batch) -> PartitionProduceResponse:
        """Write a batch as a part of the transaction, to which TV2 adds its partition."""
        if batch.epoch < self.epoch:
            return refused(batch, error_codes.INVALID_PRODUCER_EPOCH)
        if not self._is_v2 and batch.partition not in self._added:
            return refused(batch, error_codes.INVALID_TXN_STATE)
        if self.state != ONGOING and self._is_unfinished():
            return refused(batch, error_codes.CONCURRENT_TRANSACTIONS)
        size = len(self.log.get(batch.partition, []))
        response = super().write(batch)
        if not response.error_code:
            self.state = ONGOING
            if len(self.log[batch.partition]) > size:
                self._open.append((batch.partition, batch.values))
        return response


def refusal_of(seen: Seen, code: int) -> Message:
    """A response with an error, to a request of a transactional producer."""
    if seen.name == "InitProducerId":
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    if seen.name == "AddOffsetsToTxn":
        return AddOffsetsToTxnResponse(error_code=code)
    if seen.name == "EndTxn":
        return EndTxnResponse(error_code=code)
    if seen.name == "AddPartitionsToTxn":
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=each, partition_error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in seen.body.v3_and_below_topics
            ]
        )
    if seen.name == "TxnOffsetCommit":
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in seen.body.topics
            ]
        )
    keys = seen.body.coordinator_keys
    return FindCoordinatorResponse(
        error_code=code, coordinators=[Found(key=key, error_code=code) for key in keys]
    )


def refuse(code: int) -> Fault:
    """The fault of a request that is rejected with an error code."""
    return lambda seen, _: refusal_of(seen, code)
