"""Incremental fetch sessions, in which requests contain only the partitions that have changed.

(KIP-227; topic ids: KIP-516; Kafka: FetchSessionHandler.) The next request of a session may be
built only after the preceding request has succeeded or failed.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...._util._logging import get_logger
from ....protocol import error_codes
from ....protocol._wire import NO_UUID
from ....protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ..._topic_partition import TopicPartition

logger = get_logger("trionet.client.consumer")

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1

#: The newest version with topic names; later versions have only ids.
LAST_VERSION_WITH_NAMES: Final = 12


class RequestedPartition(NamedTuple):
    """The parameters of one partition in a fetch request (Kafka: FetchRequest.PartitionData).

    Attributes:
        topic_id: the id of the topic; all zeros if it is unknown.
        offset: the first offset to fetch.
        bytes_max: the size limit for this partition in a response.
        leader_epoch: the leader epoch in the client's metadata, which the node checks; -1 to skip
            the check.
    """

    topic_id: bytes
    offset: int
    bytes_max: int
    leader_epoch: int


RequestedPartitions = Mapping[TopicPartition, RequestedPartition]


class FetchSession:
    """A fetch session with one node.

    Args:
        node_id: the id of the node.

    Attributes:
        partitions: all partitions of the session, including unchanged partitions, which the last
            request omitted.
        uses_topic_ids: whether the last request named topics by their ids.
    """

    def __init__(self, node_id: int) -> None:
        self.partitions: dict[TopicPartition, RequestedPartition] = {}
        self.uses_topic_ids = False
        self._node_id = node_id
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._names: dict[bytes, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether the node has opened a session, as far as this client knows."""
        return self._id != NO_SESSION

    @property
    def is_beginning(self) -> bool:
        """Whether the request in flight, or else the next one, is full and so begins a session."""
        return self._epoch == FIRST_EPOCH

    # Requests.

    def fill(self, request: FetchRequest, wanted: RequestedPartitions) -> None:
        """Fill in a request: all partitions, or the changes since the last request.

        Args:
            request: the request, whose session, topics and forgotten topics are set.
            wanted: all partitions to fetch, in the order in which the node should serve them.
        """
        uses_topic_ids = all(each.topic_id != NO_UUID for each in wanted.values())
        if uses_topic_ids != self.uses_topic_ids and self._epoch != FIRST_EPOCH:
            self._epoch = FIRST_EPOCH  # a session uses either names or ids
        self.uses_topic_ids = uses_topic_ids
        request.session_id, request.session_epoch = self._id, self._epoch
        if self._epoch == FIRST_EPOCH:
            changed: RequestedPartitions = wanted
        else:
            changed = {each: value for each, value in wanted.items() if self._is_new(each, value)}
            request.forgotten_topics_data = self._forgotten(wanted)
        request.topics = _topics(changed)
        self.partitions = dict(wanted)
        self._names = {each.topic_id: partition.topic for partition, each in wanted.items()}

    def closing(self, request: FetchRequest) -> None:
        """Fill in a request that closes the session (KIP-227)."""
        request.session_id, request.session_epoch = self._id, FINAL_EPOCH
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        self.partitions = {}

    def _is_new(self, partition: TopicPartition, value: RequestedPartition) -> bool:
        return self.partitions.get(partition) != value

    def _forgotten(self, wanted: RequestedPartitions) -> list[ForgottenTopic]:
        """Return the partitions to forget, including those of re-created topics."""
        found: dict[tuple[str, bytes], list[int]] = {}
        for partition, before in self.partitions.items():
            now = wanted.get(partition)
            if now is None or (self.uses_topic_ids and now.topic_id != before.topic_id):
                topic = partition.topic, before.topic_id
                found.setdefault(topic, []).append(partition.partition)
        return [
            ForgottenTopic(topic=name, topic_id=id, partitions=numbers)
            for (name, id), numbers in found.items()
        ]

    # Responses.

    def handle_response(
        self, response: FetchResponse
    ) -> dict[TopicPartition, PartitionData] | None:
        """Return the data of each partition in a response; None if the response is unusable."""
        if response.error_code:
            self._handle_error(response.error_code)
            return None
        if response.throttle_time_ms and not response.responses and self.is_beginning:
            return {}  # a throttled client gets a response at once, which is empty (KIP-219)
        found = self._named(response)
        was_full = self._epoch == FIRST_EPOCH
        if found is None or not self._fits(found, was_full):
            logger.warning(
                "node %d responded with partitions other than those requested", self._node_id
            )
            self.begin_anew()
            return None
        if response.session_id == NO_SESSION:
            self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self._id = response.session_id
            self._epoch = 1 if was_full or self._epoch == _EPOCH_MAX else self._epoch + 1
        return found

    def begin_anew(self) -> None:
        """Begin a new session: the node may not have received the last request, for example."""
        self._epoch = FIRST_EPOCH

    def _fits(self, found: dict[TopicPartition, PartitionData], was_full: bool) -> bool:
        """Whether a response has all requested partitions, or a subset if it is incremental."""
        if was_full:
            return found.keys() == self.partitions.keys()
        return found.keys() <= self.partitions.keys()

    def _handle_error(self, error_code: int) -> None:
        name = error_codes.name_of(error_code)
        logger.info("node %d rejected a fetch of session %d: %s", self._node_id, self._id, name)
        if error_code == error_codes.FETCH_SESSION_ID_NOT_FOUND:
            self._id = NO_SESSION
        self._epoch = FIRST_EPOCH

    def _named(self, response: FetchResponse) -> dict[TopicPartition, PartitionData] | None:
        found: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id)
            if name is None:
                return None
            for each in topic.partitions:
                found[TopicPartition(name, each.partition_index)] = each
        return found


def _topics(wanted: RequestedPartitions) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (name, number), each in wanted.items():
        if name not in topics:
            topics[name] = FetchTopic(topic=name, topic_id=each.topic_id)
        topics[name].partitions.append(
            FetchPartition(
                partition=number,
                current_leader_epoch=each.leader_epoch,
                fetch_offset=each.offset,
                partition_max_bytes=each.bytes_max,
            )
        )
    return list(topics.values())
