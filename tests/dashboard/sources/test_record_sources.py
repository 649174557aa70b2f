"""The records of a topic as they come, and the results of the pipeline, looked for and read."""

from __future__ import annotations

import json

import trio

from support.watching import watching
from trionet import open_admin, open_broker, open_producer
from trionet.client.admin import NewTopic
from trionet.dashboard.sources._record_sources import (
    FIRST_RECORDS,
    LAG_MAX,
    PipelineSource,
    TailSource,
    results_topic,
)


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


KEY = json.dumps({"kind": "windows", "window": "2026-11-22T11:45:00Z"}).encode()
HOUR_MS = 3_600_000


def source_at(servers: str, topic: str | None = None, now_ms: int = 10 * HOUR_MS) -> PipelineSource:
    return PipelineSource(servers, topic=topic, now_ms=lambda: now_ms)


async def test_results_are_found_beside_their_log_and_read_as_they_come() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        now = 10 * HOUR_MS
        await producer.send("log", b"x")
        await producer.send("log-results", b'{"requests": 7}', key=KEY, timestamp=now)
        source = source_at(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("pipeline")
            model = await watched.until(lambda model: len(model.pipeline.minutes))
            assert "log-results" == model.pipeline.topic
            other = KEY.replace(b"11:45", b"11:46")
            await producer.send("log-results", b'{"requests": 9}', key=other, timestamp=now)
            model = await watched.until(lambda model: len(model.pipeline.minutes) == 2)

        assert [9, 7] == [row.requests for row in model.pipeline.minutes.values()]


async def test_what_is_older_than_what_is_kept_is_not_read() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        old = KEY.replace(b"11:45", b"01:00")
        await producer.send("r", b'{"requests": 1}', key=old, timestamp=5 * HOUR_MS)
        await producer.send("r", b'{"requests": 7}', key=KEY, timestamp=10 * HOUR_MS)
        source = source_at(broker.bootstrap_servers, "r")
        async with watching(source) as watched:
            source.focus("pipeline")
            model = await watched.until(lambda model: len(model.pipeline.minutes))

        assert [7] == [row.requests for row in model.pipeline.minutes.values()]


async def test_without_results_it_is_said_why() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["log"])
        source = source_at(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("pipeline")
            model = await watched.until(lambda model: model.pipeline.minutes.missing)

    assert "--pipeline-topic" in f"{model.pipeline.minutes.missing}"


async def test_a_results_topic_that_is_not_there_is_said() -> None:
    async with open_broker(auto_create_topics_enable=False) as broker:
        source = source_at(broker.bootstrap_servers, "nowhere")
        async with watching(source) as watched:
            source.focus("pipeline")
            model = await watched.until(lambda model: model.pipeline.minutes.failure)

    assert "topic 'nowhere' does not exist" == model.pipeline.minutes.failure


def test_results_are_those_of_a_log_that_is_there() -> None:
    assert "b-results" == results_topic(["a-results", "b", "b-results", "c"])
    assert None is results_topic(["a-results", "b"])
