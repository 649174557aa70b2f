"""The writer that Spark calls with ``delivery.guarantee=exactly-once``. Imports pyspark.

(KIP-939 has the names: a task *prepares* its transaction, and the driver *completes* it.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ..._util._logging import get_logger
from ...errors import TrionetError
from ._messages import TaskId, TaskPrepared, summary
from ._writers import checked

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

logger = get_logger("trionet.spark")


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream to topics, each row exactly once.

    Args:
        options: the options from Spark.
        schema: the columns of the rows.

    Raises:
        ConfigError, SinkColumnsError: see :class:`.BatchWriter`.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = checked(options, schema)

    def write(self, iterator: Iterator[Any]) -> TaskPrepared:
        """Write the rows of one task, without committing them; called on an executor."""
        from ._transactional import write_transaction

        return write_transaction(self._options, TaskId.current(), iterator)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Commit the rows of all tasks; called on the driver when all have succeeded.

        Raises:
            ReplayError, TransactionLostError: see :meth:`.MicroBatch.commit`.
            TrionetError: a task has no commit message; or see there.
        """
        prepared = _prepared(messages)
        # Spark runs at least one task for a micro-batch, also for one without rows (SPARK-23271).
        if not prepared or len(prepared) != len(messages):
            missing = len(messages) - len(prepared)
            raise TrionetError(
                f"of micro-batch {batchId}, {missing} of {len(messages)} tasks have no commit"
                " message, so that it is not known what was written; nothing was committed. Start"
                " the query again, which writes the micro-batch again"
            )
        from .._loop_host import host
        from ._micro_batch import commit_micro_batch

        host().call(commit_micro_batch, self._options, batchId, prepared)
        logger.info("batch %d: %s", batchId, summary(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Abort what was not committed; called on the driver when a task or the commit fails."""
        if prepared := _prepared(messages):
            from .._loop_host import host
            from ._micro_batch import abort_micro_batch

            host().call(abort_micro_batch, self._options, batchId, prepared)
        logger.warning("batch %d aborted; it is written again when the query is restarted", batchId)


def _prepared(messages: Sequence[WriterCommitMessage | None]) -> list[TaskPrepared]:
    return [each for each in messages if isinstance(each, TaskPrepared)]
