"""Where the members of groups fetch next, as a broker knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from support.calls import append, create_topic
from support.client import connect
from trionet import Broker, TopicPartition, open_broker, open_consumer
from trionet.broker.groups._group import Group, GroupSettings
from trionet.broker.groups._members import Member
from trionet.broker.model._fetch_sessions import FetchedPartition, client_of
from trionet.broker.telemetry._fetch_positions import (
    ASSIGNMENT_BYTES_MAX,
    PARTITIONS_MAX,
    FetchPositions,
)
from trionet.client.consumer.assignors._consumer_protocol import encode_assignment

Position = list[str | int]


def positions(broker: Broker) -> dict[str, Sequence[Position]]:
    """Those in the snapshot, by group."""
    with broker.watch() as metrics:
        rows: Sequence[Any] = metrics.sections["groups"](100, None).rows
    return {row["id"]: row["positions"] for row in rows}


async def until(broker: Broker, group: str, expected: list[Position]) -> None:
    """Wait until a group has these positions, as after the next fetch."""
    with trio.fail_after(10):
        while expected != positions(broker).get(group):  # noqa: ASYNC110 - there is no event
            await trio.sleep(0.01)


@pytest.mark.parametrize("slots", [1000, 0], ids=["in sessions", "without sessions"])
async def test_a_position_is_ahead_of_what_is_committed(slots: int) -> None:
    settings: dict[str, Any] = {"max_incremental_fetch_session_cache_slots": slots}
    async with (
        open_broker(**settings) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", partitions=2)
        await append(client, b"one", b"two")
        async with open_consumer(
            broker.bootstrap_servers,
            group_id="g",
            topics="t",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            await consumer.next_batch()

            await until(broker, "g", [["t", 0, 2], ["t", 1, 0]])


def group(client_id: str, count: int = 1) -> Group:
    """A group with one member that owns t-0 and on."""
    found = Group("g", GroupSettings(0.0, 10, str), 0.0)
    found.protocol_type = "consumer"
    assignment = encode_assignment([TopicPartition("t", each) for each in range(count)])
    found.members.add(
        Member("m", None, client_id, "/10.0.0.7", 10.0, 60.0, {"range": b""}, assignment=assignment)
    )
    return found


def test_a_client_with_a_long_id_is_found_by_its_beginning() -> None:
    client = client_of("x" * 32_767, "10.0.0.7")
    assert 256 == len(client[0])

    found = FetchPositions([(client, FetchedPartition(("t", 0), 7, 1, -1))], lambda _: None)

    assert [["t", 0, 7]] == found.of(group("x" * 32_767))


def test_clients_that_cannot_be_told_apart_have_no_position() -> None:
    app, other = ("app", "10.0.0.7"), ("app", "10.0.0.8")
    fetched = [(each, FetchedPartition(("t", 0), at, 1, -1)) for each, at in ((app, 5), (other, 9))]

    assert [["t", 0, 5]] == FetchPositions(fetched, lambda _: None).of(group("app"))
    assert [] == FetchPositions(fetched, lambda _: None).of(group("another"))
    fetched.append((app, FetchedPartition(("t", 0), 7, 1, -1)))
    assert [] == FetchPositions(fetched, lambda _: None).of(group("app"))


def test_assignments_are_decoded_up_to_a_number_of_bytes() -> None:
    app = "app", "10.0.0.7"
    found = FetchPositions([(app, FetchedPartition(("t", 0), 5, 1, -1))], lambda _: None)

    assert [] == found.of(group("app", ASSIGNMENT_BYTES_MAX // 4))
    assert [["t", 0, 5]] == found.of(group("app", PARTITIONS_MAX))
    assert [] == found.of(group("app"))
