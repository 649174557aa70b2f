"""Options of tables of Spark's catalog, kept in the metadata of columns. Imports pyspark.

``CREATE TABLE ... USING trionet OPTIONS (...)`` passes the options to ``DataSource.schema()``, and
stores the schema that it returns. Queries of the table are given this schema, but not the options:
Spark's ``PythonDataSourceV2.getTable`` drops them (4.2 and 4.3). The schema therefore carries them,
in the metadata of its columns. To be removed when Spark passes the options of a table.

A writer is given the columns of a query, not those of the table. ``INSERT INTO`` gives them the
metadata of the table's columns (``TableOutputResolver``), but not where they have the same names
and types anyway (``V2WriteCommand.outputResolved``): after ``INSERT INTO b SELECT * FROM a`` they
still have those of ``a``, and a stream's always have. So that no row goes to the topic of another
table, a table is either read or written to: what a query can read has no options of a sink.

Column metadata goes where the columns go, into Parquet files for example. Passwords must not, so a
table with one is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from ..errors import ConfigError
from ._client_options import BOOTSTRAP_SERVERS, secrets_of

_METADATA: Final = "trionet.options"
_SERVERS: Final = f"kafka.{BOOTSTRAP_SERVERS}"


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a table with its options in their metadata.

    Args:
        schema: the columns.
        options: the options of the table that have an effect; see :func:`.table_options`.

    Raises:
        ConfigError: the options contain a password or a private key.
    """
    if found := secrets_of(options):
        raise ConfigError(
            f"{', '.join(found)}: a table cannot keep secrets, since everyone who reads it, and"
            " every file that it is written to, gets its options with its columns; use CREATE"
            " TEMPORARY VIEW with the same options instead"
        )
    metadata = {_METADATA: json.dumps(options)}
    return StructType(
        [StructField(each.name, each.dataType, each.nullable, metadata) for each in schema.fields]
    )


def without_options(schema: StructType) -> StructType:
    """Return the columns without any metadata."""
    return StructType(
        [StructField(each.name, each.dataType, each.nullable) for each in schema.fields]
    )


def options_of_source(options: Mapping[str, str], schema: StructType) -> Mapping[str, str]:
    """Return the options of a query, completed by those of the table that it reads.

    Args:
        options: the options from Spark. If they name the servers, they are complete.
        schema: the columns from Spark.

    Raises:
        ConfigError: there are no options at all.
    """
    if any(name.lower() == _SERVERS for name in options):
        return options
    return _merged(_table_of(schema), options)


def options_of_sink(options: Mapping[str, str], schema: StructType) -> Mapping[str, str]:
    """Return the options of a batch query, or those of the table that it writes to.

    Args:
        options: the options from Spark. If they say where rows go, or have settings of the client,
            they are complete.
        schema: the columns from Spark.

    Raises:
        ConfigError: there are no options at all, or the columns are those of a table that is read.
    """
    if any(name.lower() == "topic" or name.lower().startswith("kafka.") for name in options):
        return options
    table = _table_of(schema)
    if table is not None and "topic" not in table:
        raise ConfigError(
            "the columns come from a table that is read, and Spark does not say which one they are"
            " inserted into; name the columns, as in INSERT INTO name (key, value) SELECT key,"
            ' value FROM ..., or write with format("trionet") and all options of a sink'
        )
    return _merged(table, options)


def _table_of(schema: StructType) -> dict[str, str] | None:
    """Return the options in the columns' metadata; None if the columns are of no single table."""
    texts = {text for each in schema.fields if (text := (each.metadata or {}).get(_METADATA))}
    return json.loads(texts.pop()) if len(texts) == 1 else None


def _merged(table: Mapping[str, str] | None, options: Mapping[str, str]) -> Mapping[str, str]:
    if table is None and not options:
        raise ConfigError(
            "Spark has passed no options. If this is a table of its catalog, create it without"
            " columns, CREATE TABLE name USING trionet OPTIONS (...): they are fixed, and the"
            " options are kept with them"
        )
    return {**(table or {}), **{name.lower(): value for name, value in options.items()}}
