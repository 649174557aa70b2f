"""The first batches of a producer, of one record each, to a new partition behind a proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs
import trio

import trionet
from support.kafka_proxy import open_kafka_proxy
from support.produce_fates import PASSED, REFUSALS, Fate, after_append, bit_flipped, refused
from trionet import Admin, TopicPartition
from trionet.client.admin import NewTopic, OffsetSpec
from trionet.protocol import error_codes

#: What is sent; each record is a batch.
ALL: list[bytes | None] = [b"%d" % number for number in range(12)]

#: Each leaves a batch unwritten.
UNWRITTEN = {fate.text: fate for fate in (*map(refused, REFUSALS), bit_flipped(400))}
#: Of a batch that is on its way once more, since its leader has it and says something else. Of each
#: producer a leader remembers five batches (KIP-98); those after it must not be more.
FORGOTTEN = {
    (1, 0): after_append(error_codes.REQUEST_TIMED_OUT),
    (1, 1): bit_flipped(400),
}
#: Meanwhile the batches after it are sent, too.
_DELAY_SECONDS = 0.05


class Sent(NamedTuple):
    """What was acknowledged, and what was written.

    Attributes:
        offsets: by record, as they were acknowledged.
        log: the values in the partition, from offset 0.
    """

    offsets: list[int]
    log: list[bytes | None]

    @property
    def acknowledged_elsewhere(self) -> list[bytes | None]:
        """The records that are not where it was said, or nowhere if it was not said where."""
        return [
            value
            for value, offset in zip(ALL, self.offsets, strict=True)
            if value not in (self.log if offset < 0 else self.log[offset : offset + 1])
        ]


async def send_first_batches(
    bootstrap_servers: str, topic: str, fates: Mapping[tuple[int, int], Fate], *, in_flight: int
) -> Sent:
    """Send, and look what became of it.

    Args:
        bootstrap_servers: of the cluster.
        topic: a new one.
        fates: by batch and attempt, each counted from 0; all others are passed on. Where one is
            not, the batches after it are on their way when it is met.
        in_flight: how many batches may be under way.
    """
    async with trionet.open_admin(bootstrap_servers) as admin:
        await _create(admin, topic)
    async with open_kafka_proxy(bootstrap_servers) as (servers, proxy):
        held = {place: _held(fate) for place, fate in fates.items()}
        proxy.fate_of = lambda arrival: held.get((arrival.batch, arrival.attempt), PASSED)
        async with trionet.open_producer(
            servers,
            {
                "linger.ms": 0,
                "batch.size": 1,
                "max.in.flight.requests.per.connection": in_flight,
                "request.timeout.ms": 5_000,
                "delivery.timeout.ms": 10_000,
            },
        ) as producer:
            deliveries = [await producer.enqueue(topic, value) for value in ALL]
            offsets = [(await delivery).offset for delivery in deliveries]
    return Sent(offsets, await _read(bootstrap_servers, topic))


def _held(fate: Fate) -> Fate:
    return attrs.evolve(fate, delay_seconds=_DELAY_SECONDS)


async def _create(admin: Admin, topic: str) -> None:
    (await admin.create_topics([NewTopic(topic, 1, 1)])).checked()
    # Its leader takes batches from now on: what is refused, the proxy has refused.
    (await admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.LATEST})).checked()


async def _read(bootstrap_servers: str, topic: str) -> list[bytes | None]:
    place = TopicPartition(topic, 0)
    found: list[bytes | None] = []
    async with trionet.open_consumer(bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([place])
        with trio.fail_after(30):
            while consumer.lag(place) != 0:
                found += (await consumer.next_batch()).values
    return found
