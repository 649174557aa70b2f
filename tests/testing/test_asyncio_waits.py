"""Waits in tests that have an event loop: which of them would block it, and those of asyncio."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import trio

import trionet
from support.leaks import nothing_left_behind
from trionet import LocalProtocolError
from trionet.testing import AsyncioWaits, ThreadedBroker

#: Each wait, with arguments for a broker in which nothing has happened yet.
WAITS: dict[str, tuple[Any, ...]] = {
    "wait_for_records": ("t",),
    "wait_for_requests": ("Metadata",),
    "wait_for_group": ("g", "Empty"),
    "wait_for_offset": ("g", "t", 1),
    "wait_for_transaction": ("x", "Ongoing"),
}


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics=["t"]) as running:
        yield running


def test_asyncio_has_every_wait_with_the_same_arguments() -> None:
    def waits(cls: type) -> dict[str, list[inspect.Parameter]]:
        return {
            name: list(inspect.signature(value).parameters.values())
            for name, value in vars(cls).items()
            if name.startswith(("wait_", "seed"))
        }

    assert waits(ThreadedBroker) == waits(AsyncioWaits)
    assert {*WAITS, "seed"} == waits(AsyncioWaits).keys()


# Where they would block.


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_that_would_block_asyncio_says_what_to_await(
    broker: ThreadedBroker, wait: str
) -> None:
    async def main() -> None:
        getattr(broker, wait)(*WAITS[wait])

    with pytest.raises(LocalProtocolError) as raised:
        asyncio.run(main())

    assert (
        "this call would block the asyncio loop of this thread, and every client on it; await the"
        " wait of the same name of broker.asyncio, as in"
        " await broker.asyncio.wait_for_records('orders')"
    ) == str(raised.value)


def test_it_says_so_whether_or_not_it_would_have_to_wait(broker: ThreadedBroker) -> None:
    async def main() -> None:
        broker.wait_for_records("t")

    broker.seed("t", ["a"])
    with pytest.raises(LocalProtocolError, match="would block the asyncio loop"):
        asyncio.run(main())


async def test_a_wait_that_would_block_trio_says_what_to_do(broker: ThreadedBroker) -> None:
    with pytest.raises(
        LocalProtocolError,
        match=r"would block the trio loop .* await trio\.to_thread\.run_sync\(broker\.wait_for_rec"
        r".* trionet\.testing\.control\(broker\), whose waits are async",
    ):
        broker.wait_for_records("t")

    broker.seed("t", ["a"])
    [record] = await trio.to_thread.run_sync(broker.wait_for_records, "t")
    assert b"a" == record.value


def test_a_thread_beside_a_loop_may_wait(broker: ThreadedBroker) -> None:
    async def main() -> bytes | None:
        broker.seed("t", ["a"])
        [record] = await asyncio.to_thread(broker.wait_for_records, "t")
        return record.value

    assert b"a" == asyncio.run(main())


# Those of asyncio.


def test_the_loop_runs_on_while_a_test_waits(broker: ThreadedBroker) -> None:
    async def main() -> list[bytes | None]:
        asyncio.get_running_loop().call_soon(broker.seed, "t", ["a", "b"])
        return [each.value for each in await broker.asyncio.wait_for_records("t", 2)]

    assert [b"a", b"b"] == asyncio.run(main())


def test_records_are_appended_while_the_loop_runs_on(broker: ThreadedBroker) -> None:
    async def main() -> list[int]:
        waiting = asyncio.ensure_future(broker.asyncio.wait_for_records("new", 2))
        return [each.offset for each in await broker.asyncio.seed("new", ["a", ("key", "b")])] + [
            each.offset for each in await waiting
        ]

    assert [0, 1, 0, 1] == asyncio.run(main())


def test_wrong_records_are_told_as_elsewhere(broker: ThreadedBroker) -> None:
    wrong: Any = [1.5]
    with pytest.raises(TypeError) as raised:
        broker.seed("t", wrong)
    with pytest.raises(TypeError) as also_raised:
        asyncio.run(broker.asyncio.seed("t", wrong))

    assert str(raised.value) == str(also_raised.value)


def test_what_is_there_is_not_waited_for(broker: ThreadedBroker) -> None:
    broker.seed("t", ["a"])

    [record] = asyncio.run(broker.asyncio.wait_for_records("t"))

    assert b"a" == record.value


def test_a_wait_that_is_in_vain_says_what_there_was(broker: ThreadedBroker) -> None:
    with pytest.raises(TimeoutError, match=r"waiting for 2 records in t; found 0"):
        asyncio.run(broker.asyncio.wait_for_records("t", 2, seconds=0.01))


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_may_be_cancelled(broker: ThreadedBroker, wait: str) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(getattr(broker.asyncio, wait)(*WAITS[wait]))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with nothing_left_behind(), pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert [] == broker.records("t")


@pytest.mark.parametrize(
    "wait",
    [
        lambda waits: waits.wait_for_group("g", "stable"),
        lambda waits: waits.wait_for_transaction("x", "ongoing"),
        lambda waits: waits.wait_for_requests("Metdata"),
    ],
)
def test_a_wrong_name_is_told_as_elsewhere(
    broker: ThreadedBroker, wait: Callable[[AsyncioWaits], Any]
) -> None:
    with pytest.raises(ValueError, match=r"the closest match is (Stable|Ongoing|Metadata)"):
        asyncio.run(wait(broker.asyncio))


def test_a_wait_ends_with_its_broker() -> None:
    async def main() -> None:
        with trionet.testing.broker() as broker:
            wait = asyncio.ensure_future(broker.asyncio.wait_for_records("t"))
            await asyncio.sleep(0)
        await wait

    with nothing_left_behind(), pytest.raises(trio.RunFinishedError, match="has stopped"):
        asyncio.run(main())


def test_a_wait_leaves_nothing_behind(broker: ThreadedBroker) -> None:
    async def main() -> None:
        for _ in range(3):
            await broker.asyncio.wait_for_records("t")
        with suppress(TimeoutError):
            await asyncio.wait_for(broker.asyncio.wait_for_records("t", 9), 0.01)

    broker.seed("t", ["x"])
    before = callbacks(broker)
    asyncio.run(main())
    assert before == callbacks(broker)


def callbacks(broker: ThreadedBroker) -> int:
    """How many functions are called when the broker ends."""
    ended: Any = broker._loop.ended
    return len(ended._done_callbacks) + len(broker.asyncio._wakes)


async def test_it_is_not_for_trio(broker: ThreadedBroker) -> None:
    with pytest.raises(LocalProtocolError, match=r"broker\.asyncio is for tasks of asyncio"):
        await broker.asyncio.wait_for_records("t")
