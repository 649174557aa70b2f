"""The rights that a sink needs to write exactly once: those that its page lists, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

import trionet
from spark.sink.micro_batches import Query, rows
from support.administered_kafka import Kafka, administered_kafka
from support.cache import Unavailable
from trionet.client.admin import (
    AclBinding,
    AclOperation,
    NewTopic,
    PatternType,
    ResourceType,
)
from trionet.errors import TrionetError
from trionet.spark._loop_host import host

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

BOB = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "bob",
    "sasl_password": "secret",
    "max_block_ms": "5000",
    "delivery_timeout_ms": "8000",
    "request_timeout_ms": "5000",
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    try:
        with administered_kafka() as it:
            yield it
            host().close()
    except Unavailable as reason:
        pytest.skip(str(reason))


def right(operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
    is_topic = kind is ResourceType.TOPIC
    return AclBinding(
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.LITERAL if is_topic else PatternType.PREFIXED,
        principal="User:bob",
        operation=operation,
    )


def rights(topic: str) -> list[AclBinding]:
    """Those of docs/reference/spark-exactly-once.md, with the topic's name as the prefix."""
    return [
        right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, f"{topic}-"),
        right(AclOperation.READ, ResourceType.GROUP, f"{topic}-"),
        right(AclOperation.WRITE, ResourceType.TOPIC, topic),
        right(AclOperation.READ, ResourceType.TOPIC, topic),
    ]


def prepare(kafka: Kafka, topic: str, given: list[AclBinding]) -> Query:
    """Create a topic, and let bob write it."""

    async def create() -> None:
        async with trionet.open_admin(kafka.bootstrap) as admin:
            (await admin.create_topics([NewTopic(topic, 1)])).checked()
            (await admin.create_acls(given)).checked()

    trio.run(create)
    return Query(kafka.secured, topic, transactional_id=topic, **BOB)


def test_rights_suffice(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "trionet.spark")
    query = prepare(kafka, "enough", rights("enough"))
    query.task(0, rows(0, 0), attempt=1)  # to be fenced
    for number in range(2):
        query.commit(number, [query.task(0, rows(number, 0), batch_id=number)])
    query.abort(2, [query.task(0, rows(2, 0), batch_id=2)])

    assert [*rows(0, 0), *rows(1, 0)] == Query(kafka.bootstrap, "enough").committed()
    assert "offsets.retention.minutes could not be read" in caplog.text


@pytest.mark.parametrize("missing", range(4), ids=["ids", "group", "write", "read"])
def test_each_right_is_needed(kafka: Kafka, missing: int) -> None:
    topic = f"missing-{missing}"
    given = rights(topic)
    del given[missing]
    query = prepare(kafka, topic, given)

    with pytest.raises(TrionetError) as caught:
        query.commit(0, [query.task(0, rows(0, 0))])

    assert "AUTHORIZATION_FAILED" in str(caught.value)
    assert [] == Query(kafka.bootstrap, topic).committed()
