"""The tables of client keys: consistent in themselves, and with the real Kafka."""

from __future__ import annotations

import typing

import pytest

from support.cache import Unavailable
from support.kafka_tools import kafka_tool
from trionet.client.config import _keywords as keywords
from trionet.client.config._applied_keys import COMMON, OF_LIBRDKAFKA, OURS, PRODUCER, SECURITY
from trionet.client.config._keys import (
    ADMIN_KEYS,
    CLIENTS,
    CONSUMER_KEYS,
    PRODUCER_KEYS,
    ClientKeys,
)
from trionet.client.config._librdkafka_names import KAFKAS_NAME
from trionet.errors import ConfigError
from trionet.protocol._config_types import Row, parse_value, value_text

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
