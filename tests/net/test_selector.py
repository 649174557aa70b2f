"""What a Selector does for healthy connections, over both readiness backends and under TLS."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.ranges import RangedFile
from support.selecting import Link, Selecting, selecting
from support.transports import AlteredTransport
from support.wire import Peer, frame
from trionet.errors import LocalProtocolError
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import READ, WRITE, ReadinessKind
from trionet.net.wire._transmission import FileRange, Send

KILOBYTE = 1024
MEGABYTE = 1024 * 1024


async def echo(rig: Selecting, count: int) -> None:
    """Respond to every receive with itself until `count` of them have been answered."""
    answered = 0
    while answered < count:
        result = await rig.poll()
        assert not result.disconnected
        for channel, payload in result.completed_receives:
            rig.selector.mute(channel)
            if rig.selector.send(channel, Send([frame(bytes(payload))])):
                rig.selector.unmute(channel)
                answered += 1
        for channel in result.completed_sends:
            rig.selector.unmute(channel)
            answered += 1


@pytest.mark.slow
async def test_many_requests_on_several_connections_get_responses_in_order(
    link: Link,
) -> None:
    """S7, S36: 5 connections, 500 requests each; under TLS they have one cipher."""
    received: list[list[bytes]] = [[] for _ in range(5)]
    expected = [[b"%d:%d" % (peer, n) for n in range(500)] for peer in range(5)]

    async def talk(number: int, peer: Peer) -> None:
        for payload in expected[number]:
            await peer.send_frames(payload)
            received[number].append(await peer.receive_frame())

    async with selecting(link) as rig, trio.open_nursery() as nursery:
        for number in range(5):
            _, peer = rig.connect()
            nursery.start_soon(talk, number, peer)
        await echo(rig, 2500)
        ciphers = Counter(each.tls and each.tls.cipher for each in rig.selector.channels)

    assert expected == received
    assert [5] == list(ciphers.values())
    assert (None in ciphers) is ("TLS" not in link)


async def test_pipelined_requests_get_responses_in_order(link: Link) -> None:
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        _, peer = rig.connect()
        payloads = [b"%d" % n for n in range(2000)]
        nursery.start_soon(peer.send_frames, *payloads)
        nursery.start_soon(echo, rig, 2000)

        assert payloads == [await peer.receive_frame() for _ in payloads]


async def test_message_ten_times_the_socket_buffer_goes_and_comes_back(
    link: Link,
) -> None:
    """S8."""
    payload = bytes(range(256)) * (40 * KILOBYTE // 256)
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        _, peer = rig.connect(send_buffer_bytes=4 * KILOBYTE, receive_buffer_bytes=4 * KILOBYTE)
        nursery.start_soon(peer.send_frames, payload)
        nursery.start_soon(echo, rig, 1)

        assert payload == await peer.receive_frame()


async def test_large_messages_in_sequence_keep_their_order(link: Link) -> None:
    """S9: 50 messages of 512 KB."""
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        _, peer = rig.connect()
        nursery.start_soon(echo, rig, 50)
        for number in range(50):
            payload = bytes([number]) * (512 * KILOBYTE)
            await peer.send_frames(payload)

            assert payload == await peer.receive_frame()


async def test_empty_payload_goes_and_comes_back(link: Link) -> None:
    """S10."""
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        _, peer = rig.connect()
        nursery.start_soon(echo, rig, 2)
        await peer.send_frames(b"", b"")

        assert b"" == await peer.receive_frame()
        assert b"" == await peer.receive_frame()


async def test_totals_follow_partial_progress(link: Link) -> None:
    """S11: bytes count as they move, the Send and the Receive when they are whole."""
    size = 20 * MEGABYTE
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        sent = rig.selector.send(channel, Send([frame(bytes(size))]))
        assert not sent
        assert 0 < rig.selector.channels.bytes_sent < size

        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.receive_frame)
            assert [channel] == (await rig.poll()).completed_sends
        assert size + 4 == rig.selector.channels.bytes_sent

        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send_frames, bytes(size))
            seen = {0}
            while not (result := await rig.selector.poll()).completed_receives:
                seen.add(rig.selector.channels.bytes_received)
        assert [(channel, bytes(size))] == result.completed_receives
        assert size + 4 == rig.selector.channels.bytes_received
        assert len(seen) > 3


async def test_totals_keep_what_closed_channels_moved(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"abc")
        await rig.receive(channel)
        rig.selector.send(channel, Send([frame(b"abcde")]))

        rig.selector.close(channel)

        assert (7, 9) == (rig.selector.channels.bytes_received, rig.selector.channels.bytes_sent)


async def test_chunks_and_file_ranges_arrive_as_one_frame(link: Link, tmp_path: Path) -> None:
    content = bytes(range(256)) * KILOBYTE
    file = RangedFile.holding(tmp_path, content)
    payload = b"head" + content[1:200_001] + b"between" + content[-5:]
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        channel, peer = rig.connect(send_buffer_bytes=4 * KILOBYTE)
        size = len(payload).to_bytes(4, "big")
        received: list[bytes] = []

        async def receive() -> None:
            received.append(await peer.receive_frame())

        nursery.start_soon(receive)
        rig.selector.send(
            channel,
            Send(
                [
                    size + b"head",
                    FileRange(file, 1, 200_000),
                    memoryview(b"between"),
                    FileRange(file, len(content) - 5, 5),
                    FileRange(file, 0, 0),
                ]
            ),
        )
        result = await rig.poll()

        assert [channel] == result.completed_sends
    assert [payload] == received


async def test_send_that_is_complete_at_once_is_not_reported_again(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()

        assert rig.selector.send(channel, Send([frame(b"a")]))
        await peer.send_frames(b"b")
        result = await rig.poll()

        assert [] == result.completed_sends


async def test_write_interest_exists_only_while_a_send_is_pending(link: Link) -> None:
    """X5."""
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        channel, peer = rig.connect()
        assert READ == channel.interest
        assert rig.selector.send(channel, Send([frame(b"small")]))
        assert READ == channel.interest
        assert not rig.selector.send(channel, Send([frame(bytes(10 * MEGABYTE))]))
        assert READ | WRITE == channel.interest

        nursery.start_soon(peer.receive, 10 * MEGABYTE)
        await rig.poll()

        assert READ == channel.interest
        assert [WRITE | READ, READ] == [bits for _, bits in rig.readiness.modifications]


async def test_results_of_a_poll_belong_to_the_caller(link: Link) -> None:
    """S12: clearing them in the middle of a cycle does not disturb the next poll."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        other, other_peer = rig.connect()
        await peer.send_frames(b"1", b"2")
        result = await rig.poll()
        result.completed_receives.clear()
        result.completed_sends.clear()
        result.disconnected.clear()

        assert b"2" == await rig.receive(channel)
        await other_peer.send_frames(b"3")
        assert b"3" == await rig.receive(other)


