"""Who gets memory when there is too little of it; in virtual time."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.network_clients import with_requests
from support.scripted_leaders import AT_ONCE, Leaders, hang_up, say_nothing
from trionet import MetadataTimeoutError
from trionet.client.producer._producer import Producer
from trionet.testing import MemoryNetwork

SMALL = attrs.evolve(AT_ONCE, buffer_bytes=20_000, batch_bytes=1000)


async def test_what_is_left_is_for_those_who_wait(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """However much a neighbour sends that never waits; it gets what is left when they have it."""
    async with (
        leaders.producer(SMALL) as producer,
        trio.open_nursery() as nursery,
    ):
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        held = producer.send_nowait("t", bytes(15_000))
        nursery.start_soon(producer.send, "t", b"large".ljust(10_000))
        await wait_all_tasks_blocked()
        with pytest.raises(trio.WouldBlock):
            _ = producer.send_nowait("t", b"small")
        await held
        await wait_all_tasks_blocked()

        _ = producer.send_nowait("t", b"small")

    assert [b"0", b"large", b"small"] == [
        value.strip() for value in leaders.values() if value and value.strip(b"\0")
    ]


async def test_batch_that_is_filled_takes_records_though_another_task_waits(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """It has its memory already."""
    one_in_flight = attrs.evolve(SMALL, client=with_requests(in_flight_max=1))
    async with (
        leaders.producer(one_in_flight) as producer,
        trio.open_nursery() as nursery,
    ):
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        _ = producer.send_nowait("t", bytes(15_000))
        first = producer.send_nowait("t", b"first")
        nursery.start_soon(producer.send, "t", bytes(10_000))
        await wait_all_tasks_blocked()
        second = producer.send_nowait("t", b"second")

        assert (first.outcome, 1) == (second.outcome, second.index)


async def test_records_for_a_topic_that_has_vanished_hold_up_no_others(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    leaders = Leaders(network, topics={"gone": 1, "t": 1})
    errors: list[str] = []

    async def send_to_gone(producer: Producer) -> None:
        with pytest.raises(MetadataTimeoutError, match="no metadata for topic 'gone'") as caught:
            await producer.send("gone", bytes(10_000))
        errors.append(str(caught.value))

    async with (
        leaders.producer(SMALL) as producer,
        trio.open_nursery() as nursery,
    ):
        await producer.send("gone", b"0")
        await producer.send("t", b"0")
        leaders.answers = [hang_up, hang_up]  # after which all metadata are asked for again
        del leaders.topics["gone"]
        held = producer.send_nowait("t", bytes(15_000))
        nursery.start_soon(send_to_gone, producer)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        await producer.send("t", b"behind".ljust(10_000))

        assert held.is_done
        assert trio.current_time() - began < 5
        assert not errors

    assert 1 == len(errors)
