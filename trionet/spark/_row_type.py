"""The columns of a source, as Spark's own types: those of the connector."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)


def row_type(*, include_headers: bool) -> StructType:
    """The columns, all of which may be null.

    Args:
        include_headers: whether the column of headers is among them.
    """
    columns: list[tuple[str, DataType]] = [
        ("key", BinaryType()),
        ("value", BinaryType()),
        ("topic", StringType()),
        ("partition", IntegerType()),
        ("offset", LongType()),
        ("timestamp", TimestampType()),
        ("timestampType", IntegerType()),
    ]
    if include_headers:
        header = _struct([("key", StringType()), ("value", BinaryType())])
        columns.append(("headers", ArrayType(header)))
    return _struct(columns)


def _struct(columns: list[tuple[str, DataType]]) -> StructType:
    return StructType([StructField(name, kind, nullable=True) for name, kind in columns])
