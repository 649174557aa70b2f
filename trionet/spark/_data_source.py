"""``TrionetDataSource``: what Spark calls for ``format("trionet")``.

Spark imports this, by way of ``pyspark_trionet``, in a process of every session that uses any
source written in Python. So what reads and writes is imported when it is asked for.
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
from pyspark.sql.types import StructType

from ..errors import ConfigError, TrionetError

if TYPE_CHECKING:
    from .options._options import SourceOptions


class TrionetDataSource(DataSource):
    """Topics as tables and streams, with the options and columns of Spark's Kafka connector.

    ``spark.dataSource.register(TrionetDataSource)`` makes ``format("trionet")`` known to a session;
    where trionet is installed on the driver and the executors, Spark finds it without that.

    Args:
        options: as Spark hands them over.
    """

    @classmethod
    def name(cls) -> str:
        """What stands in ``format``."""
        return "trionet"

    def schema(self) -> StructType:
        """The columns; asked for at each ``load()``, where the options are checked.

        Raises:
            ConfigError: no query, of whichever kind, can have these options.
        """
        from ._row_type import row_type

        return row_type(include_headers=self._source_options_of_any_kind().include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads a batch.

        Raises:
            ConfigError: an option is not allowed, or the user has given columns.
        """
        from .source._batch_reader import BatchReader

        options = self._source_options(is_stream=False)
        _refuse_columns_of_users(schema, options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """What reads a stream.

        Raises:
            ConfigError: an option is not allowed, or the user has given columns.
        """
        from .source._stream_reader import StreamReader

        options = self._source_options(is_stream=True)
        _refuse_columns_of_users(schema, options)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What writes a batch.

        Raises:
            ConfigError, SinkColumnsError: as :func:`._writers.batch_writer`.
        """
        from .sink._writers import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 -- output mode complete: a topic only grows
    ) -> DataSourceStreamArrowWriter:
        """What writes a stream.

        Raises:
            ConfigError, SinkColumnsError: as :func:`._writers.stream_writer`.
        """
        from .sink._writers import stream_writer

        return stream_writer(self.options, schema)

    def _source_options(self, *, is_stream: bool, quietly: bool = False) -> SourceOptions:
        from .options._options import SourceOptions

        return SourceOptions.parse(self.options, is_stream=is_stream, quietly=quietly)

    def _source_options_of_any_kind(self) -> SourceOptions:
        """A ``load()`` does not tell whether it is of a batch or of a stream."""
        try:
            return self._source_options(is_stream=False, quietly=True)
        except TrionetError as of_batch:
            try:
                return self._source_options(is_stream=True, quietly=True)
            except TrionetError:
                raise of_batch from None


def _refuse_columns_of_users(schema: StructType, options: SourceOptions) -> None:
    from ._row_type import row_type

    if schema != row_type(include_headers=options.include_headers):
        raise ConfigError(
            "a source of topics has columns of its own; leave out schema(...), and turn key and"
            " value into what they are with from_json, from_avro or cast"
        )
