"""Every API that is served can be refused, and says so where its clients look for it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import trionet
from support.calls import append, batch, create_topic, fetch_request, produce_request
from support.client import connect
from trionet.broker.broker import _SERVED
from trionet.broker.response_errors import errors_in
from trionet.protocol import api_keys, error_codes
from trionet.protocol.codec import lookup
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.delete_groups import DeleteGroupsRequest
from trionet.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from trionet.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest
from trionet.protocol.messages.fetch import FetchRequest
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from trionet.protocol.wire import NO_UUID, Message
from trionet.testing.error_answers import ErrorAnswers, response_class

CODE = error_codes.REQUEST_TIMED_OUT
ID = bytes(range(16))

# Those that are told by something else than one code for the whole request.
REQUESTS: dict[int, Any] = {
    api_keys.PRODUCE: lambda version: produce_request(
        ID if version >= 13 else "t", {0: b"", 1: b""}
    ),
    api_keys.FETCH: lambda version: fetch_request({ID if version >= 13 else "t": {0: 0, 1: 0}}),
    api_keys.LIST_OFFSETS: lambda version: ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(
                name="t",
                partitions=[ListOffsetsPartition(partition_index=n, timestamp=7) for n in (0, 1)],
            )
        ]
    ),
    api_keys.METADATA: lambda version: MetadataRequest(
        topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="u")]
    ),
    api_keys.OFFSET_COMMIT: lambda version: OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="t" if version < 10 else "",
                topic_id=NO_UUID if version < 10 else ID,
                partitions=[OffsetCommitRequestPartition(partition_index=n) for n in (0, 1)],
            )
        ],
    ),
    api_keys.OFFSET_FETCH: lambda version: (
        OffsetFetchRequest(
            group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        )
        if version < 8
        else OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])],
                )
                for group in ("g", "h")
            ]
        )
    ),
    api_keys.FIND_COORDINATOR: lambda version: FindCoordinatorRequest(
        key="g" if version < 4 else "", coordinator_keys=["g", "h"] if version >= 4 else []
    ),
    api_keys.DESCRIBE_GROUPS: lambda version: DescribeGroupsRequest(groups=["g", "h"]),
    api_keys.CREATE_TOPICS: lambda version: CreateTopicsRequest(
        topics=[CreatableTopic(name=name) for name in "tu"]
    ),
    api_keys.DELETE_TOPICS: lambda version: (
        DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in "tu"])
        if version >= 6
        else DeleteTopicsRequest(topic_names=["t", "u"])
    ),
    api_keys.DESCRIBE_CONFIGS: lambda version: DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=2, resource_name=name) for name in "tu"]
    ),
    api_keys.DELETE_GROUPS: lambda version: DeleteGroupsRequest(groups_names=["g", "h"]),
}
# What has one code whatever it is about, in the versions from the first on to before the second.
ONE = {api_keys.FIND_COORDINATOR: (0, 4)}
VERSIONS = [
    pytest.param(key, version, id=f"{api_keys.name_of(key)}-{version}")
    for key, low, high, _, _ in _SERVED
    for version in range(low, high + 1)
    if key not in (api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE)
]


def request_of(key: int, version: int) -> Message:
    if key in REQUESTS:
        message: Message = REQUESTS[key](version)
        return message
    name = response_class(key).__name__.replace("Response", "Request")
    module = __import__(response_class(key).__module__, fromlist=[name])
    request: Message = getattr(module, name)()
    return request


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_version_of_each_api_can_be_refused(key: int, version: int) -> None:
    codec = lookup(key, version)
    assert codec is not None
    request = request_of(key, version)

    refusal = ErrorAnswers(codec, CODE, None, None, lambda id: "t").refusal(request)

    chunks: list[Any] = []
    codec.encode_response(refusal, chunks)
    decoded = codec.decode_response(b"".join(chunks), 0)
    errors = errors_in(decoded)
    assert {CODE} == set(errors)
    first, after = ONE.get(key, (0, 0))
    if key in REQUESTS and not first <= version < after:
        assert 2 <= len(errors), decoded


def partition_errors(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (getattr(topic, "name", "") or getattr(topic, "topic", ""), index): each.error_code
        for topic in getattr(answer, "responses", None) or answer.topics
        for each in getattr(topic, "partition_responses", None) or topic.partitions
        if (index := getattr(each, "partition_index", getattr(each, "index", None))) is not None
    }


async def test_an_error_of_one_partition_leaves_the_others_alone() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await control.create_topic("t", 2)
        control.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1)
        records = {0: batch(b"a"), 1: batch(b"b")}

        answer = await client.call(produce_request("t", records), 12)

        assert {("t", 0): 0, ("t", 1): error_codes.NOT_LEADER_OR_FOLLOWER} == partition_errors(
            answer
        )
        assert [b"a"] == control.values("t")


async def test_an_error_of_one_topic_leaves_the_others_alone() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        control.faults.fail("CreateTopics", "POLICY_VIOLATION", topic="u", message="not that one")
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in "tu"]
        )

        answer = await client.call(request, 7)

        assert {"t": (0, None), "u": (error_codes.POLICY_VIOLATION, "not that one")} == {
            topic.name: (topic.error_code, topic.error_message) for topic in answer.topics
        }
        assert ["t"] == list(control.topics())


async def test_a_fetch_gets_an_error_of_a_partition_without_waiting_for_data() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await create_topic(client, "t", 2)
        await append(client, b"a")
        control.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="t", partition=1)

        with trio.fail_after(5):
            answer = await client.call(
                fetch_request({"t": {0: 1, 1: 0}}, max_wait_ms=2**31 - 1), 12
            )

        assert 0 == answer.error_code
        assert error_codes.KAFKA_STORAGE_ERROR == partition_errors(answer)["t", 1]
        assert 0 == partition_errors(answer)["t", 0]


async def test_an_incremental_fetch_that_names_nothing_gets_the_errors_of_its_session() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await create_topic(client, "t", 2)
        begun = await client.call(fetch_request({"t": {0: 0, 1: 0}}, session=(0, 0)), 12)
        fault = control.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1)

        answer = await client.call(fetch_request({}, session=(begun.session_id, 1)), 12)

        assert 1 == fault.hits
        assert {("t", 1): error_codes.NOT_LEADER_OR_FOLLOWER} == partition_errors(answer)


async def test_an_error_of_a_fetch_session_stands_at_the_top() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await create_topic(client, "t")
        control.faults.fail("Fetch", "FETCH_SESSION_ID_NOT_FOUND")

        answer = await client.call(fetch_request({"t": {0: 0}}), 12)

        assert error_codes.FETCH_SESSION_ID_NOT_FOUND == answer.error_code
        assert [] == answer.responses


async def test_metadata_with_an_error_still_tells_of_the_brokers() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await create_topic(client, "t")
        control.faults.fail("Metadata", "LEADER_NOT_AVAILABLE")

        answer = await client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)

        assert 1 == len(answer.brokers)
        assert [error_codes.LEADER_NOT_AVAILABLE] == [each.error_code for each in answer.topics]


async def test_what_was_done_all_the_same_can_be_said_to_have_failed() -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await control.create_topic("t")
        control.faults.fail("Produce", "REQUEST_TIMED_OUT", executed=True)

        answer = await client.call(produce_request("t", batch(b"a")), 12)

        assert {("t", 0): error_codes.REQUEST_TIMED_OUT} == partition_errors(answer)
        assert -1 == answer.responses[0].partition_responses[0].base_offset
        assert [b"a"] == control.values("t")


@pytest.mark.parametrize("executed", [False, True])
async def test_a_produce_that_awaits_no_answer_loses_its_connection(executed: bool) -> None:
    async with trionet.open_broker() as broker, connect(broker.bootstrap_servers) as client:
        control = trionet.testing.control(broker)
        await control.create_topic("t")
        control.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", executed=executed)

        await client.send_unanswered(produce_request("t", batch(b"a"), acks=0), 12)

        with pytest.raises(EOFError):
            await client.receive_frame()
        assert ([b"a"] if executed else []) == control.values("t")


def test_an_error_of_a_topic_named_by_its_id_finds_it() -> None:
    codec = lookup(api_keys.FETCH, 13)
    assert codec is not None
    request = FetchRequest(topics=fetch_request({ID: {0: 0, 1: 0}}).topics)
    answers = ErrorAnswers(codec, CODE, None, lambda t, p: (t, p) == ("t", 1), {ID: "t"}.get)

    refusal = answers.refusal(request)

    assert [(ID, [1])] == [
        (topic.topic_id, [each.partition_index for each in topic.partitions])
        for topic in refusal.responses
    ]
