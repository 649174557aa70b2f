"""`python -m hostile.case API SIZE`: one API's worst requests against a broker in this process.

What is measured, as JSON, a line a request: for how long at most the loop was held by one task, in
milliseconds of the processor's time; how much memory the request took beyond its own bytes; for how
long the broker went on after its client had gone.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import trio
import trio.lowlevel

from hostile.frames import GROUP, SMALL, TOPIC, Hostile, hostile_frames
from support.calls import create_topic
from support.client import Client, connect, host_and_port
from trionet import Broker, open_broker
from trionet.broker.api._dispatch import Apis
from trionet.protocol._codec import lookup
from trionet.protocol._header import encode_request_header
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

PARTITIONS = 10_000
SMALL_TOPICS = 500


class Ticker:
    """How long at most the loop's thread computed between two turns of a task."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        last = time.thread_time()
        while True:
            await trio.lowlevel.checkpoint()
            now = time.thread_time()
            self.worst = max(self.worst, now - last)
            last = now


def resident(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


@contextmanager
def memory_peak() -> Iterator[list[int]]:
    """Gives, when the block ends, by how much the process grew in it at most."""
    gc.collect()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")
    before = resident("VmRSS")
    peak = [0]
    yield peak
    peak[0] = resident("VmHWM") - before


async def populate(client: Client) -> None:
    await create_topic(client, TOPIC, partitions=PARTITIONS)
    for number in range(SMALL_TOPICS):
        await create_topic(client, SMALL.format(number))
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index)
        for index in range(PARTITIONS)
    ]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    await client.call(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)


def whole_frame(hostile: Hostile) -> bytes:
    codec = lookup(hostile.api_key, hostile.version)
    assert codec is not None
    request = encode_request_header(codec, 1, "hostile") + hostile.body
    return len(request).to_bytes(4, "big") + request


async def attack(broker: Broker, hostile: Hostile, ticker: Ticker) -> tuple[int, float]:
    """The bytes of the response, and for how long the loop was held at most, in milliseconds."""
    frame = whole_frame(hostile)
    host, port = host_and_port(broker.bootstrap_servers)
    stream = await trio.open_tcp_stream(host, port)
    await trio.lowlevel.checkpoint()  # what came before is none of the request's
    ticker.worst = 0.0
    async with stream:
        received = 0
        with suppress(trio.BrokenResourceError):
            await stream.send_all(frame)
            received = await receive_frame(stream)
    return received, ticker.worst * 1000


async def receive_frame(stream: trio.SocketStream) -> int:
    """Take one frame, or what comes before the end; how many bytes."""
    received = 0
    wanted = 4
    head = b""
    while received < wanted:
        data = await stream.receive_some(1 << 20)
        if not data:
            break
        received += len(data)
        if len(head) < 4:
            head += data[: 4 - len(head)]
            if len(head) == 4:
                wanted = 4 + int.from_bytes(head, "big")
    return received


async def leave(broker: Broker, hostile: Hostile) -> float:
    """For how long the broker goes on, in milliseconds, after a client has sent this and gone."""
    apis: Apis = broker._apis
    host, port = host_and_port(broker.bootstrap_servers)
    stream = await trio.open_tcp_stream(host, port)
    async with stream:
        await stream.send_all(whole_frame(hostile))
        with trio.move_on_after(1):
            while not apis.long_calls.under_way:
                await trio.lowlevel.checkpoint()
    at = trio.current_time()
    while apis.long_calls.under_way:
        await trio.lowlevel.checkpoint()
    return (trio.current_time() - at) * 1000


async def measure(api_key: int, size: int) -> None:
    async with (
        open_broker(num_partitions=1, auto_create_topics_enable=False) as broker,
        trio.open_nursery() as nursery,
        connect(broker.bootstrap_servers) as client,
    ):
        await populate(client)
        ticker = Ticker()
        nursery.start_soon(ticker.run)
        apis: Apis = broker._apis
        served = next(each for each in apis.advertised.ranges if each.api_key == api_key)
        versions = range(served.min_version, served.max_version + 1)
        big = broker._state.topics.get(TOPIC)
        assert big is not None
        for hostile in hostile_frames(api_key, versions, size, {TOPIC: big.id}):
            with trio.move_on_after(120) as scope:
                at = trio.current_time()
                with memory_peak() as peak:
                    response, held_ms = await attack(broker, hostile, ticker)
                found: dict[str, object] = {
                    "request": hostile.name,
                    "bytes": len(hostile.body),
                    "response": response,
                    "seconds": round(trio.current_time() - at, 3),
                    "worst_ms": round(held_ms, 1),
                    "memory": peak[0],
                }
                if apis._apis[api_key].only_responds:
                    found["left_ms"] = round(await leave(broker, hostile), 1)
                print(json.dumps(found), flush=True)
            if scope.cancelled_caught:
                print(json.dumps({"request": hostile.name, "error": "no response"}), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(measure, int(sys.argv[1]), int(sys.argv[2]))
    os._exit(0)  # what was taken needs no giving back
