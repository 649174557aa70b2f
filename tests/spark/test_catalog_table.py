"""Options of tables of Spark's catalog travel with their columns; without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

pytest.importorskip("pyspark", reason="PySpark cannot be imported: pip install 'trionet[spark]'")

from pyspark.sql.types import StringType, StructField, StructType

from trionet.errors import ConfigError
from trionet.spark import TrionetDataSource
from trionet.spark._catalog_table import without_options
from trionet.spark._client_options import warn_once
from trionet.spark._data_source import row_type
from trionet.spark.source._readers import BatchReader, StreamReader

READ = {"kafka.bootstrap.servers": "host:9092", "subscribe": "t"}
WRITTEN = {"kafka.bootstrap.servers": "host:9092", "topic": "t"}


@pytest.fixture(autouse=True)
def warn_again() -> None:
    """What another test has been warned of is told again."""
    warn_once.cache_clear()


def stored(options: Mapping[str, str]) -> StructType:
    """The columns of a table, as the catalog keeps them."""
    as_created = {f"option.{name}": text for name, text in options.items()} | dict(options)
    schema = TrionetDataSource({**as_created, "owner": "me"}).schema()
    return StructType.fromJson(schema.jsonValue())


def test_a_table_is_read_with_its_options() -> None:
    schema = stored({**READ, "startingOffsets": "earliest", "includeHeaders": "true"})

    assert row_type(include_headers=True).names == schema.names
    reader = TrionetDataSource({}).reader(schema)
    assert isinstance(reader, BatchReader)
    assert reader._options.include_headers
    assert isinstance(TrionetDataSource({}).streamReader(schema), StreamReader)


def test_an_option_of_a_query_precedes_that_of_its_table() -> None:
    of_query = {"minPartitions": "4", "STARTINGOFFSETS": '{"t":{"0":5}}'}
    reader = TrionetDataSource(of_query).reader(stored({**READ, "startingOffsets": "earliest"}))
    expected = TrionetDataSource({**READ, **of_query}).reader(row_type(include_headers=False))

    assert isinstance(reader, BatchReader)
    assert isinstance(expected, BatchReader)
    assert expected._options == pickle.loads(pickle.dumps(reader))._options


def test_a_table_that_is_written_to_takes_text_and_bytes() -> None:
    """Spark casts both to strings, but no text to bytes; see the tests of tables in Spark."""
    assert row_type(include_headers=False, is_written=True) == without_options(stored(WRITTEN))
    assert {"key": "string", "value": "string", "topic": "string"} == {
        each.name: each.dataType.simpleString() for each in stored(WRITTEN).fields[:3]
    }
    assert row_type(include_headers=False) == without_options(stored(READ))


def test_rows_are_inserted_with_the_options_of_a_table() -> None:
    """Where Spark fills a column that was not named, it may leave out the metadata."""
    columns = [each for each in stored(WRITTEN).fields if each.name in {"key", "value"}]
    filled = StructField("topic", StringType())

    writer = TrionetDataSource({}).writer(StructType([*columns, filled]), overwrite=False)

    assert "host:9092" in repr(vars(writer))
    assert "topic='t'" in repr(vars(writer))


def test_rows_of_a_table_are_not_written_to_where_they_come_from() -> None:
    """Spark leaves them their table's metadata: INSERT INTO b SELECT * FROM a."""
    with pytest.raises(ConfigError, match=r"from a table that is read.*name the columns"):
        TrionetDataSource({}).writer(stored(READ), overwrite=False)
    with pytest.raises(ConfigError, match=r"from a table that is read.*name the columns"):
        TrionetDataSource({"includeHeaders": "true"}).writer(stored(READ), overwrite=False)


