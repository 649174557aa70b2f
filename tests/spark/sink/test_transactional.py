"""What a task that writes in a transaction is called, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import trio
from pyspark import TaskContext

from spark.sink.micro_batches import Query, rows, texts
from trionet.errors import ConfigError, RecordTooLargeError, TrionetError
from trionet.spark._loop_host import host
from trionet.spark.sink import _transactional
from trionet.spark.sink._messages import BATCH_ID, QUERY_ID, TaskId
from trionet.spark.sink._transactional import TransactionalTask
from trionet.testing import broker


@pytest.fixture(scope="module")
def query() -> Iterator[Query]:
    with broker(topics={"t": 1}) as it:
        try:
            yield Query(it.bootstrap_servers, "t")
        finally:
            host().close()


def run_as(monkeypatch: pytest.MonkeyPatch, properties: Mapping[str, str]) -> None:
    """Let this process run a task with these local properties."""
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    context = TaskContext()
    context._partitionId, context._attemptNumber = 4, 2
    context._localProperties = dict(properties)


def test_spark_says_which_task_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, {QUERY_ID: "q", BATCH_ID: "13"})

    assert TaskId("q", batch_id=13, partition_id=4, attempt=2) == TaskId.current()


@pytest.mark.parametrize("missing", [QUERY_ID, BATCH_ID])
def test_without_the_ids_of_query_and_micro_batch_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    properties = {QUERY_ID: "q", BATCH_ID: "13"}
    del properties[missing]
    run_as(monkeypatch, properties)

    with pytest.raises(TrionetError, match=f"has not passed the local property {missing}"):
        TaskId.current()


def test_outside_of_a_task_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "_taskContext", None)

    with pytest.raises(TrionetError, match="no Spark task"):
        TaskId.current()


def test_an_attempt_has_its_id_again_in_every_other_micro_batch() -> None:
    """Coordinators keep each id for a week; and attempts of the last one may be running still."""
    ids = [TaskId("q", number, 4, 2).transactional_id("trionet") for number in range(4)]

    assert ["trionet-q-4-0-2", "trionet-q-4-1-2"] * 2 == ids


def test_failure_gives_the_producer_back(query: Query) -> None:
    too_long = Query(query.servers, "t", transaction_timeout_ms="900001")
    with pytest.raises(ConfigError):
        too_long.task(0, rows(0, 0))
    with pytest.raises(RecordTooLargeError):
        query.task(0, ["x" * 2_000_000])

    assert set() == _transactional._taken


def test_abort_that_is_cancelled_gives_the_producer_back(query: Query) -> None:
    """As when the process ends; nothing of the transaction is left open."""
    task = TransactionalTask(query.options, TaskId("t", 0, 0, 0))
    task.put(texts(["a"]))
    assert 1 == len(_transactional._taken)

    async def abort() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await task._abort()

    host().call(abort)
    assert set() == _transactional._taken
    assert [] == query.open()
