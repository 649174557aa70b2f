"""UpdateFeatures: the level of ``transaction.version``, which ApiVersions reports to clients."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.broker.storage._database import DATABASE_NAME
from trionet.protocol import error_codes
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

FEATURE = "transaction.version"
UPGRADE, DOWNGRADE, UNSAFE = 1, 2, 3


async def levels(client: Client, version: int = 4) -> tuple[int, list[int]]:
    """The epoch of the features, and the finalized level unless it is 0."""
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response: Any = await client.call(request, version)
    return response.finalized_features_epoch, [
        each.max_version_level for each in response.finalized_features
    ]


async def update(
    client: Client, *updates: FeatureUpdateKey, version: int = 2, validate_only: bool = False
) -> tuple[str, str | None]:
    request = UpdateFeaturesRequest(feature_updates=list(updates), validate_only=validate_only)
    response: Any = await client.call(request, version)
    expected = [each.feature for each in updates] if version < 2 and not response.error_code else []
    assert expected == [each.feature for each in response.results]
    return error_codes.name_of(response.error_code), response.error_message


def to(level: int, kind: int = UPGRADE, feature: str = FEATURE) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)


async def test_the_level_is_2_at_first(client: Client) -> None:
    assert (0, [2]) == await levels(client)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_downgrade_and_an_upgrade_are_reported_at_once(
    broker: Broker, client: Client, version: int
) -> None:
    async with connect(broker.bootstrap_servers) as other:
        assert [(0, [2])] * 2 == [await levels(other, each) for each in (3, 4)]
        assert "NONE" == (await update(client, to(0, DOWNGRADE), version=version))[0]
        assert [(1, [])] * 2 == [await levels(other, each) for each in (3, 4)]

        assert "NONE" == (await update(client, to(1), version=version))[0]
        assert [(2, [1])] * 2 == [await levels(other, each) for each in (3, 4)]


async def test_version_0_cannot_downgrade(client: Client) -> None:
    """It has a field for that, which Kafka 4.3 ignores."""
    down = FeatureUpdateKey(feature=FEATURE, max_version_level=0, allow_downgrade=True)

    assert "INVALID_UPDATE_VERSION" == (await update(client, down, version=0))[0]
    assert "NONE" == (await update(client, to(2), version=0))[0]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (to(3), "supported levels: 0 to 2"),
        (to(-1, DOWNGRADE), "supported levels: 0 to 2"),
        (to(1), "does not allow a downgrade"),
        (to(2, 9), "unknown upgrade type 9"),
        (to(1, feature="metadata.version"), "unknown feature 'metadata.version'"),
    ],
)
async def test_a_wrong_update_is_refused(
    client: Client, key: FeatureUpdateKey, message: str
) -> None:
    code, said = await update(client, key)

    assert "INVALID_UPDATE_VERSION" == code
    assert message in (said or "")
    assert (0, [2]) == await levels(client)


async def test_a_higher_level_is_no_downgrade(client: Client) -> None:
    await update(client, to(0, UNSAFE))

    assert "INVALID_UPDATE_VERSION" == (await update(client, to(1, UNSAFE)))[0]


async def test_all_updates_are_made_or_none(client: Client) -> None:
    assert "INVALID_UPDATE_VERSION" == (await update(client, to(1, DOWNGRADE), to(1, 9)))[0]

    assert (0, [2]) == await levels(client)


async def test_a_validation_changes_nothing(client: Client) -> None:
    assert "NONE" == (await update(client, to(0, DOWNGRADE), validate_only=True))[0]

    assert (0, [2]) == await levels(client)


async def test_the_level_survives_a_restart(tmp_path: Path) -> None:
    for expected in ((0, [2]), (1, [1])):
        async with (
            open_broker(log_dir=tmp_path) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            assert expected == await levels(client)
            await update(client, to(1, DOWNGRADE))


@pytest.mark.parametrize("level", ["3", "-1", "two", ""])
async def test_a_stored_level_that_is_none_is_ignored(
    tmp_path: Path, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_broker(log_dir=tmp_path) as broker:
        await broker._cluster.features.change(1)
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection:
        query = "UPDATE property SET value = ? WHERE name = 'transaction.version'"
        connection.execute(query, (level,))
        connection.commit()

    async with open_broker(log_dir=tmp_path) as broker:
        assert 2 == broker._cluster.features.level

    assert "unreadable" in caplog.text


async def test_each_change_has_an_epoch_of_its_own(tmp_path: Path) -> None:
    """A client ignores features with an epoch that it has seen, also if two come at once."""
    async with open_broker(log_dir=tmp_path) as broker:
        features = broker._cluster.features
        seen = set()

        async def change(level: int) -> None:
            await features.change(level)
            seen.add((features.epoch, features.level))

        async with trio.open_nursery() as nursery:
            for level in (0, 1, 0, 1):
                nursery.start_soon(change, level)

        assert 4 == features.epoch
        assert 4 == len({epoch for epoch, _ in seen})