async def test_id_in_use_cannot_be_registered_again(link: Link) -> None:
    """P15: the channel that has the id is not touched."""
    async with selecting(link) as rig:
        channel, peer = rig.connect(id="same")

        with pytest.raises(LocalProtocolError, match="same"):
            rig.connect(id="same")

        await peer.send_frames(b"still")
        assert b"still" == await rig.receive(channel)
        assert [channel] == list(rig.selector.channels)


async def test_id_works_again_after_its_channel_has_gone(link: Link) -> None:
    """S1: nothing of the old connection is left."""
    async with selecting(link) as rig:
        old, old_peer = rig.connect(id="same")
        old_peer.close()
        assert CloseReason.PEER_CLOSED is await rig.disconnected(old)
        assert rig.selector.channels.get("same") is None

        new, peer = rig.connect(id="same")
        await peer.send_frames(b"again")

        assert b"again" == await rig.receive(new)
        assert new is rig.selector.channels.get("same")


async def test_socket_that_cannot_be_watched_is_not_kept() -> None:
    """S16: registering fails with its cause and leaves nothing; the socket is the caller's.

    Not with the socket backend, which does not ask the kernel when a socket is registered.
    """
    async with selecting("poller") as rig:
        channel, _ = rig.connect()
        twin = Channel("twin", channel.transport, 10)

        with pytest.raises(FileExistsError):
            rig.selector.register(twin)

        assert [channel] == list(rig.selector.channels)
        assert rig.selector.channels.get("twin") is None


