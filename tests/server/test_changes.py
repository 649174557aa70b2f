"""Listeners that come and go, and numbers of tasks that change, while the server runs."""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.serving import echo, listener
from support.wire import Peer, listens_on, open_sockets
from trionet.errors import ConfigError, LocalProtocolError
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import (
    NO_OP,
    ListenerLimits,
    Request,
    Response,
    ServerConfig,
    SocketServer,
)
from trionet.server._acceptor import GRACE_SECONDS
from trionet.server._processor import Processor


@asynccontextmanager
async def serving(
    kind: ReadinessKind, *names: str, processors: int = 2, own: dict[str, int] | None = None
) -> AsyncIterator[SocketServer]:
    """A server with listeners of these names; no socket may be left open when the block ends."""
    before = open_sockets()
    config = ServerConfig(
        num_network_threads=processors, listener_network_threads=own or {}, readiness=kind
    )
    server = SocketServer(echo, [listener(name=name) for name in names], config)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            yield server
            nursery.cancel_scope.cancel()
    assert before == open_sockets()


def processors_of(server: SocketServer) -> dict[str, int]:
    """How many processors each listener has."""
    names = [processor.endpoint.listener_name for processor in server.processors]
    return {name: names.count(name) for name in names}


async def works(endpoint: Endpoint) -> bool:
    with await Peer.connect(endpoint.port) as peer:
        await peer.send_frames(b"a")
        return await peer.receive_frame() == b"a"


# Numbers.


async def test_another_number_is_for_listeners_without_one_of_their_own(
    kind: ReadinessKind,
) -> None:
    """Q21: 3 to 4 for all of those, and 2 to 3 for one alone."""
    async with serving(kind, "A", "B", "C", processors=3, own={"C": 2}) as server:
        assert {"A": 3, "B": 3, "C": 2} == processors_of(server)

        await server.resize_processors(4)
        assert {"A": 4, "B": 4, "C": 2} == processors_of(server)

        await server.resize_processors(3, "C")
        assert {"A": 4, "B": 4, "C": 3} == processors_of(server)
        assert all([await works(endpoint) for endpoint in server.endpoints for _ in range(4)])


async def test_fewer_processors_close_the_connections_of_those_that_end(
    kind: ReadinessKind,
) -> None:
    async with serving(kind, "A", processors=2) as server:
        with ExitStack() as opened:
            port = server.endpoints[0].port
            peers = [opened.enter_context(await Peer.connect(port)) for _ in range(4)]
            for peer in peers:
                await peer.send_frames(b"a")
                await peer.receive_frame()

            await server.resize_processors(1)

            for peer in peers[1::2]:
                assert b"" == await peer.receive_to_end()
            for peer in peers[::2]:
                await peer.send_frames(b"b")
                assert b"b" == await peer.receive_frame()
        await wait_all_tasks_blocked()
        statistics = server.statistics()
        assert {CloseReason.SERVER_SHUTDOWN: 2, CloseReason.PEER_CLOSED: 2} == statistics.closed
        assert (4, 6) == (statistics.connections_created, statistics.requests)


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_processor_that_ends_still_sends_the_responses_that_it_owes_for_a_second(
    kind: ReadinessKind, mock_clock: MockClock, is_answered: bool
) -> None:
    may_answer = trio.Event()

    async def hold(request: Request) -> Response:
        await may_answer.wait()
        return await echo(request)

    config = ServerConfig(num_network_threads=2, readiness=kind)
    server = SocketServer(hold, [listener()], config)
    async with trio.open_nursery() as nursery:
        [endpoint] = await nursery.start(server.run)
        with await Peer.connect(endpoint.port) as a, await Peer.connect(endpoint.port) as b:
            await b.send_frames(b"b", b"is not read any more")
            await wait_all_tasks_blocked(0.01)

            await server.resize_processors(1)
            await wait_all_tasks_blocked(0.01)
            if not is_answered:
                mock_clock.jump(GRACE_SECONDS)
                await wait_all_tasks_blocked(0.01)
            may_answer.set()

            assert (b"\0\0\0\1b" if is_answered else b"") == await b.receive_to_end()
            await a.send_frames(b"a")
            assert b"a" == await a.receive_frame()
        nursery.cancel_scope.cancel()


