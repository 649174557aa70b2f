"""The writers that Spark calls, for batches and streams. Imports pyspark.

At least once: a task that fails is run again, and a micro-batch, too; what they had written stays.
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

from ..offsets._errors import SinkColumnsError
from ..options._options import SinkOptions
from ._columns import Batch, check_columns
from ._task import SinkTask, Written

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

logger = logging.getLogger("trionet.spark")


@attrs.frozen
class TaskWritten(WriterCommitMessage):
    """What one task has written, for the driver.

    Attributes:
        written: by partition.
    """

    written: Written


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceArrowWriter:
    """What writes a DataFrame.

    Args:
        options: as Spark hands them over.
        schema: of the rows.
        overwrite: whether the topic was to be emptied before.

    Raises:
        ConfigError: an option is missing, unknown or not allowed.
        SinkColumnsError: a column is missing or of another type than it has to be; or
            ``overwrite``.
    """
    if overwrite:
        raise SinkColumnsError(
            "save mode overwrite not allowed for trionet: topics cannot be overwritten; allowed:"
            ' mode("append")'
        )
    return BatchWriter(_checked(options, schema))


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    """What writes the micro-batches of a stream; in every output mode it appends.

    Args:
        options: as of :func:`batch_writer`.
        schema: as there.

    Raises:
        ConfigError, SinkColumnsError: as there.
    """
    return StreamWriter(_checked(options, schema))


def _checked(options: Mapping[str, str], schema: StructType) -> SinkOptions:
    made = SinkOptions.parse(options)
    check_columns(
        {field.name: field.dataType.simpleString() for field in schema.fields}, made.topic
    )
    return made


def write_task(options: SinkOptions, batches: Iterator[Batch]) -> TaskWritten:
    """Write the rows of one task, and wait until all are written.

    Args:
        options: of the sink.
        batches: the rows; without any, nothing is connected to.

    Raises:
        TrionetError: a row cannot be written, or was not, or nobody knows; says which. Others may
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
    """See :func:`batch_writer`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Batch]) -> TaskWritten:
        """In a worker: the rows of one task."""
        return write_task(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """In the driver's process: all tasks are done; there is nothing left to do."""
        logger.info("%s", _summary(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """In the driver's process: a task has failed; what others have written stays."""
        logger.warning("aborted; %s by other tasks, which stays", _summary(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """See :func:`stream_writer`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Batch]) -> TaskWritten:
        """In a worker: the rows of one task."""
        return write_task(self._options, iterator)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """In the driver's process: all tasks are done; there is nothing left to do."""
        logger.info("batch %d: %s", batchId, _summary(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """In the driver's process: a task has failed; what others have written stays."""
        logger.warning(
            "batch %d was aborted; %s by other tasks, which stays and is written again",
            batchId,
            _summary(messages),
        )


def _summary(messages: Sequence[WriterCommitMessage | None]) -> str:
    total: Written = {}
    for message in messages:
        if isinstance(message, TaskWritten):
            for partition, span in message.written.items():
                before = total.get(partition)
                total[partition] = span if before is None else before.together(span)
    count = sum(span.count for span in total.values())
    where = ", ".join(f"{each}: {total[each]}" for each in sorted(total))
    return f"{count} records written" + (f" ({where})" if where else "")
