"""A sink's options."""

from __future__ import annotations

import pickle

import pytest

from trionet.errors import ConfigError
from trionet.spark.options._options import SinkOptions

SERVERS = {"kafka.bootstrap.servers": "host:9092"}


@pytest.mark.parametrize(
    ("options", "topic"),
    [({}, None), ({"topic": " t "}, "t"), ({"TOPIC": "t"}, "t")],
)
def test_a_topic_may_be_given_for_all_rows(options: dict[str, str], topic: str | None) -> None:
    actual = SinkOptions.parse(SERVERS | options)

    assert SinkOptions(client={"bootstrap.servers": "host:9092"}, topic=topic) == actual
    assert "host:9092" == actual.bootstrap_servers
    assert actual == pickle.loads(pickle.dumps(actual))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option 'kafka.bootstrap.servers' must be specified for a sink"),
        (SERVERS | {"topic": " "}, "topic = '' is not allowed"),
        (SERVERS | {"topics": "t"}, "topics: unknown option; the closest match is topic"),
        (SERVERS | {"exactlyOnce": "true"}, "exactlyOnce is not supported"),
        (SERVERS | {"subscribe": "t"}, "subscribe: not an option of a sink, only of a source"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_written(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        SinkOptions.parse(options)

    assert message in str(caught.value)


def test_where_a_stream_keeps_its_checkpoint_is_for_spark() -> None:
    options = SERVERS | {"checkpointLocation": "/tmp/c", "queryName": "q", "path": "t"}

    assert SinkOptions.parse(SERVERS) == SinkOptions.parse(options)
