"""A bit that is flipped on the way: where it is, and that whoever gets the records finds it.

Requests of very many elements: served in steps elsewhere, and in one piece by the test kit.
"""

from __future__ import annotations

from typing import Any

import pytest

import trionet
from support.calls import batch, bytes_of, fetch_request, produce_request
from support.faulty import produce
from trionet import CorruptRecordError, TopicPartition, open_consumer
from trionet.broker.api._response_errors import errors_in
from trionet.protocol import error_codes
from trionet.protocol._codec import Message
from trionet.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.protocol.records._batch import check_crc, iter_batches
from trionet.testing import BlockingRawPeer, ThreadedBroker, control, raw_peer
from trionet.testing.faults._fault_actions import with_flipped_bit


def bits_in_which_they_differ(one: bytes, other: bytes) -> int:
    assert len(one) == len(other)
    return sum((a ^ b).bit_count() for a, b in zip(one, other, strict=True))


def test_one_bit_of_the_first_batch_is_flipped_and_its_checksum_is_wrong() -> None:
    first, second = batch(b"a", b"b"), batch(b"c")

    flipped = with_flipped_bit(first + second)

    assert 1 == bits_in_which_they_differ(first + second, flipped)
    assert [False, True] == [
        check_crc(flipped, position, header) for position, header in iter_batches(flipped)
    ]


def test_what_is_no_batch_stays_as_it_is_and_one_that_is_cut_short_keeps_its_length() -> None:
    cut = batch(b"a" * 100)[:50]

    assert [b"", b"x" * 12] == [with_flipped_bit(b""), with_flipped_bit(b"x" * 12)]
    assert 1 == bits_in_which_they_differ(cut, with_flipped_bit(cut))


@pytest.mark.parametrize("apis", ["Produce", None])
def test_a_broker_refuses_records_with_a_flipped_bit(
    broker: ThreadedBroker, peer: BlockingRawPeer, apis: Any
) -> None:
    fault = broker.faults.corrupt(apis)

    codes = [produce(peer), produce(peer)]

    assert [error_codes.CORRUPT_MESSAGE, error_codes.NONE] == codes
    assert [b"a"] == broker.values("t")
    assert [("CORRUPT_MESSAGE",)] == [request.errors for request in fault.requests]


def test_only_the_partition_that_is_meant_has_a_flipped_bit(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    broker.faults.corrupt("Produce", topic="t", partition=1)

    answer = peer.call(produce_request("t", {0: batch(b"a"), 1: batch(b"b")}), 12)

    codes = {each.index: each.error_code for each in answer.responses[0].partition_responses}
    assert {0: error_codes.NONE, 1: error_codes.CORRUPT_MESSAGE} == codes
    assert [b"a"] == broker.values("t")


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_fetch_response_has_a_flipped_bit_once(
    broker: ThreadedBroker, peer: BlockingRawPeer, size: int
) -> None:
    """Few records are in the response; many stay in the file until it leaves."""
    produce(peer, value=b"." * size)
    broker.faults.corrupt("Fetch")

    fetched = [
        bytes_of(peer.call(fetch_request({"t": {0: 0}}), 12).responses[0].partitions[0])
        for _ in range(2)
    ]

    assert 1 == bits_in_which_they_differ(*fetched)


async def test_a_consumer_that_checks_checksums_says_that_records_are_corrupt(
    autojump_clock: object,
) -> None:
    async with trionet.open_broker() as broker:
        kit = control(broker)
        await kit.seed("t", [{"value": b"a", "partition": 0}])
        with kit.faults.corrupt("Fetch", times=None):
            async with open_consumer(
                broker.bootstrap_servers, {"auto.offset.reset": "earliest"}
            ) as consumer:
                consumer.assign([TopicPartition("t", 0)])
                with pytest.raises(CorruptRecordError):
                    await anext(consumer)


@pytest.mark.parametrize("apis", ["Metadata", ["Produce", "Metadata"]])
def test_what_carries_no_records_cannot_be_corrupted(broker: ThreadedBroker, apis: Any) -> None:
    with pytest.raises(ValueError, match="Metadata carries no records; allowed: Produce, Fetch"):
        broker.faults.corrupt(apis)

    assert [] == broker.faults.active


MANY = 1500


def many_requests() -> dict[str, tuple[Message, int]]:
    """By API: a request about all partitions of topic ``many``, and its version."""
    indexes = range(MANY)
    fetched = [
        FetchPartition(partition=index, current_leader_epoch=-1, partition_max_bytes=1000)
        for index in indexes
    ]
    listed = [
        ListOffsetsPartition(partition_index=index, timestamp=-1, current_leader_epoch=-1)
        for index in indexes
    ]
    committed = [OffsetCommitRequestPartition(partition_index=index) for index in indexes]
    return {
        "Metadata": (MetadataRequest(topics=None), 9),
        "Fetch": (FetchRequest(topics=[FetchTopic(topic="many", partitions=fetched)]), 12),
        "ListOffsets": (
            ListOffsetsRequest(topics=[ListOffsetsTopic(name="many", partitions=listed)]), 6
        ),
        "OffsetCommit": (
            OffsetCommitRequest(
                group_id="g", topics=[OffsetCommitRequestTopic(name="many", partitions=committed)]
            ),
            8,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("api", ["Metadata", "Fetch", "ListOffsets", "OffsetCommit"])
def test_requests_of_very_many_elements_are_served_and_meet_faults(api: str) -> None:
    request, version = many_requests()[api]
    with (
        trionet.testing.broker(topics={"many": MANY}) as broker,
        raw_peer(broker.bootstrap_servers) as peer,
    ):
        served = errors_in(peer.call(request, version))
        fault = broker.faults.fail(api, "NOT_COORDINATOR")
        failed = errors_in(peer.call(request, version))
        broker.faults.close(api)
        with pytest.raises(EOFError):
            peer.call(request, version)

    assert ([], 1) == (served, fault.hits)
    assert {error_codes.NOT_COORDINATOR} == set(failed)
