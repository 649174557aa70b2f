"""Metrics that are pushed to brokers that ask for them (KIP-714), in virtual time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.network_clients import HEARTBEAT, SETTINGS
from support.otlp import Told, told
from support.scripted_node import Hangup, ScriptedNode, Seen
from support.secured_clients import keep_polling
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.client.network._telemetry import (
    INTERVAL_SECONDS,
    TelemetryPoints,
    TelemetrySettings,
    retry_seconds,
    telemetry_name,
)
from trionet.metrics._registry import Kind, Metric, Snapshot, single
from trionet.metrics._sensors import MetricGroup
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.push_telemetry import PushTelemetryResponse
from trionet.protocol.records.compression._codecs import GZIP, NONE, ZSTD, decompress
from trionet.testing import MemoryNetwork

ID = bytes(range(16))
PUSHES = attrs.evolve(SETTINGS, telemetry=TelemetrySettings(is_enabled=True))
SUBSCRIPTION = GetTelemetrySubscriptionsResponse(
    client_instance_id=ID,
    subscription_id=7,
    accepted_compression_types=[ZSTD, GZIP],
    push_interval_ms=10_000,
    telemetry_max_bytes=100_000,
    requested_metrics=["org.apache.kafka.network.client.request."],
)
REQUESTS = "org.apache.kafka.network.client.request.total"


def asking(node: ScriptedNode, **changes: Any) -> None:
    """Have a node ask for metrics."""
    answer = GetTelemetrySubscriptionsResponse(
        **{name: getattr(SUBSCRIPTION, name) for name in _FIELDS} | changes
    )
    node.replies["GetTelemetrySubscriptions"] = lambda _: answer
    node.replies["PushTelemetry"] = lambda _: PushTelemetryResponse()
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()


_FIELDS = (
    "client_instance_id",
    "subscription_id",
    "accepted_compression_types",
    "push_interval_ms",
    "telemetry_max_bytes",
    "delta_temporality",
    "requested_metrics",
)


@asynccontextmanager
async def pushing(node: ScriptedNode, network: MemoryNetwork) -> AsyncIterator[NetworkClient]:
    async with (
        open_network_client(node.address, PUSHES, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(keep_polling, client)
        yield client
        nursery.cancel_scope.cancel()


def seen(node: ScriptedNode, name: str) -> list[Seen]:
    return [each for each in node.seen if each.name == name]


def pushes(node: ScriptedNode) -> list[Seen]:
    return seen(node, "PushTelemetry")


def numbers(push: Seen) -> dict[str, list[Told]]:
    body = push.body
    return told(decompress(body.compression_type, bytes(body.metrics), 1_000_000))


async def test_a_broker_learns_what_it_asks_for(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N33: from one connection, in the compression it likes best, and no user hears of it."""
    asking(node)
    async with open_network_client(node.address, PUSHES, network=network) as client:
        polled: list[object] = []
        with trio.move_on_after(34.9):
            while True:
                polled += await client.poll()
        assert client.telemetry is not None
        assert ID == client.telemetry.client_instance_id
    first, *rest = pushes(node)

    assert [] == polled
    assert bytes(16) == bytes(seen(node, "GetTelemetrySubscriptions")[0].body.client_instance_id)
    assert (ID, 7, ZSTD) == (
        bytes(first.body.client_instance_id),
        first.body.subscription_id,
        first.body.compression_type,
    )
    assert len(rest) in (2, 3), "the first comes after 5 to 15 seconds"
    assert [REQUESTS] == [name for name in numbers(first) if name.endswith("total")]
    assert all(
        name.startswith("org.apache.kafka.network.client.request") for name in numbers(first)
    )


