"""What a producer's errors say of a broker that cannot be reached: its address, and the cause."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from trionet import open_broker, open_producer
from trionet.errors import (
    CallTimedOutError,
    DeliveryTimeoutError,
    DisconnectedError,
    MetadataTimeoutError,
    TrionetError,
    UndeliveredError,
)
from trionet.testing import MemoryNetwork

ADDRESS = "10.0.0.5:9092"


def check_cause(error: TrionetError | None) -> None:
    assert error is not None
    cause = error.__cause__
    assert isinstance(cause, DisconnectedError)
    assert f"could not connect to {ADDRESS} (bootstrap): connection refused" == str(cause)
    assert isinstance(cause.__cause__, ConnectionRefusedError)


async def test_a_record_names_the_broker_and_not_the_topic(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with open_producer(ADDRESS, network=network, max_block_ms=2000) as producer:
        with pytest.raises(MetadataTimeoutError) as raised:
            await producer.send("orders", b"one")

    assert (
        "no bootstrap broker could be reached (10.0.0.5:9092: connection refused);"
        " gave up after 2 s (max.block.ms)"
    ) == str(raised.value)
    check_cause(raised.value)
    assert 2 == trio.current_time()  # nothing is left to wait for at the end of the block


async def test_a_transactional_id_names_the_broker(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with open_producer(
        ADDRESS, network=network, max_block_ms=2000, transactional_id="x"
    ) as producer:
        with pytest.raises(CallTimedOutError) as raised:
            await producer.init_transactions()

    assert (
        "transactional id 'x' was not initialized within 2 s (max.block.ms): no bootstrap broker"
        " could be reached (10.0.0.5:9092: connection refused); the producer goes on trying"
    ) == str(raised.value)
    check_cause(raised.value)


async def test_the_normal_end_waits_for_accepted_records_until_they_expire(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async def leave() -> None:
        async with open_producer(ADDRESS, network=network) as producer:
            async with open_broker({"listeners": f"PLAINTEXT://{ADDRESS}"}, network=network):
                await producer.send("orders", b"one")
            began.append(trio.current_time())
            _ = await producer.enqueue("orders", b"two")

    began: list[float] = []
    with pytest.raises(UndeliveredError) as raised:
        await leave()

    assert 120 == pytest.approx(trio.current_time() - began[0], abs=0.1)
    cause = raised.value.__cause__
    assert isinstance(cause, DeliveryTimeoutError)
    assert "no bootstrap broker could be reached (10.0.0.5:9092: connection refused)" in str(cause)
    check_cause(cause)
