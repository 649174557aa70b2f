"""Many who authenticate at once: the loop takes a little of that in each of its passes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
import trio

from support.sasl import exchange, handshake, plain, request, token
from support.serving import answer, serving
from support.wire import Peer, frame
from trionet.protocol import api_keys
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.server._channel_builder import ListenerSecurity
from trionet.server._processor import Processor

METADATA = request(api_keys.METADATA, 1, MetadataRequest())
CLIENTS = 20


class Passes(trio.abc.Instrument):
    """How many had authenticated at the end of each pass of the loop."""

    def __init__(self, processors: Sequence[Processor]) -> None:
        self._processors = processors
        self.seen = [0]

    def before_io_wait(self, timeout: float) -> None:
        self.seen.append(sum(each.selector.counters.authenticated for each in self._processors))


async def begun(peer: Peer) -> Peer:
    await peer.send_frames(handshake("PLAIN"))
    await peer.receive_frame()
    return peer


async def test_tokens_are_evaluated_one_by_one_if_each_takes_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes after a token that waits is a request, once that has let its client in."""
    monkeypatch.setattr("trionet.net._preparing.SECONDS_PER_PASS_MAX", 0.0)
    security = ListenerSecurity(authenticator=lambda _: exchange())
    async with serving("poller", security=security, num_network_threads=2) as rig:
        peers = [await begun(await rig.connect()) for _ in range(CLIENTS)]
        passes = Passes(rig.processors)
        trio.lowlevel.add_instrument(passes)
        for peer in peers:
            peer.send_now(frame(token(plain("alice", "secret"))) + frame(METADATA))

        while passes.seen[-1] < CLIENTS:
            await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(passes)

        assert max(after - before for before, after in pairwise(passes.seen)) <= 2
        for _ in peers:
            (await rig.receive(METADATA)).respond(answer(b"served"))
        for peer in peers:
            await peer.receive_frame()
            assert b"served" == await peer.receive_frame()
