"""Both readiness backends keep one contract, but for the hang-up of a socket nobody asks about."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.wire import open_sockets, reset, tcp_pair
from trionet.net.wire._readiness import (
    HANGUP,
    READ,
    WRITE,
    Readiness,
    ReadinessKind,
    default_readiness_kind,
    open_readiness,
)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = tcp_pair()
    near.setblocking(False)
    with near, far:
        yield near, far


@asynccontextmanager
async def opened(kind: ReadinessKind) -> AsyncIterator[Readiness]:
    with trio.fail_after(5):
        async with open_readiness(kind) as readiness:
            yield readiness


async def next_events(readiness: Readiness) -> list[tuple[int, int]]:
    """What the next poll with something to report says."""
    while not (events := readiness.poll()):
        await readiness.park()
    return events


async def test_nothing_is_ready_when_nothing_happened(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    async with opened(kind) as readiness:
        readiness.register(pair[0].fileno(), READ)
        await wait_all_tasks_blocked()

        assert [] == readiness.poll()


async def test_data_ends_the_park(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness, trio.open_nursery() as nursery:
        readiness.register(near.fileno(), READ)

        nursery.start_soon(readiness.park)
        await wait_all_tasks_blocked()
        far.send(b"x")

    # The nursery ended, hence the park did.


async def test_what_was_not_read_is_reported_again(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    """Level-triggered: nothing is lost when a poll's events are left alone."""
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.send(b"x")

        for _ in range(3):
            assert [(near.fileno(), READ)] == await next_events(readiness)


