"""What expires, and what is held up meanwhile."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.network_clients import with_requests
from support.scripted_leaders import AT_ONCE, Leaders, refusal, say_nothing
from support.scripted_node import encoded
from trionet import DeliveryTimeoutError
from trionet.client.producer import Acknowledgement
from trionet.client.producer._settings import ProducerSettings
from trionet.protocol import error_codes
from trionet.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from trionet.testing import MemoryNetwork

ONE_EACH = attrs.evolve(AT_ONCE, batch_bytes=0)

PLAIN = attrs.evolve(AT_ONCE, idempotence=False)


async def test_delivery_timeout_ends_a_batch_in_flight_and_its_late_response_changes_nothing(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D11: it is not sent again either."""
    settings = attrs.evolve(
        AT_ONCE, delivery_timeout_seconds=20.0, client=with_requests(timeout_seconds=60.0)
    )
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        began = trio.current_time()
        delivery = producer.send_nowait("t", b"a")
        with pytest.raises(DeliveryTimeoutError, match=r"t-0 .* 20 s"):
            await delivery

        assert began + 20 == pytest.approx(trio.current_time())
        silent = leaders.nodes[1].last("Produce")
        answer = PartitionProduceResponse(index=0, base_offset=1)
        late = TopicProduceResponse(topic_id=leaders.topic_id("t"), partition_responses=[answer])
        await silent.stream.send_all(
            encoded(
                "Produce", silent.version, silent.correlation_id, ProduceResponse(responses=[late])
            )
        )
        await trio.sleep(1)
        with pytest.raises(DeliveryTimeoutError):
            delivery.result()
    assert [[b"0"], [b"a"]] == [each.values for each in leaders.batches]


async def test_delivery_timeout_reports_the_last_error(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D11, K14: a batch that waits to be sent again expires, too."""
    leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)] * 1000
    settings = attrs.evolve(AT_ONCE, delivery_timeout_seconds=5.0)
    async with leaders.producer(settings) as producer:
        with pytest.raises(DeliveryTimeoutError, match="NOT_ENOUGH_REPLICAS"):
            await producer.send("t", b"a")
        leaders.answers.clear()
        await producer.send("t", b"b")

    assert [b"b"] == leaders.values()


async def test_several_partitions_may_expire_at_once(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """D14: nobody is told of anything but its own."""
    leaders = Leaders(network, topics={"t": 3})
    settings = ProducerSettings(
        linger_seconds=0.0, delivery_timeout_seconds=5.0, client=with_requests(timeout_seconds=60.0)
    )
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0", partition=0)
        leaders.answers = [say_nothing] * 3
        deliveries = [
            await producer.enqueue("t", b"%d" % each, partition=each) for each in (0, 1, 2)
        ]
        await producer.flush()

        for number, delivery in enumerate(deliveries):
            with pytest.raises(DeliveryTimeoutError, match=f"t-{number}"):
                delivery.result()


async def test_who_hears_of_an_expiry_may_send_to_the_same_partition_at_once(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D6, D12, D14: the memory of what expired is free again when its request is over, not before.

    The buffer has room for two batches: one is under way without a response, one waits behind it.
    """
    settings = attrs.evolve(
        AT_ONCE,
        idempotence=False,
        delivery_timeout_seconds=20.0,
        buffer_bytes=40_000,
        client=with_requests(timeout_seconds=60.0, in_flight_max=1),
    )
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        first = producer.send_nowait("t", b"a")
        second = producer.send_nowait("t", b"b")
        with pytest.raises(DeliveryTimeoutError):
            await first
        with pytest.raises(DeliveryTimeoutError):
            await second
        assert 20 == pytest.approx(trio.current_time(), abs=1)
        with pytest.raises(trio.WouldBlock):
            _ = producer.send_nowait("t", bytes(30_000))
        third = await producer.enqueue("t", bytes(30_000))
        assert 60 <= trio.current_time()

        assert 1 == (await third).offset
        both = [producer.send_nowait("t", bytes(16_384)) for _ in range(2)]
        await producer.flush()
        assert [2, 3] == [each.result().offset for each in both]


async def test_with_guaranteed_order_an_expired_batch_holds_up_the_next_until_its_response(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D13: or the first might be written after the second."""
    settings = attrs.evolve(
        ONE_EACH,
        idempotence=False,
        delivery_timeout_seconds=20.0,
        client=with_requests(timeout_seconds=30.0, in_flight_max=1),
    )
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        first = producer.send_nowait("t", b"a")
        await trio.sleep(15)
        second = producer.send_nowait("t", b"b")
        with pytest.raises(DeliveryTimeoutError):
            await first
        assert [[b"0"], [b"a"]] == [each.values for each in leaders.batches]
        await second

    assert 30 <= leaders.batches[-1].at
    assert [b"0", b"b"] == leaders.values()


class Steps(trio.abc.Instrument):
    """Counts how often a producer's task has its turn."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += "Sender.run" in task.name


async def test_producer_with_nothing_to_do_does_not_spin(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D15, D16: nor does one that waits for a batch to expire (KAFKA-7311)."""
    steps = Steps()
    settings = attrs.evolve(AT_ONCE, delivery_timeout_seconds=300.0)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)] + [say_nothing] * 100
        trio.lowlevel.add_instrument(steps)
        with pytest.raises(DeliveryTimeoutError):
            await producer.send("t", b"a")
        await trio.sleep(3600)
        trio.lowlevel.remove_instrument(steps)

    assert 0 < steps.count < 1000


async def test_expiry_is_reported_once_however_long_its_request_stays(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D11: also while others expire after it."""
    settings = attrs.evolve(
        ONE_EACH, delivery_timeout_seconds=10.0, client=with_requests(timeout_seconds=60.0)
    )
    told: list[Acknowledgement] = []
    async with leaders.producer(settings, on_acknowledgement=told.append) as producer:
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        deliveries = []
        for each in range(3):
            deliveries.append(producer.send_nowait("t", b"%d" % each))
            await trio.sleep(1)
        await producer.flush()
        assert all(isinstance(each.error, DeliveryTimeoutError) for each in deliveries)

    assert [None, *(each.error for each in deliveries)] == [each.error for each in told]
