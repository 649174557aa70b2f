"""Building Produce requests from batches, and matching the responses to the batches.

Since version 13, requests and responses identify topics by id. These versions are used only
if the ids of all topics are known (KIP-516).
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
from ...network._cluster import NO_LEADER, Cluster
from ...network._in_flight import RecordChunks
from ...network._responses import ClientResponse

if TYPE_CHECKING:
    from ..batching._batch import ProducerBatch

#: The last version that identifies topics by name.
LAST_WITH_NAMES: Final = 12
#: The last version with which a leader does not add partitions to transactions (KIP-890).
LAST_OF_TV1: Final = 11
#: The first version that carries a transactional id (KIP-98).
FIRST_WITH_TRANSACTIONS: Final = 3
UNKNOWN: Final = -1


class PartitionResponse:
    """The response to one batch, or the reason for its absence (Kafka: PartitionResponse).

    Args:
        error_code: 0 if the batch was written.
        message: the broker's error message, or the reason why there was no response.
        base_offset: the offset of the first record; -1 if it is not known.
        log_append_time_ms: the timestamp of the records; -1 unless the topic uses
            ``LogAppendTime``.
        log_start_offset: the first offset of the log; -1 if it is not known.
        record_errors: the errors of individually rejected records (KIP-467).
        error: the error of the request, if there was no response.
        leader: the node id of the new leader; -1 if the response does not name it (KIP-951).
        leader_epoch: the epoch of the new leader.
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


WRITTEN: Final = PartitionResponse()


def produce_request(
    batches: Sequence[ProducerBatch],
    cluster: Cluster,
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> tuple[ProduceRequest, int | None]:
    """Return a request for several batches, each for a different partition.

    Args:
        batches: the batches.
        cluster: provides the topic ids.
        acks: which replicas must acknowledge the records.
        timeout_ms: how long the leader may wait for them.
        transactional_id: the transactional id if the batches belong to a transaction.

    Returns:
        The request, and the highest version that can encode it; None for no limit.
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
    # Fields are assigned, here and below, because the keyword arguments of the constructors would
    # take longer than all other work for a small request.
    request = new(ProduceRequest)
    request.transactional_id = transactional_id
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
        return b"".join(chunks)  # a frame of this size is joined in any case
    # The codec uses nothing but the length.
    return cast(Records, RecordChunks(chunks))


def partition_responses(
    response: ClientResponse, batches: Sequence[ProducerBatch]
) -> list[tuple[ProducerBatch, PartitionResponse]]:
    """Return each batch of a request with its response, in the order of the batches."""
    body: ProduceResponse | None = response.body
    if response.error is not None:
        failure = _without_response(response.error)
        return [(batch, failure) for batch in batches]
    if body is None:  # acks=0
        return [(batch, WRITTEN) for batch in batches]
    found = _by_partition(response.request, body)
    return [(batch, _partition_response(found.get(batch.topic_partition))) for batch in batches]


def _without_response(error: TrionetError) -> PartitionResponse:
    if isinstance(error, RequestTimedOutError):
        code = error_codes.REQUEST_TIMED_OUT
    elif isinstance(error, UnsupportedVersionError):
        code = error_codes.UNSUPPORTED_VERSION
    else:
        code = error_codes.NETWORK_EXCEPTION
    return PartitionResponse(error_code=code, message=str(error), error=error)


def _by_partition(
    request: ProduceRequest, body: ProduceResponse
) -> dict[tuple[str, int], PartitionProduceResponse]:
    names = {each.topic_id: each.name for each in request.topic_data}
    return {
        (topic.name or names.get(topic.topic_id, ""), each.index): each
        for topic in body.responses
        for each in topic.partition_responses
    }


def _partition_response(response: PartitionProduceResponse | None) -> PartitionResponse:
    if response is None:
        # It is not known whether the batch was written, as after a lost connection.
        return PartitionResponse(
            error_code=error_codes.NETWORK_EXCEPTION,
            message="the response does not include this partition",
        )
    leader = response.current_leader
    return PartitionResponse(
        error_code=response.error_code,
        message=response.error_message,
        base_offset=response.base_offset,
        log_append_time_ms=response.log_append_time_ms,
        log_start_offset=response.log_start_offset,
        record_errors=response.record_errors,
        leader=NO_LEADER if leader is None else leader.leader_id,
        leader_epoch=UNKNOWN if leader is None else leader.leader_epoch,
    )
