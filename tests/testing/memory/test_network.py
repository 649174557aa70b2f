"""What only a network in memory does: delays, faults and separations that can be had again."""

from __future__ import annotations

import re

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from trionet.net.wire._endpoint import Endpoint
from trionet.testing import MemoryNetwork, MemoryStream, NetworkEvent, NetworkFaults

SERVER = Endpoint.parse("PLAINTEXT://10.0.0.1:9092")


async def pair(
    network: MemoryNetwork, local_host: str = "10.0.0.2", backlog: int = 5
) -> tuple[MemoryStream, MemoryStream]:
    """The end at the server, and the one that connected."""
    with network.listen(SERVER, backlog=backlog, receive_buffer_bytes=-1) as listening:
        far = await network.open_stream(SERVER.address, local_host=local_host)
        await network.wait_acceptable(listening)
        return MemoryStream(listening.accept()[0]), far


async def receive(stream: MemoryStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        received = await stream.receive_some()
        assert received
        data += received
    return data


async def test_what_is_sent_is_there_after_the_delay_and_in_order(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork(faults=NetworkFaults(delay_seconds=(0.5, 2.0)))
    near, far = await pair(network)
    async with near, far:
        began = trio.current_time()
        for number in range(20):
            await far.send_all(b"%02d" % number)
        sent_at = trio.current_time()

        received = await receive(near, 40)

    assert b"".join(b"%02d" % number for number in range(20)) == received
    assert began == sent_at
    assert 0.5 <= trio.current_time() - began <= 2.0


async def test_connecting_takes_a_delay_each_way(autojump_clock: MockClock) -> None:
    network = MemoryNetwork(faults=NetworkFaults(delay_seconds=(1.0, 1.0)))
    began = trio.current_time()

    near, far = await pair(network)

    assert 2.0 == trio.current_time() - began
    await near.aclose()
    await far.aclose()


async def test_nothing_passes_between_separated_hosts_until_they_are_healed(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    near, far = await pair(network, "10.0.0.2")
    other_near, other_far = await pair(network, "10.0.0.3")
    async with near, far, other_near, other_far:
        network.separate(["10.0.0.1"], ["10.0.0.2"])
        await far.send_all(b"held")
        await near.send_all(b"held too")
        await other_far.send_all(b"passes")

        assert b"passes" == await other_near.receive_some()
        with trio.move_on_after(3600) as waiting:
            await near.receive_some()
        assert waiting.cancelled_caught

        network.heal()
        assert b"held" == await near.receive_some()
        assert b"held too" == await far.receive_some()


async def test_connecting_across_a_separation_waits(autojump_clock: MockClock) -> None:
    network = MemoryNetwork()
    network.separate(["10.0.0.1"], ["10.0.0.2"])
    with network.listen(SERVER, backlog=5, receive_buffer_bytes=-1):
        with trio.move_on_after(60) as waiting:
            await network.open_stream(SERVER.address, local_host="10.0.0.2")
        assert waiting.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(heal_after, network, 30)
            stream = await network.open_stream(SERVER.address, local_host="10.0.0.2")

    await stream.aclose()
    assert [] == network.open_sockets


@pytest.mark.parametrize("is_silent", [False, True])
async def test_what_a_killed_host_had_open_is_closed(
    autojump_clock: MockClock, is_silent: bool
) -> None:
    network = MemoryNetwork()
    near, far = await pair(network, "10.0.0.2")
    other_near, other_far = await pair(network, "10.0.0.3")
    async with near, far, other_near, other_far:
        network.kill_host("10.0.0.2", is_silent=is_silent)

        with pytest.raises(trio.ClosedResourceError):
            await far.send_all(b"x")
        with trio.move_on_after(60) as waiting:
            assert b"" == await near.receive_some()
        assert is_silent is waiting.cancelled_caught
        await near.send_all(b"x")
        with pytest.raises(trio.BrokenResourceError):
            await near.receive_some()
        await other_far.send_all(b"y")
        assert b"y" == await other_near.receive_some()


async def heal_after(network: MemoryNetwork, seconds: float) -> None:
    await trio.sleep(seconds)
    network.heal()


async def test_connections_beyond_the_backlog_wait_for_their_turn(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    with network.listen(SERVER, backlog=1, receive_buffer_bytes=-1) as listening:
        first = await network.open_stream(SERVER.address)
        with trio.move_on_after(1) as waiting:
            await network.open_stream(SERVER.address)
        assert waiting.cancelled_caught
        listening.accept()[0].close()

        second = await network.open_stream(SERVER.address)

    await first.aclose()
    await second.aclose()


async def test_reads_and_writes_may_take_a_part_only(autojump_clock: MockClock) -> None:
    network = MemoryNetwork(faults=NetworkFaults(short_share=1.0))
    near, far = await pair(network)
    async with near, far:
        sent = [far.socket.send(bytes(100)) for _ in range(20)]
        received = [len(near.socket.recv(100)) for _ in range(5)]

    assert 1 <= min(sent) < max(sent) <= 100
    assert 1 <= min(received) < max(received)


async def test_a_connection_may_break_at_a_write(autojump_clock: MockClock) -> None:
    network = MemoryNetwork(faults=NetworkFaults(reset_share=1.0))
    near, far = await pair(network)
    async with near, far:
        await far.send_all(b"x")

        with pytest.raises(trio.BrokenResourceError):
            await far.receive_some()
        assert b"x" == await near.receive_some()
        with pytest.raises(trio.BrokenResourceError):
            await near.receive_some()


async def events_of(seed: int) -> list[NetworkEvent]:
    events: list[NetworkEvent] = []
    faults = NetworkFaults(delay_seconds=(0.0, 1.0), short_share=0.5, reset_share=0.05)
    network = MemoryNetwork(seed, faults=faults, trace=events.append)
    near, far = await pair(network)
    async with near, far:
        try:
            for _ in range(10):
                await far.send_all(bytes(50))
                await receive(near, 50)
        except trio.BrokenResourceError:
            pass
    return events


async def test_one_seed_gives_one_course_of_events(autojump_clock: MockClock) -> None:
    first, second = await events_of(1), await events_of(1)

    assert [(e.what, e.local, e.remote, e.data) for e in first] == [
        (e.what, e.local, e.remote, e.data) for e in second
    ]
    # The second began later, so that its sums are rounded in another way.
    assert [e.at - first[0].at for e in first] == pytest.approx(
        [e.at - second[0].at for e in second]
    )
    assert len({len(await events_of(seed)) for seed in range(10)}) > 1


async def test_a_stream_has_one_sender_and_one_receiver(autojump_clock: MockClock) -> None:
    near, far = await pair(MemoryNetwork())
    async with near, far, trio.open_nursery() as nursery:
        nursery.start_soon(near.receive_some)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await near.receive_some()
        nursery.cancel_scope.cancel()


async def test_a_stream_that_is_closed_says_so_to_who_waits(autojump_clock: MockClock) -> None:
    near, far = await pair(MemoryNetwork())
    async with far, trio.open_nursery() as nursery:

        async def close_later() -> None:
            await trio.sleep(1)
            await near.aclose()

        nursery.start_soon(close_later)
        with pytest.raises(trio.ClosedResourceError):
            await near.receive_some()
        with pytest.raises(trio.ClosedResourceError):
            await near.send_all(b"x")
        assert b"" == await far.receive_some()


async def test_only_numbers_and_localhost_are_hosts(autojump_clock: MockClock) -> None:
    network = MemoryNetwork()

    assert [("127.0.0.1", 1)] == await network.resolve("localhost", 1)
    for name in ("kafka.example", "kafka..example"):
        with pytest.raises(OSError, match=f"cannot resolve '{re.escape(name)}'"):
            await network.resolve(name, 9092)
    with pytest.raises(OSError, match=r"could not connect to 10\.0\.0\.9:1"):
        await network.open_stream("10.0.0.9:1")
    assert [] == network.open_sockets


async def test_a_host_is_the_same_in_every_spelling_of_its_address(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    server = Endpoint.parse("PLAINTEXT://[2001:DB8:0::1]:9092")
    with network.listen(server, backlog=5, receive_buffer_bytes=-1):
        network.separate(["2001:db8::0001"], ["::ffff:10.0.0.2"])
        with trio.move_on_after(10) as cut_off:
            await network.open_stream("[2001:db8::1]:9092", local_host="10.0.0.2")
        assert cut_off.cancelled_caught

        network.heal()
        await (await network.open_stream("[2001:db8::1]:9092", local_host="10.0.0.2")).aclose()
        network.kill_host("2001:db8:0:0:0:0:0:1")

        assert [] == network.listening
