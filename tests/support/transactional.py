"""The requests of transactional producers in short, each with its version, by KIP-890.

A peer of either kind sends them: ``peer.call(*initialize("x"))``, or the same awaited.
"""

from __future__ import annotations

from typing import Any

from support.calls import TIMESTAMP, batch, produce_request
from trionet.protocol._codec import Message
from trionet.protocol.messages.end_txn import EndTxnRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

Request = tuple[Message, int]
Identity = tuple[int, int]
"""A producer id and epoch."""


def initialize(id: str, *, timeout_ms: int = 60_000) -> Request:
    """InitProducerId of a new instance."""
    return InitProducerIdRequest(transactional_id=id, transaction_timeout_ms=timeout_ms), 5


def identity(response: Any) -> Identity:
    """The producer id and epoch in a response to InitProducerId or EndTxn, which succeeded."""
    assert 0 == response.error_code
    return response.producer_id, response.producer_epoch


def produce_in(
    id: str,
    producer: Identity,
    topic: str,
    *values: bytes,
    partition: int = 0,
    sequence: int = 0,
    timestamp: int = TIMESTAMP,
) -> Request:
    """Produce, which adds its partition to the transaction."""
    records = batch(
        *values,
        timestamp=timestamp,
        transactional=True,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
    )
    request = produce_request(topic, {partition: records})
    request.transactional_id = id
    return request, 12


def commit_in(id: str, producer: Identity, group: str, topic: str, offset: int) -> Request:
    """TxnOffsetCommit, which adds its group to the transaction."""
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])]
    request = TxnOffsetCommitRequest(
        transactional_id=id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=topics,
    )
    return request, 5


def end(id: str, producer: Identity, *, commit: bool = True) -> Request:
    """EndTxn, whose response has the identity for the next transaction."""
    request = EndTxnRequest(
        transactional_id=id, producer_id=producer[0], producer_epoch=producer[1], committed=commit
    )
    return request, 5


def code_of(response: Any) -> int:
    """The error code of a response to Produce of one partition."""
    code: int = response.responses[0].partition_responses[0].error_code
    return code
