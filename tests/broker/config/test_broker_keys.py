"""The tables of broker keys: consistent in themselves, and with the real Kafka."""

from __future__ import annotations

import typing
from os import PathLike
from pathlib import Path

import attrs
import pytest

import trionet
from support.cache import Unavailable
from support.kafka_tools import kafka_tool
from trionet.broker.config._broker_config import BROKER_KEYS
from trionet.broker.config._broker_keys import (
    APPLIED,
    DYNAMIC_ONLY,
    INTERNAL,
    NO_EFFECT,
    NO_OP_VALUES,
    NOT_APPLIED,
    TRIONET_KEYS,
)
from trionet.broker.config._dynamic_config import DYNAMIC, PER_BROKER
from trionet.broker.config._dynamic_config_store import EFFECTIVE_WITH_SEVERAL
from trionet.broker.config._topic_keys import TOPIC_KEYS
from trionet.broker.log.segments._log_config import LogConfig
from trionet.broker.run._broker_keywords import BrokerKeywords, Names
from trionet.protocol._config_types import Password, Row, parse_value, value_text

KEYWORD_TYPES: dict[str, tuple[object, ...]] = {
    "BOOLEAN": (bool,),
    "STRING": (str, str | PathLike[str]),
    "INT": (int,),
    "LONG": (int,),
    "DOUBLE": (float,),
    "LIST": (Names, Names | PathLike[str]),
    "CLASS": (str,),
    "PASSWORD": (str | Password,),
}
KINDS = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")

# Where a broker of ours needs no setting and Kafka does, or would listen on every address, or let
# strangers hold much memory, or let the first member of a group wait for others.
DEFAULTS_OF_OURS = {
    "broker.id",
    "controller.listener.names",
    "group.initial.rebalance.delay.ms",
    "listeners",
    "node.id",
    "process.roles",
    "sasl.server.max.receive.size",
}

# Keys of classes that Kafka brings along, and which its own definition does not list.
KEYS_OF_PLUGINS = {
    "allow.everyone.if.no.acl.found",
    "metrics.jmx.exclude",
    "metrics.jmx.include",
    "super.users",
}

LIST_KEYS = """
import org.apache.kafka.common.config.ConfigDef;

public class ListKeys {
    public static void main(String[] arguments) throws Exception {
        var topics = Class.forName("org.apache.kafka.storage.internals.log.LogConfig")
            .getMethod("configDefCopy");
        list("broker", (ConfigDef) Class.forName("kafka.server.KafkaConfig")
            .getMethod("configDef").invoke(null));
        list("topic", (ConfigDef) topics.invoke(null));
        var modes = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig")
            .getMethod("dynamicConfigUpdateModes");
        for (var each : ((java.util.Map<?, ?>) modes.invoke(null)).entrySet())
            System.out.println("dynamic " + each.getKey() + " " + each.getValue());
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


@pytest.mark.parametrize(
    "table", [APPLIED, TRIONET_KEYS, NO_EFFECT, DYNAMIC_ONLY, NOT_APPLIED, INTERNAL]
)
def test_a_table_is_in_alphabetical_order(table: tuple[Row, ...]) -> None:
    names = [row[0] for row in table]

    assert sorted(names) == names


def test_a_key_is_in_one_table_only() -> None:
    rows = [*APPLIED, *TRIONET_KEYS, *NO_EFFECT, *DYNAMIC_ONLY, *NOT_APPLIED, *INTERNAL]

    assert len(rows) == len(BROKER_KEYS)


@pytest.mark.parametrize("row", [*BROKER_KEYS.values()], ids=lambda row: row[0])
def test_a_default_is_allowed_by_its_own_rule_and_reads_back_from_its_text(row: Row) -> None:
    name, kind, default, rule = row

    assert default == parse_value(name, kind, rule, default)
    assert default == parse_value(name, kind, rule, value_text(default))


def test_topic_keys_are_in_order_and_have_the_defaults_of_the_broker_keys() -> None:
    assert sorted(TOPIC_KEYS) == list(TOPIC_KEYS)
    for row in TOPIC_KEYS.values():
        assert row.default == parse_value(row.name, row.kind, row.rule, row.default)
        for key, _ in row.synonyms:
            assert key in BROKER_KEYS


def _sources() -> str:
    """The package's code, without the modules that know every key, and without who is a client."""
    package = Path(trionet.__file__).parent
    tables = ("_broker_keys", "_topic_keys", "_dynamic_config.py", "_describe.py")
    return "\n".join(
        path.read_text("utf-8")
        for path in package.rglob("*.py")
        if not path.name.startswith(tables)
        and path.relative_to(package).parts[0] not in ("cli", "client", "dashboard", "spark")
    )


