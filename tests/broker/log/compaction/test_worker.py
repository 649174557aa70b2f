"""Where cleanings run: in a thread, or in a process of their own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from support.logs import batch, placed
from trionet.broker.log import Directory, MemoryDirectory
from trionet.broker.log.compaction._cleaning import CleaningInput
from trionet.broker.log.compaction._worker import (
    CAN_START_WORKERS,
    ThreadWorker,
    Worker,
    WorkerError,
    open_process_worker,
)
from trionet.errors import ApiError
from trionet.protocol.records._records import decode_batch, encode_batch

pytestmark = pytest.mark.skipif(not CAN_START_WORKERS, reason="needs descriptors to be passed")

WHAT = CleaningInput(0, 6, 100, 1000, 0, [], {}, 4096, 65536)
RECORDS = [(1000, key, value, ()) for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))]


@asynccontextmanager
async def worker_of(kind: str, directory: Directory) -> AsyncIterator[Worker]:
    if kind == "thread":
        yield ThreadWorker(directory)
    else:
        async with open_process_worker() as worker:
            yield worker


@pytest.mark.parametrize("kind", ["thread", "process"])
async def test_worker_cleans_what_it_gets_descriptors_of(kind: str, directory: Directory) -> None:
    """In memory too, where files have no names."""
    data = b"".join(placed([encode_batch(RECORDS), encode_batch(RECORDS)]))
    source, destination = directory.create("source"), directory.create("destination")
    source.write_at(0, [data])

    async with worker_of(kind, directory) as worker:
        await worker.begin(WHAT, None)
        assert not await worker.call("map_segment", source, len(data), 0, 6)
        assert 6 == await worker.call("end_offset")
        await worker.call("start_group", 0, destination)
        await worker.call("clean_segment", source, len(data), 0, 6)
        cleaned = await worker.call("finish_group", 6)
        statistics = await worker.call("statistics")

    assert cleaned.size == destination.size()
    kept = decode_batch(destination.read_at(0, cleaned.size))
    assert [(4, b"b", b"2"), (5, b"a", b"3")] == [(each[0], each[2], each[3]) for each in kept]
    assert (6, 2) == (statistics.messages_read, statistics.messages_written)


@pytest.mark.parametrize("kind", ["thread", "process"])
async def test_errors_of_a_cleaning_come_back(kind: str) -> None:
    directory = MemoryDirectory()
    file = directory.create("damaged")
    file.write_at(0, [bytes(100)])

    async with worker_of(kind, directory) as worker:
        await worker.begin(WHAT, 1e9)
        with pytest.raises(ApiError, match="byte 0"):
            await worker.call("map_segment", file, 100, 0, 6)
        assert 0 == await worker.call("end_offset")


def children() -> set[int]:
    """The processes that any thread of this one has started."""
    files = Path("/proc/self/task").glob("*/children")
    return {int(number) for file in files for number in file.read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
async def test_killed_process_is_an_error_and_leaves_nothing() -> None:
    before = children()

    async with open_process_worker() as worker:
        (process,) = children() - before
        os.kill(process, signal.SIGKILL)
        with pytest.raises(WorkerError, match="ended unexpectedly"):
            await worker.begin(WHAT, None)

    assert before == children()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
async def test_process_gets_no_signal_that_is_for_the_broker() -> None:
    """Of a terminal (Ctrl-C), or of a service manager that ends a service."""
    before = children()

    async with open_process_worker() as worker:
        await worker.begin(WHAT, None)
        (process,) = children() - before
        assert os.getpgid(0) != os.getpgid(process)
        os.kill(process, signal.SIGTERM)
        await worker.begin(WHAT, None)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
async def test_cancelled_cleaning_ends_its_process() -> None:
    before = children()
    file = MemoryDirectory().create("slow")
    file.write_at(0, [b"".join(placed([batch(1, bytes(1000))]))])

    with trio.move_on_after(0.2):
        async with open_process_worker() as worker:
            await worker.begin(WHAT, 1.0)  # one byte per second
            await worker.call("map_segment", file, file.size(), 0, 6)

    assert before == children()


async def test_cancelled_cleaning_in_a_thread_does_not_wait_for_its_rate(
    directory: Directory,
) -> None:
    file = directory.create("slow")
    file.write_at(0, [b"".join(placed([batch(1, bytes(1000))]))])
    worker = ThreadWorker(directory)
    await worker.begin(WHAT, 10.0)  # a transfer takes two minutes

    with trio.fail_after(20), trio.move_on_after(0.1) as scope:
        await worker.call("map_segment", file, file.size(), 0, 6)

    assert scope.cancelled_caught
