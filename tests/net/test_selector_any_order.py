"""Whatever peers and owner do in whatever order: each frame is handed out once, in order."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from support.selecting import Link, Selecting, selecting
from support.wire import Peer
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._memory_pool import MemoryPool

CHANNELS = 3
SMALL, LARGE = 3, 6000
numbers = st.integers(0, CHANNELS - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), numbers, st.integers(1, 4), st.sampled_from([SMALL, LARGE])),
        st.tuples(st.sampled_from(["mute", "unmute", "finish", "release"]), numbers),
        st.tuples(st.sampled_from(["pause", "resume"])),
        st.tuples(st.just("poll"), st.integers(1, 3)),
    ),
    max_size=40,
)


class Conversation:
    """One channel and its peer: what was sent, and what came of it."""

    def __init__(self, channel: Channel, peer: Peer) -> None:
        self.channel = channel
        self.peer = peer
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.is_finished = False
        self.ends = 0


class Story:
    """A selector with a few channels, a little memory, and what may happen to them."""

    def __init__(self, rig: Selecting) -> None:
        self.rig = rig
        self.conversations = [Conversation(*rig.connect()) for _ in range(CHANNELS)]
        self.is_paused = False

    async def step(self, name: str, *arguments: Any) -> None:
        await getattr(self, name)(*arguments)

    async def send(self, number: int, count: int, size: int) -> None:
        conversation = self.conversations[number]
        if not conversation.is_finished and len(conversation.sent) < 10:
            payloads = [b"%0*d" % (size, len(conversation.sent) + each) for each in range(count)]
            conversation.sent += payloads
            await conversation.peer.send_frames(*payloads)

    async def finish(self, number: int) -> None:
        conversation = self.conversations[number]
        if not conversation.is_finished:
            conversation.is_finished = True
            conversation.peer.finish()

    async def mute(self, number: int) -> None:
        if self.conversations[number].channel.is_open:
            self.rig.selector.mute(self.conversations[number].channel)

    async def unmute(self, number: int) -> None:
        self.rig.selector.unmute(self.conversations[number].channel)

    async def pause(self) -> None:
        self.is_paused = True
        self.rig.selector.pause_reading()

    async def resume(self) -> None:
        self.is_paused = False
        self.rig.selector.resume_reading()

    async def release(self, number: int) -> None:
        """The owner needs the last frame no longer."""
        lease = self.conversations[number].channel.take_lease()
        if lease is not None:
            assert self.rig.pool is not None
            self.rig.pool.release(lease, trio.current_time())

    async def poll(self, count: int) -> int:
        """How much was told of."""
        told = 0
        for _ in range(count):
            silent = [
                each
                for each in self.conversations
                if self.is_paused or each.channel.muting.is_muted
            ]
            result = await self.rig.selector.poll(seconds_max=0)
            receivers = [channel for channel, _ in result.completed_receives]
            assert len(set(receivers)) == len(receivers)
            for each in self.conversations:
                each.ends += result.disconnected.count(each.channel)
                each.received += [
                    bytes(payload)
                    for channel, payload in result.completed_receives
                    if channel is each.channel
                ]
                assert each.sent[: len(each.received)] == each.received
            assert not {each.channel for each in silent} & set(receivers)
            told += len(receivers) + len(result.disconnected)
        return told

    async def come_to_an_end(self) -> None:
        """Let everything through."""
        await self.resume()
        for number in range(CHANNELS):
            await self.unmute(number)
        quiet = 0
        while quiet < 20:
            for number in range(CHANNELS):
                await self.release(number)
            quiet = 0 if await self.poll(1) else quiet + 1


@pytest.mark.slow
@pytest.mark.parametrize("link", ["poller", "socket", "poller under TLS"])
@given(steps=STEPS)
def test_each_frame_is_handed_out_once_and_in_order(link: Link, steps: list[Any]) -> None:
    """S14, S24, S26, X6, X9: muted or not, paused or not, with memory or without."""

    async def tell() -> None:
        async with selecting(link, pool=MemoryPool(LARGE, LARGE)) as rig:
            story = Story(rig)
            for step in steps:
                await story.step(*step)
            await story.come_to_an_end()

            for each in story.conversations:
                assert each.sent == each.received
                assert each.is_finished == (each.ends == 1)
                expected = CloseReason.PEER_CLOSED if each.is_finished else None
                assert expected is each.channel.close_reason
            assert rig.pool is not None
            assert 0 == rig.pool.used
            assert await rig.is_quiet()

    trio.run(tell)