def _keys_of_the_log() -> set[str]:
    """The broker keys that a log is told by their topic keys."""
    told = {field.name.replace("_", ".") for field in attrs.fields(LogConfig)}
    return {key for name in told & TOPIC_KEYS.keys() for key, _ in TOPIC_KEYS[name].synonyms}


def test_a_key_is_in_the_table_of_applied_ones_if_and_only_if_something_reads_it() -> None:
    sources, of_the_log = _sources(), _keys_of_the_log()
    read = {key for key in BROKER_KEYS if f'"{key}"' in sources} | of_the_log
    applied = {row[0] for row in (*APPLIED, *TRIONET_KEYS)}
    later = {row[0] for row in (*NOT_APPLIED, *INTERNAL)}

    assert applied - read == set()
    assert read & later == {"authorizer.class.name"}  # read to refuse it


def test_values_that_ask_for_nothing_are_of_keys_not_applied_and_allowed() -> None:
    later = {row[0]: row for row in NOT_APPLIED}
    for key, values in NO_OP_VALUES.items():
        name, kind, default, rule = later[key]
        for value in values:
            assert value != default
            assert value == parse_value(name, kind, rule, value)


@pytest.fixture(scope="module")
def lines_of_kafka(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the real Kafka knows of its keys, in lines."""
    program = tmp_path_factory.mktemp("keys") / "ListKeys.java"
    program.write_text(LIST_KEYS)
    try:
        return kafka_tool(str(program)).decode().splitlines()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.interop
@pytest.mark.slow
def test_keys_types_and_defaults_are_those_of_the_real_kafka(lines_of_kafka: list[str]) -> None:
    listed = sorted(line for line in lines_of_kafka if line.startswith(("broker ", "topic ")))

    ours = [
        _line("broker", name, kind, value_text(default))
        for name, kind, default, _ in BROKER_KEYS.values()
        if name
        not in KEYS_OF_PLUGINS
        | DEFAULTS_OF_OURS
        | {row[0] for row in (*TRIONET_KEYS, *DYNAMIC_ONLY)}
    ]
    ours += [
        _line("topic", row.name, row.kind, value_text(row.default)) for row in TOPIC_KEYS.values()
    ]

    assert sorted(ours) == [line for line in listed if line.split()[1] not in DEFAULTS_OF_OURS]
    assert DEFAULTS_OF_OURS < {line.split()[1] for line in listed}


@pytest.mark.interop
@pytest.mark.slow
def test_what_can_be_altered_is_what_the_real_kafka_lets_alter(lines_of_kafka: list[str]) -> None:
    listed = sorted(line for line in lines_of_kafka if line.startswith("dynamic "))

    ours = [
        f"dynamic {key} {'per-broker' if key in PER_BROKER else 'cluster-wide'}" for key in DYNAMIC
    ]

    assert sorted(ours) == listed


def _line(of: str, name: str, kind: int, default: str | None) -> str:
    return f"{of} {name} {KINDS[kind - 1]} {'' if default is None else '=' + default}"


def test_the_keys_that_are_applied_are_keywords_of_open_broker() -> None:
    applied = [row[0] for row in (*APPLIED, *TRIONET_KEYS)] + list(EFFECTIVE_WITH_SEVERAL)

    assert {key.replace(".", "_") for key in applied} == typing.get_type_hints(
        BrokerKeywords
    ).keys()


@pytest.mark.parametrize("row", [*APPLIED, *TRIONET_KEYS], ids=lambda row: row[0])
def test_the_type_of_a_keyword_allows_what_the_rule_does(row: Row) -> None:
    key, kind, _, rule = row
    hint = typing.get_type_hints(BrokerKeywords)[key.replace(".", "_")]
    if typing.get_origin(hint) is typing.Literal:
        assert set(typing.get_args(hint)) == set(rule or ())
    else:
        name = KINDS[kind - 1]
        assert hint in KEYWORD_TYPES[name]
