"""ListConfigResources: the responses below are those of a real Kafka 4.3 without client metrics."""

from __future__ import annotations

import pytest

from support.calls import create_topic
from support.client import Client
from support.config_calls import BROKER, CLIENT_METRICS, GROUP, LOGGER, TOPIC
from support.nodes import connect_to
from trionet import open_broker
from trionet.protocol.error_codes import UNSUPPORTED_VERSION
from trionet.protocol.messages.list_config_resources import ListConfigResourcesRequest


async def ask(client: Client, *types: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
    answer = await client.call(ListConfigResourcesRequest(resource_types=list(types)), version)
    return answer.error_code, [
        (each.resource_type, each.resource_name) for each in answer.config_resources
    ]


async def test_without_types_all_that_can_be_described_is_reported(client: Client) -> None:
    await create_topic(client, "t")
    await create_topic(client, "u")

    assert (0, [(LOGGER, "1"), (BROKER, "1"), (TOPIC, "t"), (TOPIC, "u")]) == await ask(client)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([TOPIC], [(TOPIC, "t")]),
        ([TOPIC, BROKER], [(BROKER, "1"), (TOPIC, "t")]),
        ([LOGGER, GROUP, CLIENT_METRICS], [(LOGGER, "1")]),
        ([GROUP], []),
    ],
)
async def test_types_narrow_the_response(
    client: Client, types: list[int], expected: list[tuple[int, str]]
) -> None:
    await create_topic(client, "t")

    assert (0, expected) == await ask(client, *types)


@pytest.mark.parametrize("type", [0, 1, 99, -1])
async def test_an_unknown_type_is_an_error(client: Client, type: int) -> None:
    assert (UNSUPPORTED_VERSION, []) == await ask(client, TOPIC, type)


async def test_version_0_is_about_client_metrics_and_there_are_none(client: Client) -> None:
    await create_topic(client, "t")

    assert (0, []) == await ask(client, version=0)


async def test_all_brokers_that_run_are_reported_by_each_of_them() -> None:
    async with open_broker(brokers=3) as broker, connect_to(broker, 2) as [client]:
        await broker.stop(3)

        assert (0, [(LOGGER, "1"), (LOGGER, "2"), (BROKER, "1"), (BROKER, "2")]) == await ask(
            client, LOGGER, BROKER
        )
