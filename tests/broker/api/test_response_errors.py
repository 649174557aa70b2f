"""Error codes in responses, wherever they are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from trionet.broker.api._response_errors import errors_in
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from trionet.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from trionet.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.protocol.messages.registry import APIS


@pytest.mark.parametrize(
    ("answer", "codes"),
    [
        (HeartbeatResponse(), []),
        (HeartbeatResponse(error_code=25), [25]),
        (CreateTopicsResponse(topics=[CreatableTopicResult(error_code=36)]), [36]),
        (
            MetadataResponse(
                topics=[
                    MetadataResponseTopic(error_code=3),
                    MetadataResponseTopic(
                        partitions=[
                            MetadataResponsePartition(error_code=5),
                            MetadataResponsePartition(),
                        ]
                    ),
                ]
            ),
            [3, 5],
        ),
        (
            FetchResponse(
                error_code=70,
                responses=[FetchableTopicResponse(partitions=[PartitionData(error_code=1)])],
            ),
            [70, 1],
        ),
        (
            AddPartitionsToTxnResponse(
                results_by_transaction=[
                    AddPartitionsToTxnResult(
                        topic_results=[
                            AddPartitionsToTxnTopicResult(
                                results_by_partition=[
                                    AddPartitionsToTxnPartitionResult(partition_error_code=48)
                                ]
                            )
                        ]
                    )
                ]
            ),
            [48],
        ),
    ],
)
def test_every_error_of_a_response_is_found(answer: object, codes: list[int]) -> None:
    assert codes == errors_in(answer)


def test_what_is_no_message_has_no_errors() -> None:
    assert [] == errors_in(None)


def response_classes() -> list[Any]:
    found = []
    for name, *_ in APIS.values():
        module = import_module(f"trionet.protocol.messages.{name}")
        found += [
            pytest.param(cls, id=attribute)
            for attribute, cls in vars(module).items()
            if attribute.endswith("Response")
            and isinstance(cls, type)
            and "unknown_tags" in dir(cls)
        ]
    return found


@pytest.mark.parametrize("cls", response_classes())
def test_every_kind_of_response_can_be_looked_at(cls: Any) -> None:
    assert [] == errors_in(cls())
