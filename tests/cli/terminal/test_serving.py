"""The signals that stop a broker."""

from __future__ import annotations

import logging
import signal

import trio

from trionet.cli.terminal._serving import watch_signals

LOG = logging.getLogger("trionet")


async def test_the_first_signal_stops_and_the_second_one_does_not_wait() -> None:
    ready, stop = trio.Event(), trio.Event()
    ready.set()
    send, signals = trio.open_memory_channel[int](2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_signals, signals, LOG, ready, stop, nursery.cancel_scope)

        send.send_nowait(signal.SIGTERM)
        await stop.wait()
        assert not nursery.cancel_scope.cancel_called

        send.send_nowait(signal.SIGINT)
        await trio.Event().wait()  # for ever


async def test_a_signal_while_the_broker_starts_does_not_wait_for_it() -> None:
    ready, stop = trio.Event(), trio.Event()
    send, signals = trio.open_memory_channel[int](1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_signals, signals, LOG, ready, stop, nursery.cancel_scope)

        send.send_nowait(signal.SIGTERM)
        await trio.Event().wait()  # for ever

    assert not stop.is_set()
