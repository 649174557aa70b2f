"""The tables of client keys: consistent in themselves, and with the real Kafka.

No key that is accepted as applied is read by nobody: another value gives other settings.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from support.cache import Unavailable
from support.kafka_tools import kafka_tool
from trionet.client.admin._calls import admin_settings
from trionet.client.config import _keywords as keywords
from trionet.client.config._keys import (
    ADMIN_KEYS,
    CLIENTS,
    COMMON,
    CONSUMER_KEYS,
    KAFKAS_NAME,
    OF_LIBRDKAFKA,
    OURS,
    PRODUCER,
    PRODUCER_KEYS,
    SECURITY,
    ClientKeys,
)
from trionet.client.consumer._settings import consumer_settings
from trionet.client.producer._settings import producer_settings
from trionet.errors import ConfigError
from trionet.protocol._config_types import BOOLEAN, LIST, Row, parse_value, value_text

KINDS = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
ROWS = {row[0]: row for keys in CLIENTS for row in keys.applied.values()}

# Kafka makes names up, and has assignors by their Java classes.
DEFAULTS_OF_OURS = {
    "client.id",
    "partition.assignment.strategy",
}

LIST_KEYS = """
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

public class ListClientKeys {
    public static void main(String[] arguments) {
        list("producer", ProducerConfig.configDef());
        list("consumer", ConsumerConfig.configDef());
        list("admin client", AdminClientConfig.configDef());
    }

    static void list(String of, ConfigDef definition) {
        for (var key : definition.configKeys().values()) {
            var value = key.hasDefault() && key.defaultValue != null
                ? "=" + ConfigDef.convertToString(key.defaultValue, key.type) : "";
            System.out.println(of + " " + key.name + " " + key.type + " " + value);
        }
    }
}
"""


@pytest.mark.parametrize("table", [COMMON, OURS, SECURITY, OF_LIBRDKAFKA, PRODUCER])
def test_a_table_is_in_alphabetical_order(table: tuple[Row, ...]) -> None:
    names = [row[0] for row in table]

    assert sorted(names) == names


@pytest.mark.parametrize("keys", CLIENTS, ids=lambda keys: keys.client)
def test_a_key_is_applied_or_without_meaning_or_refused(keys: ClientKeys) -> None:
    assert not keys.applied.keys() & keys.without_effect.keys()
    assert not keys.applied.keys() & keys.unsupported.keys()
    assert not keys.without_effect.keys() & keys.unsupported.keys()


@pytest.mark.parametrize("row", [*ROWS.values()], ids=lambda row: row[0])
def test_a_default_is_allowed_by_its_own_rule_and_reads_back_from_its_text(row: Row) -> None:
    name, kind, default, rule = row
    if name == "sasl.mechanism":  # Kafka's default, GSSAPI, has to be replaced
        return

    assert default == parse_value(name, kind, rule, default)
    assert default == parse_value(name, kind, rule, value_text(default))


@pytest.mark.parametrize("keys", CLIENTS, ids=lambda keys: keys.client)
def test_a_key_of_librdkafka_that_is_named_in_errors_is_no_key_of_ours(keys: ClientKeys) -> None:
    for name in KAFKAS_NAME:
        assert not keys.has(name)


@pytest.mark.parametrize(
    ("keys", "typed"),
    [
        (PRODUCER_KEYS, keywords.ProducerKeywords),
        (CONSUMER_KEYS, keywords.ConsumerKeywords),
        (ADMIN_KEYS, keywords.AdminKeywords),
    ],
    ids=lambda each: each.client if isinstance(each, ClientKeys) else "",
)
def test_what_is_applied_can_be_given_as_keyword(keys: ClientKeys, typed: type) -> None:
    expected = {key.replace(".", "_") for key in keys.applied}

    assert expected == typing.get_type_hints(typed).keys()


@pytest.mark.parametrize("keys", CLIENTS, ids=lambda keys: keys.client)
def test_the_type_of_a_keyword_takes_the_default_and_all_that_the_rule_allows(
    keys: ClientKeys,
) -> None:
    typed = {
        "producer": keywords.ProducerKeywords,
        "consumer": keywords.ConsumerKeywords,
        "admin client": keywords.AdminKeywords,
    }[keys.client]
    hints = typing.get_type_hints(typed)
    for key, kind, default, rule in keys.applied.values():
        literals = _literals(hints.get(key.replace(".", "_")))
        if not literals:
            continue
        choices = {value_text(parse_value(key, kind, rule, str(each))) for each in literals}

        assert isinstance(rule, tuple)
        assert choices == set(rule)
        assert default in choices or key == "sasl.mechanism"


def _literals(hint: object) -> tuple[object, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("linger.mss", "linger.mss: unknown key; the closest match is linger.ms"),
        ("linger_mss", "linger.mss: unknown key; the closest match is linger.ms"),
        ("quality", "quality: unknown key"),
        ("topic", "topic: unknown key; a topic is the first argument of send()"),
        (
            "queue.buffering.max.ms",
            "queue.buffering.max.ms is librdkafka's name; use Kafka's: linger.ms",
        ),
        ("group.id", "group.id is a setting of consumers, not of producers; leave it out"),
        (
            "default.api.timeout.ms",
            (
                "default.api.timeout.ms is a setting of consumers and admin clients, not of"
                " producers;"
                " leave it out"
            ),
        ),
    ],
)
def test_an_unknown_key_is_an_error_that_says_what_comes_nearest(name: str, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        PRODUCER_KEYS.row(name)

    assert error == str(raised.value)


@pytest.mark.interop
@pytest.mark.slow
def test_keys_types_and_defaults_are_those_of_the_real_kafka(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    program = tmp_path_factory.mktemp("keys") / "ListClientKeys.java"
    program.write_text(LIST_KEYS)
    try:
        listed = kafka_tool(str(program)).decode().splitlines()
    except Unavailable as reason:
        pytest.skip(str(reason))

    ours = [
        f"{keys.client} {name} {KINDS[kind - 1]} {'' if text is None else '=' + text}"
        for keys in CLIENTS
        for name, kind, default, _ in (
            *keys.applied.values(),
            *keys.without_effect.values(),
            *(each.row for each in keys.unsupported.values()),
        )
        if not name.startswith(("receive.message.max", "bootstrap.servers"))
        and name != "fetch.max.decompressed.bytes"
        and name not in {row[0] for row in OF_LIBRDKAFKA}
        for text in [value_text(default)]
    ]

    def compared(lines: list[str]) -> list[str]:
        return sorted(line for line in lines if _key_of(line) not in DEFAULTS_OF_OURS)

    assert compared(ours) == compared(
        [line for line in listed if _key_of(line) != "bootstrap.servers"]
    )
    assert {_key_of(line) for line in ours} > DEFAULTS_OF_OURS


def _key_of(line: str) -> str:
    return line.removeprefix("admin ").split()[1]


Read = Callable[[Mapping[str, object] | None, Mapping[str, object]], object]

READERS: tuple[tuple[ClientKeys, Read], ...] = (
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
    for keys, read in READERS
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
