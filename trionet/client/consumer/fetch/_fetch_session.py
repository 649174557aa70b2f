"""A consumer's fetch session with one node: what the node remembers, only changes are sent of.

(KIP-227, topic ids KIP-516; Kafka: FetchSessionHandler.) Pure: it makes requests, and looks at
what comes back. The next request may be made only when the one before was answered, or has failed.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

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

logger = logging.getLogger("trionet.client.consumer")

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1

#: The newest version that names topics; later ones have ids alone.
LAST_VERSION_WITH_NAMES: Final = 12


class WantedPartition(NamedTuple):
    """What is to be fetched of one partition.

    Attributes:
        topic_id: the topic's id; zeros where it is not known.
        offset: the first to send.
        bytes_max: of this partition in one answer.
        leader_epoch: of the leader as it is known here; -1 skips its check.
    """

    topic_id: bytes
    offset: int
    bytes_max: int
    leader_epoch: int


Wanted = Mapping[TopicPartition, WantedPartition]


class FetchSession:
    """The session with one node.

    Args:
        node_id: the node's id.

    Attributes:
        partitions: what the last request asked for in all, whether it had to say so or not.
        uses_topic_ids: whether that request named topics by their ids.
    """

    def __init__(self, node_id: int) -> None:
        self.partitions: dict[TopicPartition, WantedPartition] = {}
        self.uses_topic_ids = False
        self._node_id = node_id
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._names: dict[bytes, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether the node remembers anything of it, as far as is known here."""
        return self._id != NO_SESSION

    @property
    def is_beginning(self) -> bool:
        """Whether the last request, if it was not answered yet, was to begin a session."""
        return self._epoch == FIRST_EPOCH

    # Requests.

    def fill(self, request: FetchRequest, wanted: Wanted) -> None:
        """Say in a request what is wanted: everything, or what has changed since the last one.

        Args:
            request: its session, topics and forgotten topics are set.
            wanted: everything that is to be fetched, in the order to be served in.
        """
        uses_topic_ids = all(each.topic_id != NO_UUID for each in wanted.values())
        if uses_topic_ids != self.uses_topic_ids and self._epoch != FIRST_EPOCH:
            self._epoch = FIRST_EPOCH  # a session speaks of topics in one way, or begins anew
        self.uses_topic_ids = uses_topic_ids
        request.session_id, request.session_epoch = self._id, self._epoch
        if self._epoch == FIRST_EPOCH:
            changed: Wanted = wanted
        else:
            changed = {each: value for each, value in wanted.items() if self._is_new(each, value)}
            request.forgotten_topics_data = self._forgotten(wanted)
        request.topics = _topics(changed)
        self.partitions = dict(wanted)
        self._names = {each.topic_id: partition.topic for partition, each in wanted.items()}

    def closing(self, request: FetchRequest) -> None:
        """Have the node forget the session (KIP-227)."""
        request.session_id, request.session_epoch = self._id, FINAL_EPOCH
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        self.partitions = {}

    def _is_new(self, partition: TopicPartition, value: WantedPartition) -> bool:
        return self.partitions.get(partition) != value

    def _forgotten(self, wanted: Wanted) -> list[ForgottenTopic]:
        """What is not wanted any more; topics that were made anew have another id."""
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

    # Answers.

    def answered(self, response: FetchResponse) -> dict[TopicPartition, PartitionData] | None:
        """What the answer to the last request says of each partition; None if nothing of use."""
        if response.error_code:
            self._refused(response.error_code)
            return None
        found = self._named(response)
        was_full = self._epoch == FIRST_EPOCH
        if found is None or not self._fits(found, was_full):
            logger.warning("node %d answered about others than it was asked for", self._node_id)
            self.failed()
            return None
        if response.session_id == NO_SESSION:
            self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self._id = response.session_id
            self._epoch = 1 if was_full or self._epoch == _EPOCH_MAX else self._epoch + 1
        return found

    def failed(self) -> None:
        """Nobody knows what became of the last request: begin anew, and end what may be there."""
        self._epoch = FIRST_EPOCH

    def _fits(self, found: dict[TopicPartition, PartitionData], was_full: bool) -> bool:
        """An answer to a full fetch is about all, one to an incremental may leave out any."""
        if was_full:
            return found.keys() == self.partitions.keys()
        return found.keys() <= self.partitions.keys()

    def _refused(self, error_code: int) -> None:
        name = error_codes.name_of(error_code)
        logger.info("node %d refused a fetch of session %d: %s", self._node_id, self._id, name)
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


def _topics(wanted: Wanted) -> list[FetchTopic]:
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
