"""The results' topic, looked for and read."""

from __future__ import annotations

import json

from support.watching import watching
from trionet import open_admin, open_broker, open_producer
from trionet.dashboard.sources._pipeline_source import PipelineSource, results_topic

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


async def test_a_topic_that_is_not_there_is_said() -> None:
    async with open_broker(auto_create_topics_enable=False) as broker:
        source = source_at(broker.bootstrap_servers, "nowhere")
        async with watching(source) as watched:
            source.focus("pipeline")
            model = await watched.until(lambda model: model.pipeline.minutes.failure)

    assert "topic 'nowhere' does not exist" == model.pipeline.minutes.failure


def test_results_are_those_of_a_log_that_is_there() -> None:
    assert "b-results" == results_topic(["a-results", "b", "b-results", "c"])
    assert None is results_topic(["a-results", "b"])
