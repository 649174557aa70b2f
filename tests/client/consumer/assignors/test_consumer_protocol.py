from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import MemberSubscription
from trionet.client.consumer.assignors._consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from trionet.errors import WireFormatError

A0, A2, B1 = TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)


def test_subscription_is_what_kafkas_newest_clients_write() -> None:
    subscription = MemberSubscription(["b", "a"], b"\x01", [A2, B1, A0], 7, "r")

    expected = (
        b"\0\3"
        b"\0\0\0\2\0\1a\0\1b"
        b"\0\0\0\1\1"
        b"\0\0\0\2\0\1a\0\0\0\2\0\0\0\0\0\0\0\2\0\1b\0\0\0\1\0\0\0\1"
        b"\0\0\0\7"
        b"\0\1r"
    )

    assert expected == encode_subscription(subscription)


def test_old_subscriptions_lack_what_came_later() -> None:
    raw = b"\0\0\0\0\0\1\0\1a\xff\xff\xff\xff"

    assert MemberSubscription(["a"]) == decode_subscription(raw)


def test_versions_that_we_do_not_know_begin_like_those_that_we_do() -> None:
    raw = encode_subscription(MemberSubscription(["a"], b"x", [A0], 3, "r"))
    newer = b"\0\x09" + raw[2:] + b"more"

    assert decode_subscription(raw, "s") == decode_subscription(newer, "s")
    assert [A0] == decode_assignment(b"\0\x09" + encode_assignment([A0])[2:] + b"more")


def test_static_members_name_comes_from_elsewhere() -> None:
    raw = encode_subscription(MemberSubscription(["a"], group_instance_id="s"))

    assert decode_subscription(raw).group_instance_id is None
    assert decode_subscription(raw, "s").group_instance_id == "s"


def test_assignment_is_by_topic() -> None:
    raw = encode_assignment([A2, B1, A0])

    assert raw == (
        b"\0\3\0\0\0\2\0\1a\0\0\0\2\0\0\0\2\0\0\0\0\0\1b\0\0\0\1\0\0\0\1\xff\xff\xff\xff"
    )
    assert [A2, A0, B1] == decode_assignment(raw)


def test_no_bytes_are_no_partitions() -> None:
    assert [] == decode_assignment(b"")


@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff\xff\0\0\0\0\xff\xff\xff\xff", b"\0\3\0\0\0\1"])
def test_other_bytes_are_an_error(raw: bytes) -> None:
    with pytest.raises(WireFormatError):
        decode_subscription(raw)
    if raw:
        with pytest.raises(WireFormatError):
            decode_assignment(raw)


names = st.text(st.characters(codec="ascii"), min_size=1, max_size=5)
partitions = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))


@given(
    topics=st.lists(names, unique=True).map(sorted),
    user_data=st.none() | st.binary(max_size=9),
    owned=st.sets(partitions, max_size=9).map(sorted),
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | names,
)
def test_subscription_comes_back(
    topics: list[str],
    user_data: bytes | None,
    owned: list[TopicPartition],
    generation: int,
    rack: str | None,
) -> None:
    subscription = MemberSubscription(topics, user_data, owned, generation, rack)

    assert subscription == decode_subscription(encode_subscription(subscription))
