"""Python's clients alter settings of topics and of the broker, in the calls that each has for it.

Every one takes away what it has set: the broker is everybody's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.clients.client import PATIENCE_SECONDS
from support.durable import OTHER

Setting = tuple[str | None, int]
Check = Callable[[str, str, str, Setting], None]

OF_TOPIC, OF_BROKER, DEFAULT = 1, 2, 5


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Any:
    """confluent-kafka's, which knows every call."""
    module = pytest.importorskip("confluent_kafka.admin")
    return module.AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})


@pytest.fixture(scope="module")
def check(admin: Any) -> Check:
    """Checks the value and the source of one setting: of trionet's, as soon as it was altered."""
    module = pytest.importorskip("confluent_kafka.admin")

    def describe(type: str, name: str, key: str) -> Setting:
        (future,) = admin.describe_configs([module.ConfigResource(type, name)]).values()
        entry = future.result(PATIENCE_SECONDS)[key]
        return entry.value, entry.source

    def check(type: str, name: str, key: str, expected: Setting) -> None:
        # Kafka's brokers hear of a change some time after it got a response.
        deadline = time.monotonic() + (PATIENCE_SECONDS if OTHER else 0)
        while (found := describe(type, name, key)) != expected and time.monotonic() < deadline:
            pass
        assert expected == found

    return check


# confluent-kafka.


def step_by_step(
    admin: Any, type: str, name: str, *operations: tuple[str, str, str | None]
) -> None:
    """IncrementalAlterConfigs of a key each; raises what the broker responds."""
    module = pytest.importorskip("confluent_kafka.admin")

    entries = [
        module.ConfigEntry(key, value, incremental_operation=module.AlterConfigOpType[what])
        for key, what, value in operations
    ]
    resource = module.ConfigResource(type, name, incremental_configs=entries)
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(PATIENCE_SECONDS)


def test_confluent_kafka_alters_a_topic_step_by_step(
    admin: Any, check: Check, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**{"retention.ms": "1000"})

    step_by_step(
        admin,
        "TOPIC",
        topic,
        ("retention.ms", "DELETE", None),
        ("segment.bytes", "SET", "2000000"),
        ("cleanup.policy", "APPEND", "compact"),
    )

    check("TOPIC", topic, "segment.bytes", ("2000000", OF_TOPIC))
    check("TOPIC", topic, "retention.ms", ("604800000", DEFAULT))
    check("TOPIC", topic, "cleanup.policy", ("delete,compact", OF_TOPIC))

    step_by_step(admin, "TOPIC", topic, ("cleanup.policy", "SUBTRACT", "delete"))

    check("TOPIC", topic, "cleanup.policy", ("compact", OF_TOPIC))


@pytest.fixture
def clean(admin: Any) -> Iterator[None]:
    """The broker has no settings of its own after the test."""
    keys = ("message.max.bytes", "log.retention.ms")
    yield
    step_by_step(admin, "BROKER", "1", *((key, "DELETE", None) for key in keys))


def test_confluent_kafka_alters_the_broker(
    admin: Any, check: Check, new_topic: Callable[..., str], clean: None
) -> None:
    topic = new_topic()

    step_by_step(admin, "BROKER", "1", ("message.max.bytes", "SET", "3000000"))

    check("BROKER", "1", "message.max.bytes", ("3000000", OF_BROKER))
    check("TOPIC", topic, "max.message.bytes", ("3000000", OF_BROKER))


def test_confluent_kafka_learns_what_is_wrong(admin: Any, new_topic: Callable[..., str]) -> None:
    from confluent_kafka import KafkaError, KafkaException

    for type, name, key, value, code in (
        ("TOPIC", new_topic(), "retention.ms", "x", KafkaError.INVALID_CONFIG),
        ("TOPIC", "not-there", "retention.ms", "1", KafkaError.UNKNOWN_TOPIC_OR_PART),
        ("BROKER", "1", "log.dirs", "/x", KafkaError.INVALID_REQUEST),
    ):
        with pytest.raises(KafkaException) as raised:
            step_by_step(admin, type, name, (key, "SET", value))

        assert code == raised.value.args[0].code()
        assert raised.value.args[0].str()


def test_confluent_kafka_replaces_the_settings_of_a_topic(
    admin: Any, check: Check, new_topic: Callable[..., str]
) -> None:
    module = pytest.importorskip("confluent_kafka.admin")

    topic = new_topic(**{"retention.ms": "1000", "segment.ms": "2000"})
    resource = module.ConfigResource("TOPIC", topic, set_config={"segment.ms": "3000"})

    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        (future,) = admin.alter_configs([resource]).values()
    future.result(PATIENCE_SECONDS)

    check("TOPIC", topic, "segment.ms", ("3000", OF_TOPIC))
    check("TOPIC", topic, "retention.ms", ("604800000", DEFAULT))


# kafka-python.


@pytest.fixture
def kafka_python(bootstrap: str) -> Iterator[Any]:
    module = pytest.importorskip("kafka.admin")
    admin = module.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


@pytest.mark.parametrize("incremental", [True, False])
def test_kafka_python_alters_a_topic(
    kafka_python: Any, check: Check, new_topic: Callable[..., str], incremental: bool
) -> None:
    from kafka.admin import ConfigResource

    topic = new_topic(**{"retention.ms": "1000"})
    wanted = [ConfigResource("TOPIC", topic, {"segment.ms": "3000"})]

    kafka_python.alter_configs(wanted, incremental=incremental)

    # What it says is there and it has not been asked to keep, it adds to AlterConfigs by itself.
    check("TOPIC", topic, "segment.ms", ("3000", OF_TOPIC))
    check("TOPIC", topic, "retention.ms", ("1000", OF_TOPIC))


def test_kafka_python_alters_the_broker_and_takes_it_back(
    kafka_python: Any, check: Check, clean: None
) -> None:
    from kafka.admin import ConfigResource

    kafka_python.alter_configs([ConfigResource("BROKER", "1", {"log.retention.ms": "70000"})])
    check("BROKER", "1", "log.retention.ms", ("70000", OF_BROKER))

    kafka_python.reset_configs([ConfigResource("BROKER", "1", {"log.retention.ms": None})])
    check("BROKER", "1", "log.retention.ms", (None, DEFAULT))


def test_kafka_python_lists_what_can_be_described(
    kafka_python: Any, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()

    listed = str(kafka_python.list_config_resources())

    assert topic in listed


# aiokafka.


def test_aiokafka_replaces_the_settings_of_a_topic(
    bootstrap: str, check: Check, new_topic: Callable[..., str]
) -> None:
    module = pytest.importorskip("aiokafka.admin")
    topic = new_topic(**{"retention.ms": "1000"})

    async def alter() -> Any:
        admin = module.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            resource = module.config_resource.ConfigResource(
                module.config_resource.ConfigResourceType.TOPIC, topic, {"segment.ms": "3000"}
            )
            return await admin.alter_configs([resource])
        finally:
            await admin.close()

    (answer, *_) = asyncio.run(alter())

    assert [0] == [each[0] for each in answer.resources]
    check("TOPIC", topic, "segment.ms", ("3000", OF_TOPIC))
    check("TOPIC", topic, "retention.ms", ("604800000", DEFAULT))
