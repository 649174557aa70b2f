"""The columns of the source as Spark types, the same as the connector's."""

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
    """Return the columns, all nullable.

    Args:
        include_headers: whether to add the column ``headers``.
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
