"""Batches as a Produce request to one node, and the answer as the outcome of each batch.

Pure. Since version 13 a request names topics by their ids, and so do answers to it; it is used only
where all ids are known (KIP-516).
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from ....errors import RequestTimedOutError, TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol._header import JOINED_BYTES_MAX
from ....protocol._wire import NO_UUID, Records, new
from ....protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ...metadata._cluster import NO_LEADER, Cluster
from ...requests._record_chunks import RecordPieces
from ...requests._response import ClientResponse

if TYPE_CHECKING:
    from ..batching._batch import ProducerBatch

#: The last version that names topics.
LAST_WITH_NAMES: Final = 12
UNKNOWN: Final = -1


class Outcome:
    """What an answer, or the lack of one, says of one batch.

    Args:
        error_code: 0 if the batch was written.
        message: what the broker says of the error, or how the connection ended.
        base_offset: the offset of the first record; -1 where it is not known.
        log_append_time_ms: -1 unless the topic's timestamps are those of the append.
        log_start_offset: the first offset that is still there; -1 where it is not known.
        record_errors: what was wrong with single records (KIP-467).
        error: how the connection ended, where there was no answer.
        leader: the new leader's node id; -1 where the answer does not tell (KIP-951).
        leader_epoch: the new leader's epoch.
    """

    def __init__(
        self,
        error_code: int = 0,
        message: str | None = None,
        *,
        base_offset: int = UNKNOWN,
        log_append_time_ms: int = UNKNOWN,
        log_start_offset: int = UNKNOWN,
        record_errors: Sequence[BatchIndexAndErrorMessage] = (),
        error: TrionetError | None = None,
        leader: int = NO_LEADER,
        leader_epoch: int = UNKNOWN,
    ) -> None:
        self.error_code = error_code
        self.message = message
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error = error
        self.leader = leader
        self.leader_epoch = leader_epoch


WRITTEN: Final = Outcome()


def produce_request(
    batches: Sequence[ProducerBatch], cluster: Cluster, *, acks: int, timeout_ms: int
) -> tuple[ProduceRequest, int | None]:
    """A request of several batches, each of another partition.

    Returns:
        The request, and the newest version that can carry it; None for all.
    """
    topics: dict[str, TopicProduceData] = {}
    version_max = None
    for batch in batches:
        name, partition = batch.topic_partition
        topic = topics.get(name)
        if topic is None:
            known = cluster.topics.get(name)
            topic_id = NO_UUID if known is None else known.id
            if topic_id == NO_UUID:
                version_max = LAST_WITH_NAMES
            topic = topics[name] = _topic(name, topic_id)
        topic.partition_data.append(_partition(partition, _records(batch)))
    # Assigned, here and below: constructors take arguments by name, which takes longer than all
    # else that is done for a small request.
    request = new(ProduceRequest)
    request.transactional_id = None
    request.acks = acks
    request.timeout_ms = timeout_ms
    request.topic_data = list(topics.values())
    request.unknown_tags = ()
    return request, version_max


def _topic(name: str, topic_id: bytes) -> TopicProduceData:
    topic = new(TopicProduceData)
    topic.name = name
    topic.topic_id = topic_id
    topic.partition_data = []
    topic.unknown_tags = ()
    return topic


def _partition(index: int, records: Records) -> PartitionProduceData:
    partition = new(PartitionProduceData)
    partition.index = index
    partition.records = records
    partition.unknown_tags = ()
    return partition


def _records(batch: ProducerBatch) -> Records:
    chunks = batch.chunks()
    if batch.size <= JOINED_BYTES_MAX:
        return b"".join(chunks)  # the frame is one piece in any case
    # The codec looks at nothing but the length.
    return cast(Records, RecordPieces(chunks))


def outcomes(
    response: ClientResponse, batches: Sequence[ProducerBatch]
) -> list[tuple[ProducerBatch, Outcome]]:
    """What became of the batches of a request, each once, in their order."""
    body: ProduceResponse | None = response.body
    if response.error is not None:
        outcome = _without_answer(response.error)
        return [(batch, outcome) for batch in batches]
    if body is None:  # acks=0
        return [(batch, WRITTEN) for batch in batches]
    found = _by_partition(response.request, body)
    return [(batch, _outcome(found.get(batch.topic_partition))) for batch in batches]


def _without_answer(error: TrionetError) -> Outcome:
    if isinstance(error, RequestTimedOutError):
        code = error_codes.REQUEST_TIMED_OUT
    elif isinstance(error, UnsupportedVersionError):
        code = error_codes.UNSUPPORTED_VERSION
    else:
        code = error_codes.NETWORK_EXCEPTION
    return Outcome(error_code=code, message=str(error), error=error)


def _by_partition(
    request: ProduceRequest, body: ProduceResponse
) -> dict[tuple[str, int], PartitionProduceResponse]:
    names = {each.topic_id: each.name for each in request.topic_data}
    return {
        (topic.name or names.get(topic.topic_id, ""), each.index): each
        for topic in body.responses
        for each in topic.partition_responses
    }


def _outcome(answer: PartitionProduceResponse | None) -> Outcome:
    if answer is None:
        # Nobody knows whether it was written, as after a lost connection.
        return Outcome(
            error_code=error_codes.NETWORK_EXCEPTION, message="the answer does not speak of it"
        )
    leader = answer.current_leader
    return Outcome(
        error_code=answer.error_code,
        message=answer.error_message,
        base_offset=answer.base_offset,
        log_append_time_ms=answer.log_append_time_ms,
        log_start_offset=answer.log_start_offset,
        record_errors=answer.record_errors,
        leader=NO_LEADER if leader is None else leader.leader_id,
        leader_epoch=UNKNOWN if leader is None else leader.leader_epoch,
    )
