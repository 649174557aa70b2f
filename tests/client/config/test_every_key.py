"""No key that is accepted as applied is read by nobody: another value gives other settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from trionet.client.admin._calls import admin_settings
from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from trionet.client.consumer._config import consumer_settings
from trionet.client.producer._settings import producer_settings
from trionet.protocol._config_types import BOOLEAN, LIST, Row

Read = Callable[[Mapping[str, object] | None, Mapping[str, object]], object]

CLIENTS: tuple[tuple[ClientKeys, Read], ...] = (
    (PRODUCER_KEYS, producer_settings),
    (CONSUMER_KEYS, consumer_settings),
    (ADMIN_KEYS, admin_settings),
)

_PASSWORD = {"sasl.mechanism": "PLAIN", "sasl.username": "ali", "sasl.password": "sesame"}
_SASL: dict[str, object] = {"security.protocol": "SASL_PLAINTEXT", **_PASSWORD}
_TOKENS: dict[str, object] = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://tokens.example/",
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": "sesame",
}
_JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'
)


def beside(key: str) -> dict[str, object]:
    """What a key needs beside it to count."""
    if key.startswith("compression.") and key.endswith(".level"):
        return {"compression.type": key.split(".")[1]}
    if key == "sasl.jaas.config":
        return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    if key.startswith("ssl."):
        return {"security.protocol": "SSL"}
    if key in OF_GROUPS:
        return {"group.id": "g"}
    if key.startswith(("sasl.oauthbearer.", "sasl.login.")) and ".refresh." not in key:
        return _TOKENS
    return _SASL if key.startswith("sasl.") else {}


OF_GROUPS = {
    "auto.commit.interval.ms",
    "enable.auto.commit",
    "exclude.internal.topics",
    "group.instance.id",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
}
ANOTHER: dict[str, object] = {
    "acks": "0",
    "auto.offset.reset": "by_duration:PT1H",
    "delivery.timeout.ms": 300_000,
    "sasl.jaas.config": _JAAS,
    "sasl.login.connect.timeout.ms": 7,
    "sasl.login.read.timeout.ms": 7,
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.oauthbearer.token.endpoint.url": "https://elsewhere.example/",
    "partition.assignment.strategy": ["sticky"],
    "security.protocol": "SSL",
    "max.in.flight.requests.per.connection": 3,
}
#: Keys with one value.
WITHOUT_CHOICE = {"client.dns.lookup"}

CASES = [
    pytest.param(read, row, id=f"{keys.client}-{row[0]}")
    for keys, read in CLIENTS
    for row in keys.applied.values()
    if row[0] not in WITHOUT_CHOICE
]


def another(row: Row) -> object:
    """A value that is allowed, and not the default."""
    key, kind, default, rule = row
    if key in ANOTHER:
        return ANOTHER[key]
    if kind == BOOLEAN:
        return not default
    if isinstance(rule, tuple):
        return next(each for each in rule if each != default)
    if isinstance(default, float):
        return default + 0.1
    if isinstance(default, int):
        return default + 1 if rule is None or default + 1 in rule else default - 1
    return ["a", "b"] if kind == LIST else "text"


def without(key: str) -> dict[str, object]:
    """The same without this key."""
    needed = beside(key)
    if key == "sasl.jaas.config":
        return {**needed, "sasl.username": "ali", "sasl.password": "sesame"}
    return needed


@pytest.mark.parametrize(("read", "row"), CASES)
def test_another_value_of_a_key_gives_other_settings(read: Read, row: Row, tmp_path: Path) -> None:
    key = row[0]
    file = tmp_path / "key.pem"
    file.write_text("a key")
    value = str(file) if key.endswith(".location") else another(row)

    changed = read({**beside(key), key: value}, {})

    assert read(without(key), {}) == read(without(key), {})
    assert read(without(key), {}) != changed
