"""Every API that is served can be refused, and says so where its clients look for it."""

from __future__ import annotations

import copy
import sys
import typing
from typing import Any

import pytest
import trio

import trionet
from support.calls import append, batch, create_topic, fetch_request, produce_request
from support.client import connect
from trionet import LocalProtocolError
from trionet.broker.api._response_errors import errors_in
from trionet.broker.run._served_apis import APIS
from trionet.protocol import api_keys, error_codes
from trionet.protocol._codec import lookup
from trionet.protocol._wire import Message
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.fetch import FetchRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.testing.faults._response_errors import ErrorResponses, response_class

CODE = error_codes.REQUEST_TIMED_OUT
ID = bytes(range(16))

# What has one code whatever it is about: all others are asked for two things, and tell of two.
ONE_CODE = {
    api_keys.JOIN_GROUP,
    api_keys.HEARTBEAT,
    api_keys.LEAVE_GROUP,
    api_keys.SYNC_GROUP,
    api_keys.LIST_GROUPS,
    api_keys.API_VERSIONS,
    api_keys.INIT_PRODUCER_ID,
    api_keys.ADD_OFFSETS_TO_TXN,
    api_keys.END_TXN,
    api_keys.LIST_TRANSACTIONS,
    api_keys.DESCRIBE_CLUSTER,
}
BY_ITEM = {
    api_keys.PRODUCE,
    api_keys.FETCH,
    api_keys.LIST_OFFSETS,
    api_keys.METADATA,
    api_keys.OFFSET_COMMIT,
    api_keys.OFFSET_FETCH,
    api_keys.DESCRIBE_GROUPS,
    api_keys.CREATE_TOPICS,
    api_keys.DELETE_TOPICS,
    api_keys.DELETE_RECORDS,
    api_keys.OFFSET_FOR_LEADER_EPOCH,
    api_keys.DESCRIBE_CONFIGS,
    api_keys.CREATE_PARTITIONS,
    api_keys.DELETE_GROUPS,
    api_keys.DESCRIBE_TOPIC_PARTITIONS,
    api_keys.TXN_OFFSET_COMMIT,
    api_keys.WRITE_TXN_MARKERS,
    api_keys.DESCRIBE_TRANSACTIONS,
    api_keys.DESCRIBE_PRODUCERS,
}
# What has no response before the broker has looked, and what is a part of the authentication.
NOT_REFUSED = (api_keys.DESCRIBE_LOG_DIRS, api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE)
VERSIONS = [
    pytest.param(api.key, version, id=f"{api_keys.name_of(api.key)}-{version}")
    for api in APIS
    for version in range(api.min_version, api.max_version + 1)
    if api.key not in NOT_REFUSED
]


def filled(cls: type[Message]) -> Message:
    """A message in which every list has two items."""
    message = cls()
    hints = typing.get_type_hints(cls.__init__, vars(sys.modules[cls.__module__]))
    for name, hint in hints.items():
        for part in (hint, *typing.get_args(hint)):
            if typing.get_origin(part) is list:
                [kind] = typing.get_args(part)
                setattr(message, name, [value(kind, number) for number in (0, 1)])
    return message


def value(kind: Any, number: int) -> Any:
    if isinstance(kind, type) and issubclass(kind, Message):
        item = filled(kind)
        for name in ("partition", "partition_index", "index"):
            if name in item.__slots__:
                setattr(item, name, number)
        return item
    return {str: "tu"[number], int: number, bytes: bytes(range(number, number + 16))}[kind]


def sent(key: int, version: int) -> Message:
    """A request as it is after it has travelled: without what its version does not have."""
    codec = lookup(key, version)
    assert codec is not None
    cls = response_class(key)
    name = cls.__name__.replace("Response", "Request")
    request = filled(getattr(sys.modules[cls.__module__], name))
    for versioned in ("group_id", "key"):
        if versioned in request.__slots__:
            setattr(request, versioned, "")
    fields = [each for each in request.__slots__ if isinstance(getattr(request, each), list)]
    for left_out in ([], *([each] for each in fields), fields):
        trial = copy.copy(request)
        for field in left_out:
            setattr(trial, field, [])
        chunks: list[Any] = []
        try:
            codec.encode_request(trial, chunks)
        except LocalProtocolError:
            continue  # a list that this version does not have
        decoded: Message = codec.decode_request(b"".join(chunks), 0)
        return decoded
    raise AssertionError(f"{name} {version} cannot be made up")


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_version_of_each_api_can_be_refused(key: int, version: int) -> None:
    codec = lookup(key, version)
    assert codec is not None

    rejection = ErrorResponses(codec, CODE, None, None, lambda _: "t").rejection(sent(key, version))

    chunks: list[Any] = []
    codec.encode_response(rejection, chunks)
    decoded = codec.decode_response(b"".join(chunks), 0)
    errors = errors_in(decoded)
    assert {CODE} == set(errors)
    if key in BY_ITEM:
        assert 2 <= len(errors), decoded
    elif key in ONE_CODE:
        assert codec.decode_response(b"".join(chunks), 0).error_code == CODE


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


async def test_metadata_with_an_error_still_names_the_brokers() -> None:
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
async def test_a_produce_that_awaits_no_response_loses_its_connection(executed: bool) -> None:
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
    answers = ErrorResponses(codec, CODE, None, lambda t, p: (t, p) == ("t", 1), {ID: "t"}.get)

    rejection = answers.rejection(request)

    assert [(ID, [1])] == [
        (topic.topic_id, [each.partition_index for each in topic.partitions])
        for topic in rejection.responses
    ]
