"""What a group commits of a program that was cut short, on our broker and on Apache Kafka."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio

import trionet
from support.cache import Unavailable
from support.cut_short import CUT, CUTS, Cut, Reading
from support.eventually import eventually
from support.kafka_node import kafka_node
from trionet import TopicPartition
from trionet.testing import broker as trionet_broker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 60
COUNT = 10
_names = (f"cut{number}" for number in itertools.count(1))


@pytest.fixture(scope="module", params=["trionet", "kafka"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        try:
            if request.param == "kafka":
                yield stack.enter_context(kafka_node())[0]
            else:
                yield stack.enter_context(trionet_broker()).bootstrap_servers
        except Unavailable as reason:
            pytest.skip(str(reason))


async def committed(servers: str, group: str) -> int:
    partition = TopicPartition(group, 0)
    async with trionet.open_consumer(servers, group_id=group) as consumer:
        found = (await consumer.committed([partition]))[partition]
    return 0 if found is None else found.offset


@pytest.mark.parametrize("cut", CUTS)
async def test_what_was_cut_short_is_committed_only_when_the_next_record_is_asked_for(
    servers: str, cut: Cut
) -> None:
    name = next(_names)
    settings = {
        "group.id": name,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": "100",
        "max.poll.records": "1",
    }
    with trio.fail_after(SECONDS):
        async with trionet.open_producer(servers) as producer:
            await producer.send_batch(name, [b"%d" % each for each in range(COUNT)])
        async with trionet.open_consumer(servers, settings, topics=name) as consumer:
            await cut(Reading(consumer))
            await eventually(lambda: committed(servers, name), lambda offset: offset >= CUT)
        assert CUT == await committed(servers, name)

        async with trionet.open_consumer(servers, settings, topics=name) as consumer:
            assert CUT == (await anext(consumer)).offset
            async for record in consumer:  # a new loop finishes it
                assert CUT + 1 == record.offset
                break
            await eventually(lambda: committed(servers, name), lambda offset: offset > CUT)
        assert CUT + 1 == await committed(servers, name)

        async with trionet.open_consumer(servers, settings, topics=name) as consumer:
            consumer.put_back()
            assert CUT + 1 == (await anext(consumer)).offset
            await consumer.commit()
        assert CUT + 2 == await committed(servers, name)
