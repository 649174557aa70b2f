"""The writers that Spark calls for batches and streams. Imports pyspark.

Rows are written at least once: when Spark reruns a failed task or micro-batch, the records already
written remain in the topic.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ..options._options import SinkOptions
from ._columns import Batch, SinkColumnsError, check_columns
from ._task import SinkTask, Written

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

logger = logging.getLogger("trionet.spark")


@attrs.frozen
class TaskWritten(WriterCommitMessage):
    """The commit message that a task returns to the driver.

    Attributes:
        written: the records written to each partition.
    """

    written: Written


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceArrowWriter:
    """Create the writer for a DataFrame.

    Args:
        options: the options from Spark.
        schema: the columns of the rows.
        overwrite: whether the save mode is ``overwrite``, which topics do not support.

    Raises:
        ConfigError: an option is missing, unknown or not allowed.
        SinkColumnsError: a column is missing or has the wrong type, or ``overwrite`` is set.
    """
    if overwrite:
        raise SinkColumnsError(
            "save mode overwrite not allowed for trionet: topics cannot be overwritten; use"
            ' mode("append")'
        )
    return BatchWriter(_checked(options, schema))


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    """Create the writer for a stream; it appends in every output mode.

    Args:
        options: the options from Spark.
        schema: the columns of the rows.

    Raises:
        ConfigError, SinkColumnsError: see :func:`batch_writer`.
    """
    return StreamWriter(_checked(options, schema))


def _checked(options: Mapping[str, str], schema: StructType) -> SinkOptions:
    parsed = SinkOptions.parse(options)
    check_columns(
        {field.name: field.dataType.simpleString() for field in schema.fields}, parsed.topic
    )
    return parsed


def write_task(options: SinkOptions, batches: Iterator[Batch]) -> TaskWritten:
    """Write the rows of one task and wait until all are acknowledged.

    Args:
        options: the options of the sink.
        batches: the rows; if there are none, no connection is opened.

    Raises:
        TrionetError: a row is invalid, or its write failed or was not acknowledged. Other rows may
            have been written.
    """
    task = SinkTask(options)
    try:
        for batch in batches:
            if batch.num_rows:
                task.put(batch)
        return TaskWritten(task.end())
    except BaseException:
        task.abort()
        raise


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame to topics; see :func:`batch_writer`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Batch]) -> TaskWritten:
        """Write the rows of one task; called on an executor."""
        return write_task(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the records written; called on the driver when all tasks have succeeded."""
        logger.info("%s", _summary(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the records already written, which remain; called on the driver when a task fails."""
        logger.warning("aborted; %s by other tasks remain in the topics", _summary(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream to topics; see :func:`stream_writer`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Batch]) -> TaskWritten:
        """Write the rows of one task; called on an executor."""
        return write_task(self._options, iterator)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Log the records written; called on the driver when all tasks have succeeded."""
        logger.info("batch %d: %s", batchId, _summary(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Log the records already written, which remain; called on the driver when a task fails."""
        logger.warning(
            "batch %d aborted; %s by other tasks remain in the topics, and will be written again",
            batchId,
            _summary(messages),
        )


def _summary(messages: Sequence[WriterCommitMessage | None]) -> str:
    total: Written = {}
    for message in messages:
        if isinstance(message, TaskWritten):
            for partition, span in message.written.items():
                before = total.get(partition)
                total[partition] = span if before is None else before.merge(span)
    count = sum(span.count for span in total.values())
    where = ", ".join(f"{each}: {total[each]}" for each in sorted(total))
    return f"{count} records written" + (f" ({where})" if where else "")
