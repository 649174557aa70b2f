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

        Spark also calls this for ``CREATE TABLE``; see :mod:`._catalog_table`.

        Raises:
            ConfigError: the options are valid neither for a batch nor for a stream; or, for a table
                with the option ``topic``, which is only written to, they are not those of a sink.
        """
        from ._client_options import OptionTexts

        texts = OptionTexts(self.options)
        if not texts.is_table:
            return row_type(include_headers=self._source_options_of_any_kind().include_headers)
        from ._catalog_table import with_options
        from ._options import table_options

        is_written = "topic" in texts
        if not is_written:
            self._source_options_of_any_kind()
        columns = row_type(
            include_headers=texts.flag("includeHeaders", False), is_written=is_written
        )
        return with_options(columns, table_options(texts))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for a batch query.

        Raises:
            ConfigError: an option is not allowed, or the user has set a schema.
        """
        from .source._readers import BatchReader

        return BatchReader(self._source_options(schema, is_stream=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader for a streaming query.

        If an option is not allowed, or the user has set a schema, the reader's methods raise the
        :class:`ConfigError`: an exception from here would be hidden by one of PySpark's own.
        """
        from .source._readers import InvalidStreamReader, StreamReader

        try:
            return StreamReader(self._source_options(schema, is_stream=True))
        except TrionetError as error:
            return InvalidStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer for a batch query.

        Raises:
            ConfigError, SinkColumnsError: see :class:`.sink._writers.BatchWriter`.
        """
        from ._catalog_table import options_of_sink
        from .sink._writers import BatchWriter

        return BatchWriter(options_of_sink(self.options, schema), schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 -- for output mode complete: topics are append-only
    ) -> DataSourceStreamArrowWriter:
        """Return the writer for a streaming query.

        Raises:
            ConfigError, SinkColumnsError: see :class:`.sink._writers.StreamWriter`.
        """
        from ._options import SinkOptions

        if SinkOptions.parse(self.options).is_exactly_once:
            from .sink._exactly_once import ExactlyOnceWriter

            return ExactlyOnceWriter(self.options, schema)
        from .sink._writers import StreamWriter

        return StreamWriter(self.options, schema)

    def _source_options(self, schema: StructType, *, is_stream: bool) -> SourceOptions:
        from ._catalog_table import options_of_source, without_options
        from ._options import SourceOptions

        options = SourceOptions.parse(options_of_source(self.options, schema), is_stream=is_stream)
        _check_no_user_schema(without_options(schema), options)
        return options

    def _source_options_of_any_kind(self) -> SourceOptions:
        """Parse the options for either kind of query: Spark does not say which kind it is."""
        from ._options import SourceOptions

        try:
            return SourceOptions.parse(self.options, is_stream=False, quietly=True)
        except TrionetError as of_batch:
            try:
                return SourceOptions.parse(self.options, is_stream=True, quietly=True)
            except TrionetError:
                raise of_batch from None


def _check_no_user_schema(schema: StructType, options: SourceOptions) -> None:
    if schema != row_type(include_headers=options.include_headers):
        raise ConfigError(
            "the columns of this source are fixed; remove schema(...), and convert key and"
            " value with from_json, from_avro or cast"
        )


def row_type(*, include_headers: bool, is_written: bool = False) -> StructType:
    """Return the columns of the source, or of a table that is written to, all nullable.

    Args:
        include_headers: whether to add the ``headers`` column.
        is_written: whether they are those of a table that is written to. Its keys and values are
            strings, to which Spark casts text and bytes in SQL, the latter as they are; it does
            not cast text to bytes.
    """
    content: DataType = StringType() if is_written else BinaryType()
    columns: list[tuple[str, DataType]] = [
        ("key", content),
        ("value", content),
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
