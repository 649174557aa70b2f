"""Limits on connections, as peers on real connections meet them, in virtual time."""

from __future__ import annotations

import logging

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from support.serving import Serving, serving
from support.wire import LOOPBACK, Peer, open_sockets
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server.quotas._connection_limits import ListenerLimits, ServerLimits

OTHER_ADDRESS = "127.0.0.2"


async def connected(rig: Serving, count: int, number: int = 0) -> list[Peer]:
    """Connections to one listener that are served, the last one used last."""
    peers = []
    for _ in range(count):
        peers.append(await rig.connect(number))
        await rig.exchange(peers[-1], b"in")
    return peers


async def is_refused(peer: Peer) -> bool:
    return await peer.receive_to_end() == b""


async def is_waiting(rig: Serving, peer: Peer) -> bool:
    """Whether nothing happens to a connection that asks for something."""
    await peer.send_frames(b"? may I")
    await wait_all_tasks_blocked(0.001)
    return not rig.requests.statistics().current_buffer_used


async def is_let_in(rig: Serving, peer: Peer) -> bool:
    """Whether what :func:`is_waiting` asked for comes through."""
    request = await rig.receive(b"? may I")
    return request.peer_address == LOOPBACK and peer.port > 0


async def test_one_connection_too_many_from_an_address_is_closed(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """P20, Q4: unserved, told with its limit; one closes, and the next gets in."""
    caplog.set_level(logging.INFO, "trionet.server")
    limits = ServerLimits(connections_per_ip_max=5)
    async with serving(kind, limits=limits) as rig:
        peers = await connected(rig, 5)

        assert await is_refused(await rig.connect())
        assert await is_refused(await rig.connect())

        rejected = [line for line in caplog.messages if "rejected" in line]
        assert 2 == len(rejected)
        begin = "[SocketServer broker 0] rejected a connection from 127.0.0.1"
        assert rejected[0].startswith(begin)
        assert rejected[0].endswith("(limit: 5)")
        assert 5 == rig.server.quotas.counts.by_address[LOOPBACK]
        await rig.exchange(await rig.connect(local_host=OTHER_ADDRESS), b"from elsewhere")
        peers[0].close()
        await wait_all_tasks_blocked()
        await connected(rig, 1)


@pytest.mark.parametrize("spelling", [LOOPBACK, f"::ffff:{LOOPBACK}"])
async def test_no_connections_but_those_of_one_address(kind: ReadinessKind, spelling: str) -> None:
    """P21: five of this one, and none of any other."""
    limits = ServerLimits(connections_per_ip_max=0, overrides={spelling: 5})
    async with serving(kind, limits=limits) as rig:
        await connected(rig, 5)

        assert await is_refused(await rig.connect())
        assert await is_refused(await rig.connect(local_host=OTHER_ADDRESS))
        assert 5 == rig.server.quotas.total


async def test_too_many_connections_a_second_from_an_address(
    kind: ReadinessKind, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """P24, Q12: two wait unserved and are closed; a later one works; others never notice."""
    caplog.set_level(logging.INFO, "trionet.server")
    async with serving(kind, quota_window_num=2) as rig:
        rig.server.quotas.set_address_rate(None, 5)
        await connected(rig, 5)
        throttled = [await rig.connect(), await rig.connect()]
        await wait_all_tasks_blocked()
        await rig.exchange(await rig.connect(local_host=OTHER_ADDRESS), b"from elsewhere")
        assert 2 == len(rig.server._listeners["L0"]._throttled)
        assert 6 == rig.server.quotas.total

        mock_clock.jump(1.1)

        for peer in throttled:
            assert await is_refused(peer)
        assert 6 == rig.server.statistics().connections_created
        assert 2 == rig.server.quotas.listener("L0").throttled
        assert 2 == sum(
            "more often than its connection_creation_rate" in m for m in caplog.messages
        )
        mock_clock.jump(2)
        await connected(rig, 1)


async def test_throttled_connections_are_closed_with_the_server(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """P25: long before their time; nothing is left open."""
    async with serving(kind, quota_window_num=2) as rig:
        rig.server.quotas.set_address_rate(None, 1)
        await connected(rig, 1)
        throttled = [await rig.connect() for _ in range(3)]
        await wait_all_tasks_blocked()
        before = open_sockets()

        await rig.server.stop()

        for peer in throttled:
            assert await is_refused(peer)
        assert len(open_sockets()) <= len(before) - 3 - 1 - 1  # and the other, and the listening


async def test_a_full_server_lets_the_next_connection_wait_for_one_to_close(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """Q5: connected, as the kernel has it, but not served; its wait is measured."""
    async with serving(kind, limits=ServerLimits(connections_max=5)) as rig:
        peers = await connected(rig, 5)
        waiting = await rig.connect()
        assert await is_waiting(rig, waiting)
        mock_clock.jump(3)

        peers[2].close()

        assert await is_let_in(rig, waiting)
        assert 3 == rig.server.quotas.listener("L0").blocked_seconds
        assert {CloseReason.PEER_CLOSED: 1} == rig.reasons()


async def test_the_protected_listener_takes_the_place_of_the_least_recently_used(
    kind: ReadinessKind,
) -> None:
    """Q6, S31: as many others are closed as came too many, the least recently used first."""
    limits = ServerLimits(connections_max=5)
    async with serving(kind, listeners=2, limits=limits, protected_listener="L1") as rig:
        first, second, *others = await connected(rig, 5)
        await rig.exchange(first, b"again")

        await connected(rig, 1, number=1)

        assert await is_refused(second)
        await connected(rig, 1, number=1)
        assert await is_refused(others[0])
        await wait_all_tasks_blocked()
        assert {CloseReason.EXCESS_CONNECTION: 2} == rig.reasons()
        assert 5 == rig.server.quotas.total
        for peer in (first, others[1], others[2]):
            await rig.exchange(peer, b"still")
        assert await is_waiting(rig, await rig.connect())


async def test_room_for_one_costs_one_connection_however_many_processors_there_are(
    kind: ReadinessKind,
) -> None:
    """Q6: each of them sees that there is one too many."""
    limits = ServerLimits(connections_max=6)
    async with serving(
        kind, listeners=2, limits=limits, protected_listener="L1", num_network_threads=3
    ) as rig:
        await connected(rig, 6)

        await connected(rig, 1, number=1)
        await wait_all_tasks_blocked()

        assert {CloseReason.EXCESS_CONNECTION: 1} == rig.reasons()
        assert 6 == rig.server.quotas.total


async def test_a_full_server_of_protected_connections_closes_none_of_them(
    kind: ReadinessKind,
) -> None:
    """Q6: they are in excess, nobody else is there to go, and the others do not spin for it."""
    limits = ServerLimits(connections_max=2)
    async with serving(kind, listeners=2, limits=limits, protected_listener="L1") as rig:
        peers = await connected(rig, 4, number=1)

        for peer in peers:
            await rig.exchange(peer, b"still")
        await wait_all_tasks_blocked()
        assert {} == rig.reasons()
        assert 4 == rig.server.quotas.total


async def test_a_full_listener_waits_for_itself_only(kind: ReadinessKind) -> None:
    """Q7: the protected one, too; the other one does not notice."""
    full = ListenerLimits(connections_max=2)
    async with serving(
        kind, listeners=3, listener_limits={"L0": full, "L1": full}, protected_listener="L1"
    ) as rig:
        for number in (0, 1):
            peers = await connected(rig, 2, number)
            waiting = await rig.connect(number)
            assert await is_waiting(rig, waiting)
            await connected(rig, 1, 2)

            peers[0].close()

            assert await is_let_in(rig, waiting)


async def test_a_rate_of_a_listener_makes_its_connections_wait_and_no_others(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """Q9, Q10: nobody is refused; who waits gets in when the rate has come down."""
    slow = ListenerLimits(connections_per_second_max=4)
    async with serving(kind, listeners=2, listener_limits={"L0": slow}, quota_window_num=2) as rig:
        await connected(rig, 4)
        waiting = await rig.connect()
        assert await is_waiting(rig, waiting)
        await connected(rig, 8, number=1)

        mock_clock.jump(1)

        assert await is_let_in(rig, waiting)
        quota = rig.server.quotas.listener("L0")
        assert 1 == quota.delayed
        assert 0 < quota.delayed_seconds <= 1
        assert {} == rig.reasons()


async def test_limits_of_a_running_server_change(kind: ReadinessKind) -> None:
    """Q20: a higher limit lets who waits in, a lower one makes others go."""
    async with serving(kind, limits=ServerLimits(connections_per_ip_max=2)) as rig:
        quotas = rig.server.quotas
        peers = await connected(rig, 2)
        assert await is_refused(await rig.connect())
        quotas.set_limits(
            ServerLimits(connections_per_ip_max=2, overrides={LOOPBACK: 4}, connections_max=3)
        )
        peers += await connected(rig, 1)
        waiting = await rig.connect()
        assert await is_waiting(rig, waiting)

        quotas.set_limits(ServerLimits(connections_max=4))
        assert await is_let_in(rig, waiting)
        quotas.set_limits(ServerLimits(connections_max=2))

        assert await is_refused(peers[0])
        assert await is_refused(peers[1])
        await rig.exchange(peers[2], b"still")
        assert {CloseReason.EXCESS_CONNECTION: 2} == rig.reasons()


async def test_the_limit_of_a_running_listener_changes(kind: ReadinessKind) -> None:
    """Q20: who waits for it is let in at once."""
    async with serving(kind, listener_limits={"L0": ListenerLimits(connections_max=1)}) as rig:
        await connected(rig, 1)
        waiting = await rig.connect()
        assert await is_waiting(rig, waiting)

        rig.server.quotas.set_listener_limits("L0", ListenerLimits(connections_max=2))

        assert await is_let_in(rig, waiting)
