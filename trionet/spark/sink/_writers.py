"""The writers that Spark calls for batches and streams; each row is written at least once.

Imports pyspark. The driver's part of a write is done in processes that Spark starts for it: one
plans the write, another one commits it. What only a task needs, such as the producer, pyarrow and
numpy, is imported where a task begins, which saves each of them a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ..._util._logging import get_logger
from ...errors import ConfigError
from .._options import SinkOptions
from ._messages import TaskWritten, summary
from ._schema import SinkColumnsError, check_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

logger = get_logger("trionet.spark")


def checked(options: Mapping[str, str], schema: StructType) -> SinkOptions:
    """Parse the options of a sink, and check its columns.

    Raises:
        ConfigError: an option is missing, unknown or not allowed.
        SinkColumnsError: a column is missing or has the wrong type.
    """
    parsed = SinkOptions.parse(options)
    check_columns(
        {field.name: field.dataType.simpleString() for field in schema.fields}, parsed.topic
    )
    return parsed


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame to topics.

    Args:
        options: the options from Spark.
        schema: the columns of the rows.
        overwrite: whether the save mode is ``overwrite``, which topics do not support.

    Raises:
        ConfigError: an option is missing, unknown or not allowed.
        SinkColumnsError: a column is missing or has the wrong type, or ``overwrite`` is set.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise SinkColumnsError(
                "save mode overwrite not allowed for trionet: topics cannot be overwritten; use"
                ' mode("append"), or INSERT INTO'
            )
        self._options = checked(options, schema)
        if self._options.is_exactly_once:
            raise ConfigError(
                "delivery.guarantee=exactly-once is only for writeStream: a batch, also one in"
                " foreachBatch, has no id by which a driver that starts anew could know what was"
                " committed; remove the option, and a batch is written at least once"
            )

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        """Write the rows of one task; called on an executor."""
        from ._task import write_task

        return write_task(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the records written; called on the driver when all tasks have succeeded."""
        logger.info("%s", summary(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the records already written, which remain; called on the driver when a task fails."""
        logger.warning("aborted; %s by other tasks remain in the topics", summary(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream to topics; it appends in every output mode.

    Args:
        options: the options from Spark.
        schema: the columns of the rows.

    Raises:
        ConfigError, SinkColumnsError: see :class:`BatchWriter`.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = checked(options, schema)

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        """Write the rows of one task; called on an executor."""
        from ._task import write_task

        return write_task(self._options, iterator)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Log the records written; called on the driver when all tasks have succeeded."""
        logger.info("batch %d: %s", batchId, summary(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Log the records already written, which remain; called on the driver when a task fails."""
        logger.warning(
            "batch %d aborted; %s by other tasks remain in the topics, and will be written again",
            batchId,
            summary(messages),
        )
