"""Consumer groups as tests see them, with a real consumer."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

import trionet
from trionet.testing import GroupView


@pytest.mark.interop
@pytest.mark.slow
def test_a_group_is_seen_with_its_members_and_offsets() -> None:
    with trionet.testing.broker(topics={"orders": 2}) as broker:
        broker.seed("orders", [{"partition": 1, "value": value} for value in "abc"])
        consumer = Consumer(
            {
                **broker.client_config("confluent-kafka"),
                "group.id": "g",
                "client.id": "me",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "partition.assignment.strategy": "range",
            }
        )
        consumer.subscribe(["orders"])
        read = consumer.consume(3, 30)
        consumer.commit(asynchronous=False)

        group = broker.wait_for_offset("g", "orders", 3, partition=1)

        assert 3 == len(read)
        assert ["g"] == broker.groups()
        assert ("Stable", "range", {("orders", 1): 3}) == (
            group.state,
            group.protocol,
            group.offsets,
        )
        [member] = group.members
        assert ("me", None, {"orders": [0, 1]}) == (
            member.client_id,
            member.instance_id,
            member.assignment,
        )

        consumer.close()
        empty = broker.wait_for_group("g", "Empty", members=0)

        assert [] == empty.members


def test_a_state_that_no_group_has_is_not_waited_for() -> None:
    with trionet.testing.broker() as broker, pytest.raises(ValueError, match="unknown") as raised:
        broker.wait_for_group("g", "stable")

    assert (
        "unknown state 'stable'; the closest match is Stable; allowed: Empty, PreparingRebalance,"
        " CompletingRebalance, Stable, Dead"
    ) == str(raised.value)


def test_records_are_waited_for_in_one_topic() -> None:
    topics: Any = ["orders"]
    with (
        trionet.testing.broker() as broker,
        pytest.raises(TypeError, match=r"topic must be str, not list: \['orders'\]"),
    ):
        broker.wait_for_records(topics)


def test_a_group_that_is_not_there_is_dead() -> None:
    with trionet.testing.broker() as broker:
        assert GroupView("g") == broker.group("g")
        assert "Dead" == broker.group("g").state
        assert [] == broker.groups()
