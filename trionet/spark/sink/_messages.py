"""What the tasks of a sink return to the driver: Spark's commit messages. Imports pyspark.

The driver unpickles them in processes that Spark starts for each write and each micro-batch. So
that these start quickly, nothing is imported here that only a task needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from ...client._prepared_transaction import PreparedTransaction
from ...client._topic_partition import TopicPartition
from ...errors import TrionetError
from ._digest import RowDigest


@attrs.frozen
class Span:
    """The records written to one partition, possibly interleaved with other producers' records.

    Attributes:
        first: the lowest offset; -1 with ``acks=0``, which returns no offsets.
        last: the highest offset.
        count: the number of records.
    """

    first: int
    last: int
    count: int

    def __str__(self) -> str:
        where = "" if self.first < 0 else f" at offsets {self.first} to {self.last}"
        return f"{self.count}{where}"

    def merge(self, other: Span) -> Span:
        """Return the union of two spans."""
        firsts = [each.first for each in (self, other) if each.first >= 0]
        return Span(min(firsts, default=-1), max(self.last, other.last), self.count + other.count)


Written = dict[TopicPartition, Span]


@attrs.frozen
class TaskWritten(WriterCommitMessage):
    """The commit message that a task returns to the driver.

    Attributes:
        written: the records written to each partition.
    """

    written: Written


def summary(messages: Sequence[WriterCommitMessage | None]) -> str:
    """Return how many records the tasks of a batch have written, and where, for the log."""
    total: Written = {}
    for message in messages:
        if isinstance(message, TaskWritten):
            for partition, span in message.written.items():
                add_span(total, partition, span)
    count = sum(span.count for span in total.values())
    where = ", ".join(f"{each}: {total[each]}" for each in sorted(total))
    return f"{count} records written" + (f" ({where})" if where else "")


def add_span(written: Written, partition: TopicPartition, span: Span) -> None:
    """Add a span to those of its partition."""
    before = written.get(partition)
    written[partition] = span if before is None else before.merge(span)


#: Spark's names of the local properties with the id of the query, which its checkpoint keeps
#: (StreamExecution.QUERY_ID_KEY), and of the micro-batch (MicroBatchExecution.BATCH_ID_KEY).
QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"


def is_after_first_micro_batch() -> bool:
    """Return whether this process runs a task of a stream that has written a micro-batch before."""
    context = TaskContext.get()
    return context is not None and context.getLocalProperty(BATCH_ID) not in {None, "", "0"}


@attrs.frozen
class TaskId:
    """What distinguishes an attempt of a task from all others of its query.

    Attributes:
        query_id: the id of the query.
        batch_id: the id of the micro-batch.
        partition_id: the number of the task in its micro-batch.
        attempt: the number of the attempt.
    """

    query_id: str
    batch_id: int
    partition_id: int
    attempt: int

    @classmethod
    def current(cls) -> TaskId:
        """Return the id of the task that runs in this process.

        Raises:
            TrionetError: Spark has not passed on the id of the query, or of the micro-batch.
        """
        context = TaskContext.get()
        if context is None:
            raise TrionetError("there is no Spark task in this process")
        query_id, batch_id = _property(context, QUERY_ID), _property(context, BATCH_ID)
        return cls(query_id, int(batch_id), context.partitionId(), context.attemptNumber())

    def transactional_id(self, prefix: str) -> str:
        """Return the transactional id of the attempt.

        It returns in every other micro-batch, since coordinators keep each id for a week. It does
        not in the next one, in which attempts of this one may still be running that Spark has not
        chosen: their first row must not fence those that it is going to choose.
        """
        which = f"{self.partition_id}-{self.batch_id % 2}-{self.attempt}"
        return query_prefix(prefix, self.query_id) + which


def _property(context: TaskContext, name: str) -> str:
    value: str | None = context.getLocalProperty(name)
    if not value:
        raise TrionetError(
            f"Spark has not passed the local property {name} to a task, without which its rows"
            " cannot be written exactly once; set delivery.guarantee=at-least-once"
        )
    return value


def query_prefix(prefix: str, query_id: str) -> str:
    """Return the part that all transactional ids of a query, and no others, begin with."""
    return f"{prefix}-{query_id}-"


@attrs.frozen
class TaskPrepared(TaskWritten):
    """The commit message of a task whose rows the driver is to commit.

    Attributes:
        written: the records written to each partition.
        task: the id of the attempt.
        digest: the rows.
        transaction: the transaction; None if there were no rows.
    """

    task: TaskId
    digest: RowDigest
    transaction: PreparedTransaction | None
