"""Requests of very many elements: served in steps elsewhere, and in one piece by the test kit."""

from __future__ import annotations

import pytest

import trionet
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
from trionet.testing import raw_peer

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
