"""What a user may name, and what is refused before anything is changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import make_topic
from trionet import open_broker
from trionet.client._argument_checks import (
    checked_epoch,
    checked_offset,
    offsets_to_commit,
    topic_names,
    topic_partitions,
)
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.admin._admin import open_admin
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.state._reset_strategy import EARLIEST
from trionet.client.producer._open_producer import open_producer
from trionet.testing import MemoryNetwork

T0 = TopicPartition("t", 0)
MEMBER = ConsumerSettings(reset=EARLIEST, group=GroupSettings(group_id="g"))


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        ([], ValueError),
        ("", ValueError),
        (["t", ""], ValueError),
        ("t" * 250, ValueError),
        (b"t", TypeError),
        ([None], TypeError),
        (None, TypeError),
        (5, TypeError),
    ],
)
def test_topics_are_texts(topics: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        topic_names(topics)


def test_one_topic_may_be_named_alone() -> None:
    assert ["tea"] == topic_names("tea")
    assert ["a", "b"] == topic_names(each for each in "ab")


@pytest.mark.parametrize(
    ("partition", "error"),
    [
        ("t", TypeError),
        (("t",), TypeError),
        (None, TypeError),
        (("t", "0"), TypeError),
        (("t", 1.0), TypeError),
        ((b"t", 0), TypeError),
        (("t", -1), ValueError),
        (("t", 2**31), ValueError),
        (("", 0), ValueError),
    ],
)
def test_partitions_are_topics_and_numbers(partition: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        topic_partitions([partition])


def test_a_plain_tuple_is_a_partition() -> None:
    plain: Any = ("t", 0)

    assert ["t-0"] == [str(each) for each in topic_partitions([plain])]


@pytest.mark.parametrize(
    ("offset", "error"),
    [(-1, ValueError), (2**63 - 1, ValueError), ("5", TypeError), (5.5, TypeError)],
)
def test_offsets_are_whole_numbers_from_0(offset: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        checked_offset(offset)
    with pytest.raises(error):
        offsets_to_commit({T0: offset})
    with pytest.raises(error):
        offsets_to_commit({T0: OffsetAndMetadata(offset)})


@pytest.mark.parametrize(
    ("epoch", "error"), [(-2, ValueError), (2**31, ValueError), ("x", TypeError)]
)
def test_epochs_are_those_that_the_protocol_can_carry(epoch: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        checked_epoch(epoch)
    with pytest.raises(error):
        offsets_to_commit({T0: OffsetAndMetadata(1, "", epoch)})


@pytest.mark.parametrize(
    ("metadata", "error"),
    [(b"note", TypeError), (None, TypeError), ("\ud800", ValueError), ("é" * 2**14, ValueError)],
)
def test_metadata_is_what_the_protocol_can_carry(metadata: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        offsets_to_commit({T0: OffsetAndMetadata(1, metadata)})


def test_what_is_committed_beside_an_offset_is_kept() -> None:
    found = offsets_to_commit({T0: OffsetAndMetadata(7, "note", 3), TopicPartition("t", 1): 5})

    assert {T0: OffsetAndMetadata(7, "note", 3), ("t", 1): OffsetAndMetadata(5)} == found


# In a consumer.


@pytest.mark.parametrize("topics", [b"t", [None], None, [], "\ud800", ["t", "\udfff"]])
async def test_who_names_nonsense_has_subscribed_to_nothing(
    autojump_clock: MockClock, topics: Any
) -> None:
    network = MemoryNetwork()
    async with (
        open_broker(network=network) as broker,
        open_consumer(broker.bootstrap_servers, MEMBER, network=network) as consumer,
    ):
        with pytest.raises((TypeError, ValueError)):
            consumer.subscribe(topics)
        with trio.fail_after(10), pytest.raises(ValueError, match="nothing to read"):
            await anext(consumer)


@pytest.mark.parametrize(("offset", "epoch"), [(2**63, -1), (1, "x")])
async def test_who_seeks_nonsense_reads_on_where_it_was(
    autojump_clock: MockClock, offset: Any, epoch: Any
) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 1, network)
        async with (
            open_producer(broker.bootstrap_servers, network=network) as writer,
            open_consumer(broker.bootstrap_servers, MEMBER, network=network) as consumer,
        ):
            consumer.assign([T0])
            await writer.send("t", b"a")
            with pytest.raises((TypeError, ValueError)):
                consumer.seek(T0, offset, epoch)

            assert [b"a"] == await values(consumer, 1)


async def test_a_consumer_that_is_closed_says_so(autojump_clock: MockClock) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 1, network)
        async with open_consumer(broker.bootstrap_servers, MEMBER, network=network) as consumer:
            consumer.assign([T0])
            await consumer.end_offsets([T0])
        for call in (
            consumer.commit,
            lambda: consumer.commit({T0: 1}),
            lambda: consumer.committed([T0]),
            lambda: consumer.end_offsets([T0]),
            consumer.next_batch,
        ):
            with pytest.raises(trio.ClosedResourceError):
                await call()
        with pytest.raises(trio.ClosedResourceError):
            consumer.subscribe("t")
        with pytest.raises(trio.ClosedResourceError):
            consumer.assign([T0])


async def result_of(method: Callable[..., Any], *arguments: Any) -> Any:
    """Of a method that may be async."""
    found = method(*arguments)
    return await found if inspect.isawaitable(found) else found


ITERABLE = r"expected an iterable such as \[TopicPartition\(.*\)\], not"
NO_PARTITION = r"invalid partition .*: expected TopicPartition\(topic, number\)"


@pytest.mark.parametrize(
    ("call", "arguments", "text"),
    [
        ("subscribe", [5], "invalid topics 5: expected a topic name, such as 'orders', names, .*"),
        ("subscribe", [b"t"], "invalid topics b't': expected a topic name"),
        ("subscribe", [T0], "invalid topics .*: expected a topic name"),
        ("subscribe", [[b"t"]], "topic must be str, not bytes: b't'"),
        ("assign", ["t"], f"{ITERABLE} 't'"),
        ("assign", [5], f"{ITERABLE} 5"),
        ("assign", [T0], f"{ITERABLE} a single partition"),
        ("assign", [["t"]], NO_PARTITION),
        ("assign", [["to"]], NO_PARTITION),
        ("assign", [[("t", "0")]], r"the number in \('t', '0'\) must be int, not str: '0'"),
        ("pause", ["t"], NO_PARTITION),
        ("pause", [[T0]], r"each partition is an argument of its own; write a \* before \[Topic"),
        ("resume", [5], NO_PARTITION),
        ("resume", [{T0}], "each partition is an argument of its own"),
        ("seek", ["t", 0], NO_PARTITION),
        ("assign", [[("t", True)]], r"the number in \('t', True\) must be int, not bool: True"),
        ("seek", [T0, "0"], "offset must be int, not str: '0'"),
        ("seek", [T0, True], "offset must be int, not bool: True"),
        ("seek", [T0, 0, None], "leader_epoch must be int, not NoneType: None"),
        ("seek_to_beginning", ["t"], NO_PARTITION),
        ("seek_to_end", [[T0]], "each partition is an argument of its own"),
        ("position", ["t"], NO_PARTITION),
        ("lag", [[T0]], NO_PARTITION),
        ("commit", [[T0]], "expected offsets such as .* not .TopicPartition"),
        ("commit", [{T0: "5"}], "offset must be int, not str: '5'"),
        ("committed", ["t"], f"{ITERABLE} 't'"),
        ("offsets_for_times", [[T0]], "expected timestamps such as"),
        ("offsets_for_times", [{T0: 1.5}], "a timestamp must be int, not float: 1.5"),
        ("beginning_offsets", [T0], f"{ITERABLE} a single partition"),
        ("end_offsets", ["t"], f"{ITERABLE} 't'"),
        ("partitions_of", [["t"]], r"topic must be str, not list: \['t'\]"),
    ],
)
async def test_who_names_nonsense_is_told_what_to_write(
    autojump_clock: MockClock, call: str, arguments: list[Any], text: str
) -> None:
    network = MemoryNetwork()
    async with open_consumer("host:1", MEMBER, network=network) as consumer:
        method = getattr(consumer, call)
        with pytest.raises(TypeError, match=text):
            await result_of(method, *arguments)


@pytest.mark.parametrize("name", ["", "\ud800"])
async def test_name_that_no_topic_can_have_is_an_error_of_its_call_alone(
    autojump_clock: MockClock, name: str
) -> None:
    network = MemoryNetwork()
    async with (
        open_broker(network=network) as broker,
        open_consumer(broker.bootstrap_servers, MEMBER, network=network) as consumer,
    ):
        with pytest.raises(ValueError, match="topic name"):
            await consumer.partitions_of(name)
        with pytest.raises(ValueError, match="topic name"):
            consumer.assign([TopicPartition(name, 0)])
        assert [0] == await consumer.partitions_of("created")


# What is there no more.


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    return [(await anext(consumer)).value for _ in range(count)]


@pytest.mark.parametrize("is_member", [False, True])
@pytest.mark.parametrize("away_seconds", [1, 30])
async def test_a_topic_that_is_deleted_and_made_anew_is_read_from_its_beginning(
    autojump_clock: MockClock, is_member: bool, away_seconds: float
) -> None:
    """What was read of it cannot be committed any more, which keeps nobody."""
    network = MemoryNetwork()
    async with open_broker(network=network, auto_create_topics_enable=False) as broker:
        await make_topic(broker, "t", 2, network)
        async with (
            open_producer(broker.bootstrap_servers, network=network) as writer,
            open_admin(broker.bootstrap_servers, network=network) as admin,
            open_consumer(broker.bootstrap_servers, MEMBER, network=network) as consumer,
        ):
            if is_member:
                consumer.subscribe("t")
            else:
                consumer.assign([T0, TopicPartition("t", 1)])
            for number in range(4):
                await writer.send("t", b"old", partition=number % 2)
            assert [b"old"] * 4 == await values(consumer, 4)
            await admin.delete_topics(["t"])
            await trio.sleep(away_seconds)
            await make_topic(broker, "t", 1, network)
            await writer.send("t", b"new", partition=0)
            with trio.fail_after(10):
                assert [b"new"] == await values(consumer, 1)
