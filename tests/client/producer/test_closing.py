"""How a producer ends, and what becomes of what it has then."""

from __future__ import annotations

import math

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.breaking_network import BreakingNetwork
from support.network_clients import with_requests
from support.scripted_leaders import AT_ONCE, Leaders, hang_up, refusal, say_nothing
from trionet import (
    ApiError,
    DeliveryAbortedError,
    DeliveryTimeoutError,
    UndeliveredError,
    open_producer,
)
from trionet.client._backoff import ExponentialBackoff
from trionet.client.producer._delivery import Delivery
from trionet.client.producer._producer import Producer
from trionet.client.producer._settings import ProducerSettings
from trionet.errors import UnsupportedVersionError
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.init_producer_id import InitProducerIdResponse
from trionet.testing import MemoryNetwork

LINGERING = ProducerSettings(linger_seconds=3600.0)
ONE_IN_FLIGHT = attrs.evolve(AT_ONCE, client=with_requests(in_flight_max=1))


def why(delivery: Delivery) -> str:
    with pytest.raises(DeliveryAbortedError) as caught:
        delivery.result()
    return str(caught.value)


async def test_normal_end_waits_for_what_is_there(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(LINGERING) as producer:
        first = await producer.enqueue("t", b"a")
        leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)] * 3

    assert 0 == first.result().offset
    assert trio.current_time() < 10


async def test_normal_end_is_over_though_the_brokers_are_gone(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """Every record has its outcome after ``delivery.timeout.ms``, and nothing waits longer."""
    async with leaders.listening():
        with pytest.raises(UndeliveredError):  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, AT_ONCE, network=network) as producer:
                await producer.send("t", b"0")
                network.kill_host("10.0.0.1")
                began = trio.current_time()
                delivery = producer.send_nowait("t", b"a")

        assert 120 == pytest.approx(trio.current_time() - began, abs=1)
        with pytest.raises(DeliveryTimeoutError):
            delivery.result()