async def test_what_was_read_is_not_reported_again(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.send(b"x")
        await next_events(readiness)
        near.recv(1)
        await wait_all_tasks_blocked()

        assert [] == readiness.poll()


async def test_only_what_is_of_interest_is_reported(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.send(b"x")
        await next_events(readiness)

        readiness.modify(near.fileno(), WRITE)
        assert [(near.fileno(), WRITE)] == await next_events(readiness)
        readiness.modify(near.fileno(), READ | WRITE)
        assert READ in {bits & READ for _, bits in await next_events(readiness)}
        readiness.modify(near.fileno(), 0)
        await wait_all_tasks_blocked()
        assert [] == readiness.poll()


async def test_interest_that_comes_back_sees_what_arrived_meanwhile(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        await wait_all_tasks_blocked()
        readiness.modify(near.fileno(), 0)
        far.send(b"x")
        await wait_all_tasks_blocked()
        assert [] == readiness.poll()

        readiness.modify(near.fileno(), READ)

        assert [(near.fileno(), READ)] == await next_events(readiness)


async def test_several_ready_sockets_show_in_one_poll(kind: ReadinessKind) -> None:
    pairs = [tcp_pair() for _ in range(5)]
    try:
        async with opened(kind) as readiness:
            for near, far in pairs:
                readiness.register(near.fileno(), READ)
                far.send(b"x")
            await wait_all_tasks_blocked()

            ready = {fd for fd, _ in readiness.poll()}

        assert {near.fileno() for near, _ in pairs} == ready
    finally:
        for near, far in pairs:
            near.close()
            far.close()


async def test_a_poll_reports_so_many_sockets_and_the_next_one_others(
    kind: ReadinessKind,
) -> None:
    """Nobody is passed over for ever: what was told of and not consumed comes last."""
    pairs = [tcp_pair() for _ in range(5)]
    try:
        async with opened(kind) as readiness:
            for near, far in pairs:
                readiness.register(near.fileno(), READ)
                far.send(b"x")
            await wait_all_tasks_blocked()

            polls = []
            for _ in range(3):
                polls.append({fd for fd, _ in readiness.poll(2)})
                await wait_all_tasks_blocked()

        assert [2, 2, 2] == [len(fds) for fds in polls]
        assert {near.fileno() for near, _ in pairs} == set().union(*polls)
    finally:
        for near, far in pairs:
            near.close()
            far.close()


async def test_unregistered_socket_is_silent(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.send(b"x")
        await next_events(readiness)

        readiness.unregister(near.fileno())
        await wait_all_tasks_blocked()

        assert [] == readiness.poll()


async def test_number_of_a_closed_socket_can_be_registered_again(kind: ReadinessKind) -> None:
    """Nothing of the old socket, not even what was on its way, shows for the new one."""
    async with opened(kind) as readiness:
        for _ in range(3):
            near, far = tcp_pair()
            with far:
                readiness.register(near.fileno(), READ | WRITE)
                await wait_all_tasks_blocked()
                readiness.unregister(near.fileno())
                near.close()
            near, far = tcp_pair()
            with near, far:
                readiness.register(near.fileno(), READ)
                await wait_all_tasks_blocked()
                assert [] == readiness.poll()
                far.send(b"x")
                assert [(near.fileno(), READ)] == await next_events(readiness)
                readiness.unregister(near.fileno())


async def test_backend_works_in_a_cancelled_block(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    """Until the block ends, for a task that shields itself."""
    near, far = pair
    with trio.CancelScope() as scope:
        async with opened(kind) as readiness:
            scope.cancel()
            with trio.CancelScope(shield=True):
                readiness.register(near.fileno(), READ)
                far.send(b"x")
                assert [(near.fileno(), READ)] == await next_events(readiness)
                readiness.unregister(near.fileno())


@pytest.mark.parametrize("passes", range(4))
async def test_socket_unregistered_while_its_data_is_being_noticed_is_silent(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket], passes: int
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        for _ in range(10):
            readiness.register(near.fileno(), READ)
            await wait_all_tasks_blocked()
            far.send(b"x")
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            readiness.unregister(near.fileno())
            await wait_all_tasks_blocked()

            assert [] == readiness.poll()
            near.recv(1)


async def test_registering_and_leaving_at_once_leaves_nothing(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    """Before the backend had a chance to look at the socket."""
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        readiness.unregister(near.fileno())
        readiness.register(near.fileno(), READ)
        readiness.unregister(near.fileno())
        far.send(b"x")
        await wait_all_tasks_blocked()

        assert [] == readiness.poll()


async def test_wakeup_ends_the_park(kind: ReadinessKind) -> None:
    async with opened(kind) as readiness, trio.open_nursery() as nursery:
        nursery.start_soon(readiness.park)
        await wait_all_tasks_blocked()

        readiness.wakeup()
        readiness.wakeup()


async def test_wakeup_and_data_together_end_one_park(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readiness.park)
            await wait_all_tasks_blocked()
            far.send(b"x")
            readiness.wakeup()

        assert [(near.fileno(), READ)] == await next_events(readiness)


async def test_park_can_be_cancelled_and_repeated(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        with trio.CancelScope() as scope:
            scope.cancel()
            await readiness.park()
        assert scope.cancelled_caught

        far.send(b"x")

        assert [(near.fileno(), READ)] == await next_events(readiness)


async def test_poll_that_finds_something_needs_no_park(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    """A park that begins when something is ready already is over at once."""
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.send(b"x")
        await wait_all_tasks_blocked()

        await readiness.park()

        assert [(near.fileno(), READ)] == readiness.poll()


async def test_park_after_events_that_were_left_alone_is_over_at_once(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.send(b"x")
        assert [(near.fileno(), READ)] == await next_events(readiness)

        await readiness.park()

        assert [(near.fileno(), READ)] == readiness.poll()


async def test_end_of_stream_is_readable(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    async with opened(kind) as readiness:
        readiness.register(near.fileno(), READ)
        far.close()

        assert [(near.fileno(), READ)] == await next_events(readiness)


async def test_poller_reports_a_hang_up_without_being_asked(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    async with opened("poller") as readiness:
        readiness.register(near.fileno(), 0)
        reset(far)

        [(fd, bits)] = await next_events(readiness)

        assert near.fileno() == fd
        assert bits & HANGUP


async def test_socket_backend_is_silent_about_a_hang_up_unless_asked(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """It has no task that waits there: the reset shows when the socket is next used."""
    near, far = pair
    async with opened("socket") as readiness:
        readiness.register(near.fileno(), 0)
        reset(far)
        await wait_all_tasks_blocked()
        assert [] == readiness.poll()

        readiness.modify(near.fileno(), READ)

        assert [(near.fileno(), READ)] == await next_events(readiness)


async def test_end_of_the_block_closes_what_it_opened(
    kind: ReadinessKind, pair: tuple[socket.socket, socket.socket]
) -> None:
    before = open_sockets()

    async with opened(kind) as readiness:
        readiness.register(pair[0].fileno(), READ | WRITE)

    assert before == open_sockets()


async def test_error_in_the_block_closes_what_it_opened_too(kind: ReadinessKind) -> None:
    before = open_sockets()

    with pytest.RaisesGroup(ZeroDivisionError, allow_unwrapped=True, flatten_subgroups=True):
        async with opened(kind):
            raise ZeroDivisionError

    assert before == open_sockets()


async def test_default_is_the_poller_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "poller" == default_readiness_kind()

    monkeypatch.setattr(sys, "platform", "darwin")

    assert "socket" == default_readiness_kind()


async def test_poller_on_a_system_without_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(ValueError, match="'poller' is not available on win32; allowed: 'socket'"):
        async with open_readiness("poller"):
            pass
