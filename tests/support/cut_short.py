"""Programs that are cut short while they handle a record, in every way that one can be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from trionet import Consumer, ConsumerRecord

#: The record whose handler is cut short.
CUT: Final = 4


class Failed(Exception):
    """Raised by a user's handler."""


class Reading:
    """A program that handles records, and is cut short in the middle of one.

    Attributes:
        consumer: reads from a partition whose offsets begin at 0.
        finished: the offsets of the records that it has handled.
        scope: cancelled while the record is handled.
        was_cut: whether that has happened, so that the record may be handled now.
    """

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.finished: list[int] = []
        self.scope = trio.CancelScope()
        self.was_cut = False

    async def handle(self, record: ConsumerRecord) -> None:
        if record.offset == CUT and not self.was_cut:
            self.was_cut = True
            self.scope.cancel()
            await trio.sleep_forever()
        self.finished.append(record.offset)

    async def read(self) -> None:
        async for record in self.consumer:
            await self.handle(record)


async def limit_around_the_loop(reading: Reading) -> None:
    with reading.scope:
        await reading.read()


async def limit_around_batches(reading: Reading) -> None:
    """Of one record, with ``max.poll.records=1``."""
    with reading.scope:
        async for batch in reading.consumer.batches():
            for record in batch:
                await reading.handle(record)


async def cancelled_child(reading: Reading) -> None:
    async with trio.open_nursery() as nursery:
        reading.scope = nursery.cancel_scope
        nursery.start_soon(reading.read)


async def error_caught_outside_the_loop(reading: Reading) -> None:
    try:
        async for record in reading.consumer:
            if record.offset == CUT:
                raise Failed
            await reading.handle(record)
    except Failed:
        reading.was_cut = True


async def break_in_the_middle(reading: Reading) -> None:
    async for record in reading.consumer:
        if record.offset == CUT:
            reading.was_cut = True
            break
        await reading.handle(record)


Cut = Callable[[Reading], Awaitable[None]]

CUTS: Final[list[Cut]] = [
    limit_around_the_loop,
    limit_around_batches,
    cancelled_child,
    error_caught_outside_the_loop,
    break_in_the_middle,
]