async def test_error_of_the_block_ends_it_at_once(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """Each delivery says whether its record may have been written."""
    async with leaders.listening():
        with pytest.raises(KeyError):  # noqa: PT012 - what the block does is what is tested
            async with open_producer(leaders.address, ONE_IN_FLIGHT, network=network) as producer:
                await producer.send("t", b"0")
                leaders.answers = [say_nothing]
                sent = producer.send_nowait("t", b"a")
                waiting = producer.send_nowait("t", b"b")
                began = trio.current_time()
                raise KeyError

        assert began == trio.current_time()
        assert "may have been written" in why(sent)
        assert "before the record was sent" in why(waiting)


async def test_record_that_waits_to_be_sent_again_may_have_been_written(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    leaders.answers = [leaders.write_and(hang_up)]
    slow = attrs.evolve(AT_ONCE, retry=ExponentialBackoff(10.0, 10.0))
    async with leaders.listening():
        with trio.move_on_after(5):
            async with open_producer(leaders.address, slow, network=network) as producer:
                delivery = await producer.enqueue("t", b"a")
                await trio.sleep_forever()

        assert [b"a"] == leaders.values()
        assert "may have been written" in why(delivery)


async def test_cancellation_of_the_block_ends_it_at_once(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    async with leaders.listening():
        with trio.move_on_after(10):
            async with open_producer(leaders.address, LINGERING, network=network) as producer:
                delivery = await producer.enqueue("t", b"a")
                await trio.sleep_forever()

        assert 10 == trio.current_time()
        assert "before the record was sent" in why(delivery)
    assert [] == leaders.batches


async def test_a_task_that_waits_when_the_producer_is_closed_gets_an_error(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """B9: for waiters, for a topic, and for an acknowledgement."""
    settings = attrs.evolve(ONE_IN_FLIGHT, buffer_bytes=20_000)
    errors: list[Exception] = []

    async def sending(producer: Producer, topic: str) -> None:
        try:
            await producer.send(topic, bytes(10_000))
        except (DeliveryAbortedError, trio.ClosedResourceError) as error:
            errors.append(error)

    async with leaders.listening(), trio.open_nursery() as nursery:
        with pytest.raises(KeyError):  # noqa: PT012 - what the block does is what is tested
            async with open_producer(leaders.address, settings, network=network) as producer:
                await producer.send("t", b"0")
                leaders.answers = [say_nothing]
                for topic in ("t", "t", "unknown"):
                    nursery.start_soon(sending, producer, topic)
                    await wait_all_tasks_blocked()
                raise KeyError

    assert [DeliveryAbortedError, trio.ClosedResourceError, trio.ClosedResourceError] == sorted(
        map(type, errors), key=lambda kind: kind.__name__, reverse=True
    )


async def test_producer_that_may_not_be_idempotent_says_so_and_may_be_allowed_later(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    node = leaders.nodes[1]
    give = node.replies["InitProducerId"]
    denied = InitProducerIdResponse(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED)
    node.replies["InitProducerId"] = lambda _: denied
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(ApiError, match="idempotent producer: CLUSTER_AUTHORIZATION_FAILED"):
            await producer.send("t", b"a")
        node.replies["InitProducerId"] = give
        await trio.sleep(5)
        await producer.send("t", b"b")

    assert [b"b"] == leaders.values()


async def test_brokers_without_idempotent_producers_end_the_producer(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """What ends it is raised by every call that comes after, and at the end if by none."""
    del leaders.nodes[1].ranges[api_keys.INIT_PRODUCER_ID]
    async with leaders.producer(AT_ONCE) as producer:
        for _ in range(2):
            with pytest.raises(UnsupportedVersionError, match=r"set enable\.idempotence to false"):
                await producer.send("t", b"a")
        with pytest.raises(UnsupportedVersionError):
            await producer.flush()

    async with leaders.listening():
        with pytest.raises(UnsupportedVersionError):
            async with open_producer(leaders.address, AT_ONCE, network=network):
                await trio.sleep(10)


async def test_poll_that_fails_is_tried_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    network = BreakingNetwork()
    leaders = Leaders(network)
    async with (
        leaders.listening(),
        open_producer(leaders.address, AT_ONCE, network=network) as producer,
    ):
        for number in range(3):
            network.failures = number
            await producer.send("t", b"%d" % number)

    assert [b"0", b"1", b"2"] == leaders.values()
    assert 3 == caplog.text.count("OSError: the poller has failed")


@pytest.mark.parametrize("call", ["send", "key_partitions"])
async def test_fault_of_the_sending_task_ends_the_wait_for_a_topic(
    autojump_clock: MockClock, call: str
) -> None:
    """A call that waits, and one that would begin to."""
    network = BreakingNetwork()
    leaders = Leaders(network)
    async with (
        leaders.listening(),
        open_producer(leaders.address, AT_ONCE, network=network) as producer,
    ):
        await producer.send("t", b"0")
        network.failures = math.inf
        with pytest.raises(OSError, match="the poller has failed"):
            await producer.send("new", b"a")
        assert trio.current_time() < AT_ONCE.max_block_seconds
        with pytest.raises(OSError, match="the poller has failed"):
            await (producer.send("new", b"b") if call == "send" else producer.key_partitions("new"))


async def test_fault_of_the_sending_task_reaches_the_next_call(autojump_clock: MockClock) -> None:
    """It does not end the block of who uses the producer, and leaves no delivery undecided."""
    network = BreakingNetwork()
    leaders = Leaders(network)
    async with leaders.listening():
        with pytest.raises(OSError, match="has failed"):  # noqa: PT012 - as above
            async with open_producer(leaders.address, AT_ONCE, network=network) as producer:
                await producer.send("t", b"0")
                leaders.answers = [say_nothing]
                network.failures = math.inf
                delivery = producer.send_nowait("t", b"a")
                await trio.sleep(60)
                assert delivery.is_done
        with pytest.raises(OSError, match="the poller has failed"):
            delivery.result()
        with pytest.raises(OSError, match="the poller has failed"):
            _ = producer.send_nowait("t", b"b")
