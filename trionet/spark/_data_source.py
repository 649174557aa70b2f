"""``TrionetDataSource``, the data source and sink of ``format("trionet")``.

Spark imports this module, through ``pyspark_trionet``, in a process of every session that uses any
Python data source. The readers and writers are therefore imported only when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceWriter,
)
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

from ..errors import ConfigError, TrionetError

if TYPE_CHECKING:
    from ._options import SourceOptions


class TrionetDataSource(DataSource):
    """A data source for topics, with the options and columns of Spark's Kafka connector.

    ``spark.dataSource.register(TrionetDataSource)`` registers ``format("trionet")`` in a session;
    if trionet is installed on the driver and the executors, Spark finds it without registration.

    Args:
        options: the options from Spark.
    """

    @classmethod
    def name(cls) -> str:
        """Return the data source's name for ``format``."""
        return "trionet"

    def schema(self) -> StructType:
        """Check the options, and return the columns. Spark calls this on each ``load()``.

        Raises:
            ConfigError: the options are valid neither for a batch nor for a stream.
        """
        return row_type(include_headers=self._source_options_of_any_kind().include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for a batch query.

        Raises:
            ConfigError: an option is not allowed, or the user has set a schema.
        """
        from .source._readers import BatchReader

        options = self._source_options(is_stream=False)
        _check_no_user_schema(schema, options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader for a streaming query.

        Raises:
            ConfigError: an option is not allowed, or the user has set a schema.
        """
        from .source._readers import StreamReader

        options = self._source_options(is_stream=True)
        _check_no_user_schema(schema, options)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer for a batch query.

        Raises:
            ConfigError, SinkColumnsError: see :class:`._writers.BatchWriter`.
        """
        from .sink._writers import BatchWriter

        return BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 -- for output mode complete: topics are append-only
    ) -> DataSourceStreamArrowWriter:
        """Return the writer for a streaming query.

        Raises:
            ConfigError, SinkColumnsError: see :class:`._writers.StreamWriter`.
        """
        from .sink._writers import StreamWriter

        return StreamWriter(self.options, schema)

    def _source_options(self, *, is_stream: bool, quietly: bool = False) -> SourceOptions:
        from ._options import SourceOptions

        return SourceOptions.parse(self.options, is_stream=is_stream, quietly=quietly)

    def _source_options_of_any_kind(self) -> SourceOptions:
        """Parse the options for either kind of query: Spark does not say which kind it is."""
        try:
            return self._source_options(is_stream=False, quietly=True)
        except TrionetError as of_batch:
            try:
                return self._source_options(is_stream=True, quietly=True)
            except TrionetError:
                raise of_batch from None


def _check_no_user_schema(schema: StructType, options: SourceOptions) -> None:
    if schema != row_type(include_headers=options.include_headers):
        raise ConfigError(
            "the columns of this source are fixed; remove schema(...), and convert key and"
            " value with from_json, from_avro or cast"
        )


def row_type(*, include_headers: bool) -> StructType:
    """Return the columns of the source, all nullable.

    Args:
        include_headers: whether to add the ``headers`` column.
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
