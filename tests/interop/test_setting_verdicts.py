"""Our broker accepts and refuses settings at run time as Apache Kafka does.

Kafka's verdicts are in ``setting_verdicts.json``; ``test_kafka_setting_verdicts.py`` says whether
they are still so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.brokers import broker_and_client
from support.client import connect
from support.config_calls import BROKER, settings_of
from support.setting_verdicts import ask, recorded, set_all, values
from trionet import open_broker

#: Java reads them as numbers. Every comparison with NaN is false, so that no rule excludes it; and
#: no one spells a setting as a hexadecimal fraction.
NO_NUMBERS = ("NaN", "0x1p0")
#: Kafka accepts 0 while it lacks the listener, and does not start any more once it has it.
LISTENER_TO_COME = "listener.name.other.max.connections"


async def test_settings_are_accepted_and_refused_as_by_kafka() -> None:
    async with open_broker({"node.id": 1}) as broker:
        found = await ask(broker.bootstrap_servers)

    expected = recorded()
    for key, verdict in expected["spelling"].items():
        if key.endswith(NO_NUMBERS) and verdict == "0":
            assert found["spelling"].pop(key) in ("40", "42")
    for scope in ("one broker", "all brokers"):
        assert "0 0 42 42 42 42" == expected[scope].pop(LISTENER_TO_COME)
        assert "42 0 42 42 42 42" == found[scope].pop(LISTENER_TO_COME)
    for scope, verdicts in expected.items():
        different = {
            key: (verdict, found[scope][key])
            for key, verdict in verdicts.items()
            if key in found[scope] and found[scope][key] != verdict
        }
        assert {} == different, scope
    assert {*expected} == {*found}
    assert {*expected["one broker"]} == {*found["one broker"]}


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize("number", range(len(values(0))))
async def test_whatever_is_accepted_lets_the_broker_start_again_and_clients_in(
    tmp_path: Path, number: int, name: str
) -> None:
    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        accepted = await set_all(client, name, number)

    async with (
        open_broker(log_dir=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        assert {*accepted} <= {*(await settings_of(client, BROKER, name))}
