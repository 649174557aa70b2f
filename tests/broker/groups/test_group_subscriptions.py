"""What a group's members read, as far as their metadata reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.groups import GroupRig
from trionet.broker.groups._group import subscribed_topics
from trionet.protocol.messages.consumer_protocol_subscription import (
    MESSAGES,
    ConsumerProtocolSubscription,
)


def subscription(*topics: str, version: int = 3, more: bytes = b"") -> bytes:
    """A member's metadata as its client writes it."""
    out: list[Any] = [version.to_bytes(2, "big", signed=True)]
    _, encode = MESSAGES[min(version, max(MESSAGES))]
    encode(ConsumerProtocolSubscription(topics=list(topics), user_data=b"u"), out)
    return b"".join(out) + more


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


def join(rig: GroupRig, *metadata: bytes) -> None:
    rig.gather(*(rig.join(protocols={"range": each}) for each in metadata))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 99])
def test_it_is_what_any_of_them_reads_in_every_version(rig: GroupRig, version: int) -> None:
    join(rig, subscription("a", "b", version=version), subscription("b", "ä", version=version))

    assert frozenset({"a", "b", "ä"}) == subscribed_topics(rig.group)


def test_what_a_later_version_has_at_the_end_is_passed_over(rig: GroupRig) -> None:
    join(rig, subscription("a", version=50, more=b"what nobody knows yet"))

    assert frozenset({"a"}) == subscribed_topics(rig.group)


def test_a_member_may_read_nothing(rig: GroupRig) -> None:
    join(rig, subscription())

    assert frozenset() == subscribed_topics(rig.group)


def test_a_group_without_members_reads_nothing(rig: GroupRig) -> None:
    assert frozenset() == subscribed_topics(rig.group)
    rig.leave(*rig.stable())
    assert frozenset() == subscribed_topics(rig.group)


def test_members_of_another_type_do_not_say(rig: GroupRig) -> None:
    rig.stable(1, protocol_type="connect", protocols={"range": subscription("a")})

    assert subscribed_topics(rig.group) is None


def test_it_is_not_known_before_there_is_a_protocol(rig: GroupRig) -> None:
    rig.join(protocols={"range": subscription("a")})

    assert subscribed_topics(rig.group) is None


def test_it_is_not_known_of_a_new_member_that_gave_up_the_old_protocol(rig: GroupRig) -> None:
    both = {"range": subscription("a"), "sticky": subscription("a")}
    rig.stable(2, protocols=both)
    rig.join(protocols={"sticky": subscription("b")})

    assert subscribed_topics(rig.group) is None


@pytest.mark.parametrize(
    "metadata", [b"", b"\0", b"\0\0", b"\0\0\0\0\0\1\0\5top", b"\0\3\x7f\xff\xff\xff"]
)
def test_one_that_cannot_be_read_makes_all_unknown(rig: GroupRig, metadata: bytes) -> None:
    join(rig, subscription("a"), metadata)

    assert subscribed_topics(rig.group) is None


@given(st.binary(max_size=60))
def test_any_metadata_is_read_or_unknown(metadata: bytes) -> None:
    rig = GroupRig()
    join(rig, metadata)

    topics = subscribed_topics(rig.group)

    assert topics is None or all(isinstance(topic, str) for topic in topics)
