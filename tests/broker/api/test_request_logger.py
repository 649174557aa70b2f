"""The log of requests: valid JSON, and no secret in it."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from support.calls import create_topic
from support.client import connect
from trionet import open_broker
from trionet.broker.api._request_logger import is_harmless, loggable
from trionet.broker.config._alterations import BROKER, BROKER_LOGGER, TOPIC
from trionet.protocol import api_keys
from trionet.protocol._config_types import HIDDEN
from trionet.protocol.messages import alter_configs, incremental_alter_configs
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.metadata import MetadataRequest

SET, DELETE, APPEND, SUBTRACT = range(4)
CLIENT_METRICS = 16


@pytest.mark.parametrize(
    ("resource_type", "key", "harmless"),
    [
        (BROKER, "num.io.threads", True),
        (BROKER, "listener.name.internal.num.network.threads", True),
        (BROKER, "ssl.keystore.password", False),
        (BROKER, "listener.name.internal.ssl.key.password", False),
        (BROKER, "listener.name.internal.plain.sasl.jaas.config", False),
        (BROKER, "sasl.jaas.config", False),
        (BROKER, "custom.plugin.token", False),
        (TOPIC, "retention.ms", True),
        (TOPIC, "custom.token", False),
        (BROKER_LOGGER, "kafka.server.KafkaApis", True),
        (CLIENT_METRICS, "interval.ms", False),
    ],
)
def test_only_values_of_keys_that_are_known_to_be_harmless_are_reported(
    resource_type: int, key: str, harmless: bool
) -> None:
    """R1: no passwords, no JAAS, nothing that nobody knows."""
    assert harmless == is_harmless(resource_type, key)


def test_secrets_of_alter_configs_are_hidden() -> None:
    """R1: in a copy; the request itself keeps them."""
    configs = [
        alter_configs.AlterableConfig(name="num.io.threads", value="8"),
        alter_configs.AlterableConfig(name="ssl.key.password", value="secret"),
        alter_configs.AlterableConfig(name="unknown", value=None),
    ]
    message = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=BROKER, resource_name="1", configs=configs
            )
        ],
        validate_only=True,
    )

    shown = loggable(api_keys.ALTER_CONFIGS, message)

    assert ["8", HIDDEN, HIDDEN] == [each.value for each in shown.resources[0].configs]
    assert ("1", True) == (shown.resources[0].resource_name, shown.validate_only)
    assert ["8", "secret", None] == [each.value for each in message.resources[0].configs]


@pytest.mark.parametrize("operation", [SET, DELETE, APPEND, SUBTRACT])
def test_secrets_of_incremental_alter_configs_are_hidden(operation: int) -> None:
    """R1: whatever is to be done with them."""
    configs = [
        incremental_alter_configs.AlterableConfig(
            name=name, value="secret", config_operation=operation
        )
        for name in ("log.cleaner.threads", "sasl.jaas.config")
    ]
    message = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(resource_type=BROKER, configs=configs)
        ]
    )

    shown = loggable(api_keys.INCREMENTAL_ALTER_CONFIGS, message)

    assert [(operation, "secret"), (operation, HIDDEN)] == [
        (each.config_operation, each.value) for each in shown.resources[0].configs
    ]


def test_other_requests_are_shown_as_they_are() -> None:
    """R2: the same object."""
    message = MetadataRequest()

    assert message is loggable(api_keys.METADATA, message)


async def test_each_request_is_a_line_of_json(caplog: pytest.LogCaptureFixture) -> None:
    """R2: with the header, the connection and who sent it; records by their length only."""
    caplog.set_level(logging.DEBUG, "trionet.request")
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.call(
            ApiVersionsRequest(client_software_name="me", client_software_version="1.0"), 3
        )
        await create_topic(client, "a")

    lines: list[dict[str, Any]] = [
        json.loads(record.getMessage())
        for record in caplog.records
        if record.name == "trionet.request"
    ]
    names = [line["requestHeader"]["requestApiKeyName"] for line in lines]
    assert ["ApiVersions", "CreateTopics"] == names
    asked, created = lines
    assert "me" == asked["request"]["clientSoftwareName"]
    assert "unknown" == asked["clientInformation"]["softwareName"]
    assert ("me", "1.0") == (
        created["clientInformation"]["softwareName"],
        created["clientInformation"]["softwareVersion"],
    )
    assert "a" == created["request"]["topics"][0]["name"]
    assert ("PLAINTEXT", "PLAINTEXT", "User:ANONYMOUS") == (
        created["listener"],
        created["securityProtocol"],
        created["principal"],
    )
    assert created["connection"].startswith("127.0.0.1:")