async def test_closed_channel_cannot_send(link: Link) -> None:
    """S4: what is not connected cannot be sent to."""
    async with selecting(link) as rig:
        channel, _ = rig.connect()
        rig.selector.close(channel)

        with pytest.raises(LocalProtocolError, match="closed"):
            rig.selector.send(channel, Send([frame(b"a")]))


async def test_cancelled_poll_loses_nothing(link: Link) -> None:
    """Neither what was staged, nor what was not yet told, nor what arrives later."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        gone, _ = rig.connect()
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)
        rig.selector.disconnect(gone, CloseReason.IDLE)

        with trio.CancelScope() as scope:
            scope.cancel()
            await rig.selector.poll()
        assert scope.cancelled_caught
        result = await rig.selector.poll()

        assert [(channel, b"2")] == result.completed_receives
        assert [gone] == result.disconnected


@pytest.mark.parametrize("passes", range(5))
async def test_poll_cancelled_while_data_arrives_loses_nothing(link: Link, passes: int) -> None:
    """Whichever of the two comes first: the frame is in this poll's result, or in a later one's."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        payloads: list[bytes] = []

        async def receive() -> None:
            payloads.append(bytes(await rig.receive(channel)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            peer.send_now(frame(b"a"))
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        if not payloads:
            await receive()

        assert [b"a"] == payloads


async def test_channels_closed_while_receives_are_walked_do_not_disturb_the_others(
    link: Link,
) -> None:
    """S34: 4 completed receives in one poll, 2 channels closed on the way."""
    async with selecting(link) as rig:
        pairs = [rig.connect() for _ in range(4)]
        for _, peer in pairs:
            await peer.send_frames(b"a")
        for channel, _ in pairs:
            rig.wait_readable(channel)
        result = await rig.poll()
        assert 4 == len(result.completed_receives)

        for number, (channel, _) in enumerate(result.completed_receives):
            if number % 2:
                rig.selector.close(channel)

        assert 4 == len(result.completed_receives)
        assert 2 == len(rig.selector.channels)
        assert await rig.is_quiet()


async def test_deliberate_close_is_not_reported_and_others_are_once(link: Link) -> None:
    """X9."""
    async with selecting(link) as rig:
        closed, closed_peer = rig.connect()
        dropped, _ = rig.connect()
        alive, peer = rig.connect()

        rig.selector.close(closed, CloseReason.LOCAL_CLOSE, "why")
        rig.selector.close(closed)
        rig.selector.disconnect(dropped, CloseReason.IDLE)
        rig.selector.disconnect(dropped, CloseReason.ERROR)
        result = await rig.selector.poll()

        assert [dropped] == result.disconnected
        assert CloseReason.IDLE is dropped.close_reason
        assert (CloseReason.LOCAL_CLOSE, "why") == (closed.close_reason, closed.close_detail)
        assert b"" == await closed_peer.receive_to_end()
        await peer.send_frames(b"a")
        assert b"a" == await rig.receive(alive)


async def test_close_all_returns_what_it_closed_and_what_no_poll_has_reported(
    link: Link,
) -> None:
    async with selecting(link) as rig:
        untold, _ = rig.connect()
        channel, peer = rig.connect()
        rig.selector.disconnect(untold, CloseReason.IDLE)

        closed = rig.selector.close_all(CloseReason.SERVER_SHUTDOWN)

        assert [untold, channel] == closed
        assert CloseReason.IDLE is untold.close_reason
        assert CloseReason.SERVER_SHUTDOWN is channel.close_reason
        assert b"" == await peer.receive_to_end()


async def test_one_failing_close_keeps_no_other_channel_open(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """S15: all are closed, and the error is reported."""

    class Stubborn(AlteredTransport):
        def close(self) -> None:
            super().close()
            raise OSError("no space left for this socket's goodbye")

    async with selecting(kind) as rig:
        stubborn, stubborn_peer = rig.connect(transport=Stubborn)
        other, peer = rig.connect()

        closed = rig.selector.close_all(CloseReason.SERVER_SHUTDOWN)

        assert [stubborn, other] == closed
        assert b"" == await stubborn_peer.receive_to_end()
        assert b"" == await peer.receive_to_end()
        assert "no space left" in caplog.text