async def test_a_stop_waits_for_the_responses_of_a_processor_that_ends(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    may_answer = trio.Event()

    async def hold(request: Request) -> Response:
        await may_answer.wait()
        return await echo(request)

    config = ServerConfig(num_network_threads=2, readiness=kind)
    server = SocketServer(hold, [listener()], config)
    async with trio.open_nursery() as nursery:
        [endpoint] = await nursery.start(server.run)
        with await Peer.connect(endpoint.port), await Peer.connect(endpoint.port) as surplus:
            await surplus.send_frames(b"b")
            await wait_all_tasks_blocked(0.01)
            await server.resize_processors(1)

            nursery.start_soon(server.stop)
            await wait_all_tasks_blocked(0.01)
            may_answer.set()

            assert b"\0\0\0\1b" == await surplus.receive_to_end()


@pytest.mark.parametrize(("count", "allowed"), [(0, False), (1, True), (6, True), (7, False)])
async def test_a_number_changes_to_half_or_twice_at_most(
    kind: ReadinessKind, count: int, allowed: bool
) -> None:
    """Half of 3 is 1, as in Kafka."""
    async with serving(kind, "A", "B", processors=3, own={"B": 1}) as server:
        if allowed:
            await server.resize_processors(count)
        else:
            with pytest.raises(ConfigError, match="allowed: 1 to 6"):
                await server.resize_processors(count)

        assert {"A": count if allowed else 3, "B": 1} == processors_of(server)


async def test_a_number_that_one_listener_cannot_have_changes_none(kind: ReadinessKind) -> None:
    async with serving(kind, "A", "B", processors=2) as server:
        await server.resize_processors(4, "B")

        with pytest.raises(LocalProtocolError, match="unknown listener C"):
            await server.resize_processors(4, "C")
        with pytest.raises(ConfigError, match="cannot change from 4 to 1"):
            await server.resize_processors(1)

        assert {"A": 2, "B": 4} == processors_of(server)


async def test_handlers_that_are_too_many_finish_what_they_are_at(kind: ReadinessKind) -> None:
    may_go_on = trio.Event()

    async def hold(request: Request) -> Response:
        await may_go_on.wait()
        return NO_OP

    before = open_sockets()
    config = ServerConfig(num_io_threads=4, readiness=kind)
    server = SocketServer(hold, [listener()], config)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            [endpoint] = await nursery.start(server.run)
            with await Peer.connect(endpoint.port) as a, await Peer.connect(endpoint.port) as b:
                await a.send_frames(b"a", b"a", b"a")
                await b.send_frames(b"b")
                await wait_all_tasks_blocked()
                server.resize_handlers(2)
                may_go_on.set()
                await wait_all_tasks_blocked()

                assert 4 == server.statistics().requests
                assert 0 == server.statistics().request_queue_size
                with pytest.raises(ConfigError, match="allowed: 1 to 4"):
                    server.resize_handlers(5)
            nursery.cancel_scope.cancel()
    assert before == open_sockets()


@pytest.mark.parametrize("busy", range(4))
async def test_handlers_are_as_many_as_asked_for_however_the_number_went(
    kind: ReadinessKind, busy: int
) -> None:
    """Whichever of four was still at work when there were to be fewer, and then more again."""
    may_go_on: dict[str, trio.Event] = {}

    async def hold(request: Request) -> Response:
        name = trio.lowlevel.current_task().name
        may_go_on[name] = trio.Event()
        await may_go_on[name].wait()
        del may_go_on[name]
        return NO_OP

    server = SocketServer(hold, [listener()], ServerConfig(num_io_threads=4, readiness=kind))
    with trio.fail_after(10), ExitStack() as opened:
        async with trio.open_nursery() as nursery:
            [endpoint] = await nursery.start(server.run)
            port = endpoint.port
            peers = [opened.enter_context(await Peer.connect(port)) for _ in range(4)]
            for peer in peers:
                await peer.send_frames(b"a")
            await wait_all_tasks_blocked()
            last = may_go_on[f"data-plane-kafka-request-handler-0-{busy}"]
            for event in may_go_on.values():
                if event is not last:
                    event.set()
            for count in (2, 4, 2, 3):
                await wait_all_tasks_blocked()
                assert [last] == list(may_go_on.values())
                server.resize_handlers(count)
            last.set()
            await wait_all_tasks_blocked()

            for peer in peers:
                await peer.send_frames(b"b")
            await wait_all_tasks_blocked()
            assert 3 == len(may_go_on)
            nursery.cancel_scope.cancel()


async def test_what_has_stopped_cannot_be_changed(kind: ReadinessKind) -> None:
    server = SocketServer(echo, [listener()], ServerConfig(readiness=kind))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            await server.stop()

        with pytest.raises(LocalProtocolError, match="is not running"):
            server.resize_handlers(9)
        with pytest.raises(LocalProtocolError, match="is not running"):
            await server.add_listener(listener(name="B"))
        with pytest.raises(LocalProtocolError, match="is not running"):
            await server.resize_processors(4)


async def test_what_does_not_run_cannot_be_changed() -> None:
    server = SocketServer(echo, [listener()])

    with pytest.raises(LocalProtocolError, match="is not running"):
        server.resize_handlers(4)
    with pytest.raises(LocalProtocolError, match="is not running"):
        await server.add_listener(listener(name="B"))
    with pytest.raises(LocalProtocolError, match="unknown listener B"):
        await server.remove_listener("B")
    with pytest.raises(LocalProtocolError, match="is not running"):
        await server.resize_processors(4)


# Listeners.


async def test_a_listener_can_come_and_go_again_and_again(kind: ReadinessKind) -> None:
    async with serving(kind, "A") as server:
        for _ in range(3):
            added = await server.add_listener(listener(name="B"))
            assert added == server.endpoints[1]
            assert await works(added)
            with pytest.raises(LocalProtocolError, match="listener B already exists"):
                await server.add_listener(listener(name="B"))

            await server.remove_listener("B")

            assert not listens_on(added.port)
            assert {"A": 2} == processors_of(server)
            assert await works(server.endpoints[0])


async def test_listeners_that_come_and_go_are_logged(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trionet.server")
    async with serving(kind, "A") as server:
        caplog.clear()

        added = await server.add_listener(listener(name="B"))
        await server.remove_listener("B")

        prefix = "[SocketServer broker 0]"
        assert [
            f"{prefix} started listener {added}",
            f"{prefix} stopped listener {added}",
        ] == caplog.messages


async def test_a_removed_listener_closes_its_connections_and_counts_on(
    kind: ReadinessKind,
) -> None:
    async with serving(kind, "A", "B") as server:
        kept, gone = [await Peer.connect(endpoint.port) for endpoint in server.endpoints]
        with kept, gone:
            for peer in (kept, gone):
                await peer.send_frames(b"a")
                await peer.receive_frame()

            await server.remove_listener("B")

            assert b"" == await gone.receive_to_end()
            await kept.send_frames(b"b")
            assert b"b" == await kept.receive_frame()
            statistics = server.statistics()
            assert {CloseReason.SERVER_SHUTDOWN: 1} == statistics.closed
            assert (1, 2, 3) == (
                statistics.connections,
                statistics.connections_created,
                statistics.requests,
            )
            assert 1 == server.quotas.total


@pytest.mark.slow
async def test_nothing_is_kept_of_processors_that_have_ended_but_their_numbers(
    kind: ReadinessKind,
) -> None:
    async with serving(kind, "A") as server:
        for _ in range(3):
            assert await works(await server.add_listener(listener(name="B")))
            await server.remove_listener("B")
            await server.resize_processors(4)
            assert all([await works(server.endpoints[0]) for _ in range(4)])
            await server.resize_processors(2)
        await wait_all_tasks_blocked()

        gc.collect()
        kept = [each for each in gc.get_objects() if isinstance(each, Processor)]
        ids = {each.id for each in kept if each._shared is server._shared}
        assert {processor.id for processor in server.processors} == ids
        statistics = server.statistics()
        assert (15, 15, 15) == (
            statistics.connections_created,
            statistics.requests,
            statistics.responses,
        )
        assert (15 * 5, 15 * 5) == (statistics.bytes_received, statistics.bytes_sent)
        assert 15 == sum(statistics.closed.values())


async def test_a_removed_listener_is_not_changed_with_the_others(kind: ReadinessKind) -> None:
    """KAFKA-14774: nor by its name, and what it is added with again is what counts then."""
    async with serving(kind, "A", "B") as server:
        await server.remove_listener("B")

        await server.resize_processors(4)

        assert {"A": 4} == processors_of(server)
        with pytest.raises(LocalProtocolError, match="unknown listener B"):
            await server.resize_processors(3, "B")
        with pytest.raises(LocalProtocolError, match="listener B has no quotas"):
            server.quotas.set_listener_limits("B", ListenerLimits(connections_max=1))
        assert await works(await server.add_listener(listener(name="B")))
        assert {"A": 4, "B": 2} == processors_of(server)
        assert ListenerLimits() == server.quotas.listener("B").limits


async def test_a_port_that_is_taken_adds_no_listener(kind: ReadinessKind) -> None:
    async with serving(kind, "A") as server:
        taken = server.endpoints[0].port

        with pytest.raises(OSError, match="cannot listen on B://"):
            await server.add_listener(listener(taken, name="B"))

        assert 1 == len(server.endpoints)
        assert await works(await server.add_listener(listener(name="B")))


async def after_passes(passes: int, scope: trio.CancelScope) -> None:
    """Cancel when the scheduler has made so many passes."""
    for _ in range(passes):
        await trio.lowlevel.checkpoint()
    scope.cancel()


def names_of(endpoints: Sequence[Endpoint]) -> list[str]:
    return [endpoint.listener_name for endpoint in endpoints]


async def test_adding_can_be_cancelled_at_any_moment(kind: ReadinessKind) -> None:
    """Then there is such a listener, or none, and another attempt works."""
    async with serving(kind, "A") as server:
        added = set()
        for passes in range(12):
            await wait_all_tasks_blocked()
            before = open_sockets()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(after_passes, passes, nursery.cancel_scope)
                await server.add_listener(listener(name="B"))
                nursery.cancel_scope.cancel()
            await wait_all_tasks_blocked()
            was_added = "B" in names_of(server.endpoints)
            added.add(was_added)
            if was_added:
                assert await works(server.endpoints[1])
                await server.remove_listener("B")
                await wait_all_tasks_blocked()

            assert before == open_sockets()
            assert {"A": 2} == processors_of(server)
            assert await works(await server.add_listener(listener(name="B")))
            await server.remove_listener("B")
        assert {False, True} == added


async def test_removing_can_be_cancelled_at_any_moment(kind: ReadinessKind) -> None:
    """It is removed all the same: what has begun to close cannot be kept."""
    async with serving(kind, "A") as server:
        for passes in range(6):
            before = open_sockets()
            added = await server.add_listener(listener(name="B"))
            with await Peer.connect(added.port) as peer:
                await peer.send_frames(b"a")
                await peer.receive_frame()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(after_passes, passes, nursery.cancel_scope)
                    await server.remove_listener("B")
                    nursery.cancel_scope.cancel()
                assert b"" == await peer.receive_to_end()
            await wait_all_tasks_blocked()

            assert before == open_sockets()
            assert ["A"] == names_of(server.endpoints)
            assert passes + 1 == server.statistics().closed[CloseReason.SERVER_SHUTDOWN]


async def test_changing_numbers_can_be_cancelled_at_any_moment(kind: ReadinessKind) -> None:
    async with serving(kind, "A", processors=2) as server:
        for passes in range(8):
            for count in (4, 2):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(after_passes, passes, nursery.cancel_scope)
                    await server.resize_processors(count)
                    nursery.cancel_scope.cancel()
                assert 2 <= processors_of(server)["A"] <= 4
                assert all([await works(server.endpoints[0]) for _ in range(4)])
        await wait_all_tasks_blocked()
        statistics = server.statistics()
        assert 64 == statistics.connections_created
        assert 64 == sum(statistics.closed.values())


async def keep_changing(server: SocketServer) -> None:
    """Ask for one change after the other, up to the one that is refused."""
    refused = ""
    while not refused:
        try:
            await server.add_listener(listener(name="B"))
            await server.resize_processors(4)
            await server.remove_listener("B")
        except LocalProtocolError as error:
            refused = str(error)
    assert refused in {"the server is not running", "unknown listener B"}


async def stop_after(passes: int, server: SocketServer) -> None:
    for _ in range(passes):
        await trio.lowlevel.checkpoint()
    await server.stop()


@pytest.mark.parametrize("how", ["stopped", "cancelled"])
async def test_a_change_while_the_server_ends_leaves_nothing_behind(
    kind: ReadinessKind, how: str
) -> None:
    """It happens, or the server does not run any more; whichever is first."""
    before = open_sockets()
    for passes in range(16):
        server = SocketServer(echo, [listener()], ServerConfig(readiness=kind))
        with trio.fail_after(5):
            async with trio.open_nursery() as changing, trio.open_nursery() as nursery:
                await nursery.start(server.run)
                changing.start_soon(keep_changing, server)
                if how == "stopped":
                    nursery.start_soon(stop_after, passes, server)
                else:
                    nursery.start_soon(after_passes, passes, nursery.cancel_scope)
        await wait_all_tasks_blocked()

        assert before == open_sockets()
