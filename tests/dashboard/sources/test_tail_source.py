"""The records of a topic as they come."""

from __future__ import annotations

import trio

from support.watching import watching
from trionet import open_admin, open_broker, open_producer
from trionet.client.admin import NewTopic
from trionet.dashboard.sources._tail_source import FIRST_RECORDS, LAG_MAX, TailSource


async def test_the_last_records_are_there_and_those_that_come_follow() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        for number in range(FIRST_RECORDS + 5):
            await producer.send("t", b"%d" % number)
        source = TailSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("tail", ("t", None))
            model = await watched.until(lambda model: len(model.tail) == FIRST_RECORDS)
            assert FIRST_RECORDS + 4 == next(iter(model.tail.values())).offset
            await producer.send("t", b"the next", key=b"k")
            model = await watched.until(lambda model: len(model.tail) > FIRST_RECORDS)

            newest = next(iter(model.tail.values()))
            assert ("the next", "k") == (newest.text, newest.key_text)
            assert ("t", None) == model.tail_of
            assert 0 == model.tail_skipped


async def test_one_partition_is_followed_alone() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("t", 2)])
        source = TailSource(broker.bootstrap_servers)
        async with (
            open_producer(broker.bootstrap_servers) as producer,
            watching(source) as watched,
        ):
            source.focus("tail", ("t", 1))
            await watched.until(lambda model: model.tail.updated_at)
            await producer.send("t", b"no", partition=0)
            await producer.send("t", b"yes", partition=1)
            model = await watched.until(lambda model: len(model.tail))

            assert ["yes"] == [row.text for row in model.tail.values()]


async def test_who_looks_elsewhere_reads_nothing_any_more() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"x")
        source = TailSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("tail", ("t", None))
            await watched.until(lambda model: len(model.tail))
            source.focus("topics")
            await watched.until(lambda model: model.tail_of is None)

            assert 0 == len(watched.model.tail)
            with trio.fail_after(5):  # the producer's connection stays
                while broker.statistics().server.connections > 1:
                    await trio.lowlevel.checkpoint()


async def test_a_topic_that_is_not_there_is_said() -> None:
    async with open_broker(auto_create_topics_enable=False) as broker:
        source = TailSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("tail", ("t", None))
            model = await watched.until(lambda model: model.tail.failure)

        assert "the topic does not exist" in f"{model.tail.failure}"


async def test_who_is_far_behind_goes_on_near_the_end_and_says_so() -> None:
    count = 5 * LAG_MAX
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"first")
        source = TailSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("tail", ("t", None))
            await watched.until(lambda model: len(model.tail))
            sent = [await producer.enqueue("t", b"%d" % number) for number in range(count)]
            await producer.flush()
            model = await watched.until(
                lambda model: next(iter(model.tail.values())).offset == count
            )

        shown = next(iter(model.tail)) + 1
        assert 1 + len(sent) == shown + model.tail_skipped
        assert model.tail_skipped > 0
