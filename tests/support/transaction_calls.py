"""The requests of transactional producers in any version, in short, and what they result in."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from support.calls import batch, produce_request
from support.client import Client
from trionet.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from trionet.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from trionet.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from trionet.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

Identity = tuple[int, int]
"""A producer id and epoch."""

NONE: Identity = (-1, -1)


async def ask_identity(
    client: Client, id: str = "x", expected: Identity = NONE, *, version: int = 5, **fields: Any
) -> InitProducerIdResponse:
    fields = {"transaction_timeout_ms": 60_000, **fields}
    request = InitProducerIdRequest(
        transactional_id=id, producer_id=expected[0], producer_epoch=expected[1], **fields
    )
    response = await client.call(request, version)
    assert isinstance(response, InitProducerIdResponse)
    return response


async def identity(client: Client, id: str = "x", **more: Any) -> Identity:
    """The identity of a new instance of a producer."""
    response = await ask_identity(client, id, **more)
    assert 0 == response.error_code
    return response.producer_id, response.producer_epoch


def _topics(topics: Mapping[str, Iterable[int]]) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=name, partitions=list(numbers))
        for name, numbers in topics.items()
    ]


async def add(
    client: Client,
    producer: Identity,
    topics: Mapping[str, Iterable[int]],
    *,
    id: str = "x",
    version: int = 3,
) -> dict[tuple[str, int], int]:
    """The error codes of AddPartitionsToTxn as a client sends it."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=_topics(topics),
    )
    response: Any = await client.call(request, version)
    return _codes(response.results_by_topic_v3_and_below)


def _codes(topics: Iterable[Any]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.partition_error_code
        for topic in topics
        for each in topic.results_by_partition
    }


def transaction(
    id: str,
    producer: Identity,
    topics: Mapping[str, Iterable[int]],
    *,
    verify_only: bool = False,
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=_topics(topics),
    )


async def add_batched(
    client: Client, *transactions: AddPartitionsToTxnTransaction, version: int = 5
) -> dict[str, dict[tuple[str, int], int]]:
    """The error codes of AddPartitionsToTxn as Kafka's brokers send it, by transactional id."""
    request = AddPartitionsToTxnRequest(transactions=list(transactions))
    response: Any = await client.call(request, version)
    assert 0 == response.error_code
    return {
        each.transactional_id: _codes(each.topic_results)
        for each in response.results_by_transaction
    }


async def add_offsets(
    client: Client, producer: Identity, group: str, *, id: str = "x", version: int = 4
) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=id, producer_id=producer[0], producer_epoch=producer[1], group_id=group
    )
    code: int = (await client.call(request, version)).error_code
    return code


async def produce_in(
    client: Client,
    producer: Identity,
    value: bytes,
    *,
    id: str | None = "x",
    topic: str | bytes = "t",
    partition: int = 0,
    sequence: int = 0,
    version: int = 12,
) -> int:
    """The error code of Produce of one record in a transaction."""
    records = batch(
        value,
        timestamp=round(time.time() * 1000),  # with an old one, the marker would roll the log
        transactional=True,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
    )
    request = produce_request(topic, {partition: records})
    request.transactional_id = id
    response: Any = await client.call(request, version)
    code: int = response.responses[0].partition_responses[0].error_code
    return code


async def commit_in(
    client: Client,
    producer: Identity,
    offsets: Mapping[str, Mapping[int, int]],
    *,
    id: str = "x",
    group: str = "g",
    metadata: str | None = "",
    version: int = 5,
    **member: Any,
) -> dict[tuple[str, int], int]:
    """The error codes of TxnOffsetCommit."""
    request = TxnOffsetCommitRequest(
        transactional_id=id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offset,
                        committed_metadata=metadata,
                    )
                    for number, offset in numbers.items()
                ],
            )
            for name, numbers in offsets.items()
        ],
        **member,
    )
    response: Any = await client.call(request, version)
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


async def end(
    client: Client,
    producer: Identity,
    *,
    commit: bool = True,
    id: str = "x",
    version: int = 5,
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
    response = await client.call(request, version)
    assert isinstance(response, EndTxnResponse)
    return response