async def test_sums_are_reported_whole_or_by_what_was_added(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    for is_delta in (False, True):
        node.seen.clear()
        asking(node, delta_temporality=is_delta)
        async with pushing(node, network) as client:
            await client.until_updated()
            known = client.metadata.cluster.nodes[1]
            for _ in range(40):
                await client.request(known, HEARTBEAT)
                await trio.sleep(1)
        one, two, *_ = [numbers(each)[REQUESTS][0] for each in pushes(node)]

        assert (2 - is_delta, 2 - is_delta) == (one.temporality, two.temporality)
        if is_delta:
            assert 9 <= two.value <= 12, "ten heartbeats, and the push before"
            assert one.time_ns == two.start_ns
        else:
            assert one.value + 9 <= two.value <= one.value + 12
            assert one.start_ns == two.start_ns < one.time_ns < two.time_ns


async def test_the_last_numbers_are_sent_when_the_client_is_closed(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node)
    async with pushing(node, network):
        await trio.sleep(20)
    await trio.sleep(1)

    assert [False, True] == [each.body.terminating for each in pushes(node)][-2:]


async def test_last_push_does_not_repeat_the_increase_of_a_push_in_flight(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node, delta_temporality=True)
    async with pushing(node, network) as client:
        await client.until_updated()
        for _ in range(10):
            await client.request(client.metadata.cluster.nodes[1], HEARTBEAT)
        node.replies["PushTelemetry"] = lambda _: None
        await trio.sleep(16)
        assert [False] == [each.body.terminating for each in pushes(node)]
    await trio.sleep(1)
    in_flight, last = [numbers(each)[REQUESTS][0] for each in pushes(node)]

    assert 10 <= in_flight.value
    assert 1 == last.value, "the push in flight"
    assert in_flight.time_ns == last.start_ns


async def test_a_client_closes_at_once_when_its_broker_is_gone(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node)
    async with pushing(node, network):
        await trio.sleep(20)
        network.kill_host(node.host, is_silent=True)
        begin = trio.current_time()

    assert begin == trio.current_time()


async def test_a_broker_without_a_plugin_is_sent_nothing(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    del node.ranges[api_keys.GET_TELEMETRY_SUBSCRIPTIONS]
    async with pushing(node, network):
        await trio.sleep(2 * INTERVAL_SECONDS)

    assert "GetTelemetrySubscriptions" not in node.names()


async def test_a_broker_that_takes_metrics_in_newer_ways_only_is_asked_again_later(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    node.ranges[api_keys.PUSH_TELEMETRY] = (9, 9)
    asking(node)
    async with pushing(node, network) as client:
        await trio.sleep(2 * INTERVAL_SECONDS)
        assert not client.metadata.errors

    assert [] == pushes(node)
    assert 2 == len(seen(node, "GetTelemetrySubscriptions"))


async def test_a_client_that_is_not_to_push_asks_no_broker(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node)
    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()

    assert "GetTelemetrySubscriptions" not in node.names()


async def test_who_wants_no_metrics_is_asked_again_later(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node, requested_metrics=[])
    async with pushing(node, network):
        await trio.sleep(25)
    questions = seen(node, "GetTelemetrySubscriptions")

    assert [bytes(16), ID, ID] == [bytes(each.body.client_instance_id) for each in questions]
    assert [] == pushes(node)


@pytest.mark.parametrize("wanted", ["*", ""])
async def test_all_metrics_may_be_wanted(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode, wanted: str
) -> None:
    asking(node, requested_metrics=[wanted], accepted_compression_types=[])
    async with pushing(node, network):
        await trio.sleep(20)
    found = numbers(pushes(node)[0])

    assert NONE == pushes(node)[0].body.compression_type
    assert "org.apache.kafka.network.client.connection.count" in found
    [by_node] = [
        each
        for each in found["org.apache.kafka.network.client.node.request.total"]
        if each.attributes == {"node_id": "1"}
    ]
    assert by_node.value > 0


@pytest.mark.parametrize(
    ("code", "questions"),
    [
        (error_codes.UNKNOWN_SUBSCRIPTION_ID, 3),
        (error_codes.THROTTLING_QUOTA_EXCEEDED, 2),
        (error_codes.INVALID_RECORD, 1),
    ],
)
async def test_a_refused_push(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    node: ScriptedNode,
    code: int,
    questions: int,
) -> None:
    """Another question at once, later, or never (Kafka: maybeFetchErrorIntervalMs)."""
    asking(node)
    node.replies["PushTelemetry"] = lambda _: PushTelemetryResponse(error_code=code)
    async with pushing(node, network):
        with trio.move_on_after(29.9):
            await trio.sleep_forever()

        assert questions <= len(seen(node, "GetTelemetrySubscriptions")) <= questions + 1
        assert (questions == 1) == (1 == len(seen(node, "GetTelemetrySubscriptions")))


@pytest.mark.parametrize(
    "reply",
    [PushTelemetryResponse(error_code=error_codes.THROTTLING_QUOTA_EXCEEDED), Hangup()],
    ids=["refused", "lost"],
)
async def test_what_a_broker_has_not_taken_is_part_of_the_next_push(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    node: ScriptedNode,
    reply: PushTelemetryResponse | Hangup,
) -> None:
    asking(node, delta_temporality=True)
    node.replies["PushTelemetry"] = lambda _: reply
    async with pushing(node, network) as client:
        await client.until_updated()
        for _ in range(10):
            await client.request(client.metadata.cluster.nodes[1], HEARTBEAT)
        await trio.sleep(16)
        refused = pushes(node)
        asking(node, delta_temporality=True)
        await trio.sleep(INTERVAL_SECONDS + 20)
        [before] = numbers(refused[0])[REQUESTS]
        [after, *_] = numbers(pushes(node)[len(refused)])[REQUESTS]

    assert 10 <= before.value < after.value
    assert before.start_ns == after.start_ns < before.time_ns < after.time_ns


@pytest.mark.parametrize("said", ["interval", "subscription", "push"])
async def test_a_broker_that_wants_metrics_all_the_time_is_told_ten_times_a_second_at_most(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode, said: str
) -> None:
    """A push costs the client milliseconds: one each millisecond would leave it no other time."""
    asking(node, push_interval_ms=1)
    code = error_codes.UNKNOWN_SUBSCRIPTION_ID
    if said == "subscription":
        asking(node, error_code=code)
    elif said == "push":
        node.replies["PushTelemetry"] = lambda _: PushTelemetryResponse(error_code=code)
    async with pushing(node, network):
        await trio.sleep(10)

    asked = len(seen(node, "GetTelemetrySubscriptions")) + len(pushes(node))
    assert 50 < asked < (420 if said == "push" else 110)


async def test_more_than_a_broker_takes_is_not_sent(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node, telemetry_max_bytes=10)
    async with pushing(node, network):
        await trio.sleep(60)

    assert [] == pushes(node)


async def test_a_lost_broker_fails_nothing_and_is_asked_again(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    asking(node)
    node.replies["PushTelemetry"] = lambda _: Hangup()
    async with pushing(node, network) as client:
        await trio.sleep(30)
        asking(node)
        await trio.sleep(INTERVAL_SECONDS + 20)
        await client.request(client.metadata.cluster.nodes[1], HEARTBEAT)

    assert 2 == len(seen(node, "GetTelemetrySubscriptions"))
    assert len(pushes(node)) > 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (error_codes.UNKNOWN_SUBSCRIPTION_ID, 0),
        (error_codes.UNSUPPORTED_COMPRESSION_TYPE, 0),
        (error_codes.TELEMETRY_TOO_LARGE, 5),
        (error_codes.THROTTLING_QUOTA_EXCEEDED, 5),
        (error_codes.INVALID_REQUEST, math.inf),
        (error_codes.UNSUPPORTED_VERSION, math.inf),
        (error_codes.UNKNOWN_SERVER_ERROR, math.inf),
    ],
)
def test_when_a_broker_that_refuses_is_asked_again(code: int, expected: float) -> None:
    assert expected == retry_seconds(code, 5)


def test_names() -> None:
    group = MetricGroup("consumer", "consumer-coordinator-metrics")
    metric = group.gauge("last-heartbeat-seconds-ago", "...")

    expected = "org.apache.kafka.consumer.coordinator.last.heartbeat.seconds.ago"
    assert expected == telemetry_name(metric)
    assert "" == telemetry_name(Metric("ours_total", Kind.COUNTER, "..."))


def test_numbers_that_are_none_are_left_out() -> None:
    group = MetricGroup("producer", "producer-metrics")
    families = [
        single(group.gauge("a-avg", "..."), math.nan),
        single(group.gauge("b-max", "..."), -math.inf),
        single(group.gauge("c-count", "..."), 3),
        single(Metric("ours", Kind.GAUGE, "..."), 4),
    ]

    found = TelemetryPoints(0).points(Snapshot(0.0, families), ("",), 1, is_delta=True)

    assert [("org.apache.kafka.producer.c.count", 3)] == [(p.name, p.value) for p in found]
