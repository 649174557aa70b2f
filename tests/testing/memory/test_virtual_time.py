"""A broker in virtual time: hours pass in milliseconds, and one seed gives one course of events."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

import trionet
from support.calls import (
    EARLIEST,
    append,
    batch,
    create_topic,
    delete_topic,
    describe_topics,
    fetch,
    list_offset,
    produce,
    values_of,
)
from support.group_calls import commit, heartbeat, join, join_alone
from support.virtual import Digest, connect_in_memory
from support.wire import open_sockets
from trionet import ConfigError, LocalProtocolError, open_broker
from trionet.net._channel import Channel
from trionet.net._channels import PollResult
from trionet.net._selector import Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint
from trionet.net.wire._transmission import Send
from trionet.protocol import error_codes
from trionet.server import Request
from trionet.testing import MemoryNetwork, NetworkFaults, run_virtual, virtual


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


async def test_records_come_back(autojump_clock: MockClock, network: MemoryNetwork) -> None:
    async with (
        open_broker(network=network) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await append(client, b"a", b"b")

        assert [b"a", b"b"] == values_of(await fetch(client, "t"))
        large = bytes(300_000)
        await append(client, large)
        assert [large] == values_of(await fetch(client, "t", 2))


@pytest.mark.slow
async def test_no_thread_and_no_socket_takes_part(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    threads, sockets = threading.active_count(), open_sockets()
    limiter = trio.to_thread.current_default_thread_limiter()
    used: list[float] = []

    class Watch(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            used.append(limiter.borrowed_tokens)

    trio.lowlevel.add_instrument(watch := Watch())
    async with (
        open_broker(
            network=network, log_retention_check_interval_ms=1000, connections_max_idle_ms=-1
        ) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", 3, retention_ms=10_000, segment_ms=1000)
        await append(client, b"a", b"b")
        await list_offset(client, "t", network.now_ms())
        await create_topic(client, "kept", internal_segment_bytes=100)
        await append(client, b"a", b"b", b"c", topic="kept")
        assert [b"a"] == values_of(await fetch(client, "kept"))  # of a segment that is finished
        await join_alone(client)
        await trio.sleep(3600)
        await delete_topic(client, "t")
        await trio.sleep(1)
        assert sockets == open_sockets()
    trio.lowlevel.remove_instrument(watch)

    assert {0} == set(used)
    assert threads >= threading.active_count()  # idle ones of tests before may have ended
    assert ([], []) == (network.open_sockets, network.listening)


async def test_a_fetch_waits_for_as_long_as_it_may(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        open_broker(network=network) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        began = trio.current_time()

        assert [] == values_of(await fetch(client, "t", max_wait_ms=600_000))

        assert 600 == pytest.approx(trio.current_time() - began)


@pytest.mark.slow
async def test_retention_removes_what_is_a_week_old(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        open_broker(
            network=network,
            connections_max_idle_ms=-1,
            log_retention_check_interval_ms=1_800_000,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=1_800_000,
        ) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", segment_ms=3_600_000)
        await produce(client, "t", batch(b"old", timestamp=network.now_ms()))
        await trio.sleep(2 * 3600)
        await produce(client, "t", batch(b"new", timestamp=network.now_ms()))
        assert 0 == (await list_offset(client, "t", EARLIEST)).offset

        await trio.sleep(7 * 24 * 3600 - 3600)

        assert 1 == (await list_offset(client, "t", EARLIEST)).offset


async def test_a_member_that_is_silent_is_put_out_of_its_group(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        open_broker(network=network) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        joined = await join_alone(client, session_ms=10_000)
        await trio.sleep(9)
        assert 0 == await heartbeat(client, joined)

        await trio.sleep(11)

        assert error_codes.UNKNOWN_MEMBER_ID == await heartbeat(client, joined)


async def test_idle_connections_are_closed(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        open_broker(network=network, connections_max_idle_ms=600_000) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        began = trio.current_time()

        assert b"" == await client.receive_to_end()

        assert 600 == pytest.approx(trio.current_time() - began, abs=1)


async def test_the_time_of_day_is_the_clocks(autojump_clock: MockClock) -> None:
    network = MemoryNetwork(epoch_ms=1_000_000_000_000)
    async with (
        open_broker(network=network) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", message_timestamp_type="LogAppendTime")
        await trio.sleep(100)
        answer = await produce(client, "t", batch(b"a"))

    assert 1_000_000_000_000 + int(trio.current_time() * 1000) == answer.log_append_time_ms


async def test_several_brokers_are_on_one_network(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        open_broker(network=network, listeners="PLAINTEXT://10.0.0.1:9092") as first,
        open_broker(network=network, listeners="PLAINTEXT://10.0.0.2:9092", node_id=2) as second,
    ):
        assert "10.0.0.1:9092" == first.bootstrap_servers
        async with connect_in_memory(network, second.bootstrap_servers) as client:
            await create_topic(client, "t")
        async with connect_in_memory(network, first.bootstrap_servers) as client:
            assert [] == await describe_topics(client)


@pytest.mark.parametrize(
    "setting",
    [
        {"listeners": "PLAINTEXT://10.0.0.1:1", "metrics_listener": "http://127.0.0.1:0"},
        {"log_dirs": "/nowhere"},
        {"listeners": "SASL_PLAINTEXT://10.0.0.1:1"},
    ],
)
async def test_what_needs_the_system_is_refused(
    autojump_clock: MockClock, network: MemoryNetwork, setting: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="not allowed in virtual time"):
        async with open_broker(setting, network=network):
            pass


async def test_any_protocol_is_served_in_memory(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async def reverse(request: Request) -> bytes:
        await trio.sleep(60)
        return bytes(request.payload)[::-1]

    async with trio.open_nursery() as nursery:
        served = await nursery.start(
            lambda **status: trionet.serve(
                reverse, ["PLAINTEXT://10.0.0.1:0"], network=network, **status
            )
        )
        stream = await network.open_stream(served[0].address)
        await stream.send_all(b"\0\0\0\3abc")

        assert b"\0\0\0\3cba" == await stream.receive_some()
        await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_a_selector_connects_over_the_network(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    server = Endpoint.parse("PLAINTEXT://10.0.0.1:9092")
    network.faults.delay_seconds = (0.1, 0.2)
    with network.listen(server, backlog=1, receive_buffer_bytes=-1) as listening:
        async with network.open_readiness(None) as readiness, trio.open_nursery() as nursery:
            selector = Selector(readiness)
            nursery.start_soon(selector.alarm.keep_time)

            async def next_result() -> PollResult:
                while (result := await selector.poll()).is_empty:
                    pass
                return result

            [address] = await network.resolve("10.0.0.1", 9092)
            sock = network.open_socket(address)
            channel = Channel("a", network.transport(sock), 100, connects=True)
            selector.connect(channel, sock, address)
            assert [channel] == (await next_result()).connected
            near = listening.accept()[0]
            selector.send(channel, Send([b"\0\0\0\2", b"hi"]))
            await trio.sleep(1)
            assert b"\0\0\0\2hi" == near.recv(100)
            near.send(b"\0\0\0\1x")
            assert [(channel, b"x")] == (await next_result()).completed_receives

            other = network.open_socket(address)
            refused = Channel("b", network.transport(other), 100, connects=True)
            selector.connect(refused, other, ("10.0.0.1", 1))
            assert [refused] == (await next_result()).disconnected
            assert CloseReason.NOT_CONNECTED is refused.close_reason
            near.close()
            assert [channel] == (await next_result()).disconnected
            nursery.cancel_scope.cancel()
    assert [] == network.open_sockets


# One seed, one course of events.


async def busy_hour(network: MemoryNetwork, digest: Digest) -> None:
    """Some of everything that draws an id, waits or has an order."""
    async with open_broker(network=network, num_partitions=2) as broker:
        address = broker.bootstrap_servers

        async def consume(number: int) -> None:
            async with connect_in_memory(network, address, f"consumer-{number}") as client:
                joined = await join(client, group="g")
                digest.note(joined.member_id)
                await trio.sleep(number)
                await commit(client, {"t": {number: number}}, joined=joined)
                await fetch(client, "t", partition=number, max_wait_ms=5_000)

        async with connect_in_memory(network, address) as client:
            created = await create_topic(client, "t", 2)
            digest.note(created.topic_id.hex())
            async with trio.open_nursery() as nursery:
                for number in range(2):
                    nursery.start_soon(consume, number)
                await append(client, b"a", b"b")
        await trio.sleep(3600)


def digest_of(seed: int) -> str:
    digest = Digest()
    faults = NetworkFaults(delay_seconds=(0.0, 0.05), short_share=0.3)
    run_virtual(busy_hour, digest, seed=seed, faults=faults, trace=digest.add)
    return digest.hexdigest()


def test_one_seed_gives_one_course_of_events_and_another_another() -> None:
    assert digest_of(1) == digest_of(1)
    assert digest_of(1) != digest_of(2)


@pytest.mark.slow
def test_hashes_of_texts_do_not_change_the_course_of_events() -> None:
    program = "from test_virtual_time import digest_of; print(digest_of(3))"
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": f"{here}:{here.parents[1]}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert f"{digest_of(3)}\n" == done.stdout


def test_run_virtual_gives_what_the_function_returns() -> None:
    async def sleep_long(network: MemoryNetwork, seconds: float) -> float:
        assert network.is_virtual
        began = trio.current_time()
        await trio.sleep(seconds)
        return trio.current_time() - began

    assert 86_400 == run_virtual(sleep_long, 86_400)


async def test_a_run_with_another_clock_says_what_to_do() -> None:
    with pytest.raises(LocalProtocolError, match="run_virtual"), virtual():
        pass


async def test_the_order_of_tasks_comes_from_the_seed(autojump_clock: MockClock) -> None:
    async def order(seed: int) -> list[int]:
        order: list[int] = []

        async def note(number: int) -> None:
            order.append(number)

        with virtual(seed):
            async with trio.open_nursery() as nursery:
                for number in range(10):
                    nursery.start_soon(note, number)
        return order

    assert await order(1) == await order(1)
    assert await order(1) != await order(2)