@pytest.mark.parametrize("options", [{"topic": "u"}, {"TOPIC": "u", "kafka.acks": "1"}])
@pytest.mark.parametrize("table", [READ, WRITTEN])
def test_servers_that_were_forgotten_are_not_those_of_a_table(
    options: dict[str, str], table: dict[str, str]
) -> None:
    columns = stored(table)

    with pytest.raises(ConfigError, match=r"bootstrap\.servers' must be specified for a sink"):
        TrionetDataSource(options).writer(columns, overwrite=False)
    with pytest.raises(ConfigError, match=r"bootstrap\.servers' must be specified for a sink"):
        TrionetDataSource(options).streamWriter(columns, overwrite=False)


@pytest.mark.parametrize("table", [READ, WRITTEN])
def test_a_stream_is_not_written_to_where_its_columns_come_from(table: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers' must be specified for a sink"):
        TrionetDataSource({}).streamWriter(stored(table), overwrite=False)


def test_columns_that_come_from_a_table_do_not_say_where_they_go() -> None:
    """A complete set of options counts alone."""
    elsewhere = {"kafka.bootstrap.servers": "elsewhere:9092", "topic": "u"}

    for table in (READ, WRITTEN):
        writer = TrionetDataSource(elsewhere).writer(stored(table), overwrite=False)

        assert "elsewhere:9092" in repr(vars(writer))
        assert "host:9092" not in repr(vars(writer)).replace("elsewhere:9092", "")


def test_a_table_that_is_written_to_is_not_read() -> None:
    with pytest.raises(ConfigError, match="one of these options must be specified"):
        TrionetDataSource({}).reader(stored(WRITTEN))


@pytest.mark.parametrize("subscription", ["subscribe", "subscribePattern", "assign"])
def test_a_table_is_not_both_read_and_written_to(subscription: str) -> None:
    with pytest.raises(ConfigError, match=rf"topic, {subscription}: a table is either read or"):
        stored({**WRITTEN, subscription: "t"})


@pytest.mark.parametrize(
    ("table", "ignored"),
    [
        (READ, {"kafka.basic.auth.user.info": "secret", "schemaRegistry.password": "secret"}),
        (READ, {"kafka.acks": "1", "delivery.guarantee": "at-least-once"}),
        (WRITTEN, {"kafka.basic.auth.user.info": "secret", "schemaRegistry.password": "secret"}),
        (WRITTEN, {"kafka.group.id": "g", "startingOffsets": "earliest"}),
    ],
)
def test_an_option_without_effect_is_a_warning_when_a_table_is_made_and_not_kept(
    table: dict[str, str], ignored: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """It may be a secret that this package does not know."""
    columns = stored({**table, **ignored})

    assert [f"option {name.lower()} is ignored by a" for name in sorted(ignored)] == sorted(
        message[: message.index(" by a") + 5] for message in caplog.messages
    )
    assert stored(table) == columns
    caplog.clear()
    warn_once.cache_clear()
    if table is READ:
        TrionetDataSource({}).reader(columns)
    else:
        TrionetDataSource({}).writer(columns, overwrite=False)
    assert [] == caplog.messages


@pytest.mark.parametrize("table", [READ, WRITTEN])
@pytest.mark.parametrize("name", ["sasl.jaas.config", "sasl.password", "ssl.key.password"])
def test_a_table_keeps_no_secrets(name: str, table: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: a table cannot keep secrets.*TEMPORARY VIEW"):
        stored({**table, f"kafka.{name}": "secret"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"option.subscribe": "t"}, "'kafka.bootstrap.servers' must be specified"),
        ({"option.kafka.bootstrap.servers": "host:9092"}, "one of these options must be specified"),
        ({"option.kafka.bootstrap.servers": "host:9092", "option.topic": ""}, "topic = ''"),
    ],
)
def test_a_mistake_is_told_when_a_table_is_created(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrionetDataSource(options).schema()


def test_a_table_with_columns_of_its_own_has_lost_its_options() -> None:
    columns = StructType([StructField("value", StringType())])

    with pytest.raises(ConfigError, match="create it without columns"):
        TrionetDataSource({}).reader(columns)
