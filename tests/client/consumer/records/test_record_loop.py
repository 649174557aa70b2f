from __future__ import annotations

import time

import pytest
import trio

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.records._chunk import Chunk, FetchPosition, RecordLoop
from trionet.protocol.records._types import Columns

CHUNK = 40


class Chunks:
    """What a consumer does when the records in hand are used up, or a checkpoint is due."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.loop = RecordLoop(self.next_chunk)
        self.asked = 0
        self._seconds = seconds
        self._chunk = self._made(0)

    def _made(self, start: int) -> Chunk:
        columns = Columns(
            range(start, start + CHUNK),
            [0] * CHUNK,
            [None] * CHUNK,
            [b"value"] * CHUNK,
            [()] * CHUNK,
        )
        ends = FetchPosition(start, 0), FetchPosition(start + CHUNK, 0)
        return Chunk(TopicPartition("t", 0), columns, 0, 0, *ends, 1)

    async def next_chunk(self) -> Chunk:
        self.asked += 1
        await trio.lowlevel.checkpoint()
        if self._chunk.is_done:
            self._chunk = self._made(self._chunk.position().offset)
        self.loop.checkpoint_at = trio.current_time() + self._seconds
        return self._chunk


def hold_the_loop() -> None:
    """What a handler does that computes for two milliseconds."""
    until = time.perf_counter() + 0.002
    while time.perf_counter() < until:
        pass


async def test_records_in_hand_are_handed_out_without_a_wait() -> None:
    chunks = Chunks()

    assert list(range(2 * CHUNK + 1)) == [
        (await anext(chunks.loop)).offset for _ in range(2 * CHUNK + 1)
    ]
    assert chunks.asked == 3


@pytest.mark.parametrize("taken", [1, 2, 5, 20, 30])
async def test_a_cancelled_task_is_given_nothing_more(taken: int) -> None:
    chunks = Chunks()
    for _ in range(taken):
        await anext(chunks.loop)
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(chunks.loop)

    assert scope.cancelled_caught
    assert taken == (await anext(chunks.loop)).offset


async def test_who_is_slow_with_each_record_lets_others_have_their_turn_with_each() -> None:
    chunks = Chunks(seconds=0.001)
    for _ in range(CHUNK):  # as fast as can be, so that it is not looked at the clock every time
        await anext(chunks.loop)
    for _ in range(20):
        await anext(chunks.loop)
        hold_the_loop()
    asked = chunks.asked
    for _ in range(10):
        await anext(chunks.loop)
        hold_the_loop()

    assert chunks.asked == asked + 10


async def test_the_task_that_asked_before_may_have_ended() -> None:
    chunks = Chunks()

    async def take_some() -> None:
        for _ in range(3):
            await anext(chunks.loop)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_some)
    assert (await anext(chunks.loop)).offset == 3
    assert (await anext(chunks.loop)).offset == 4
    assert chunks.asked == 2  # of this task, another look at whether it is cancelled
