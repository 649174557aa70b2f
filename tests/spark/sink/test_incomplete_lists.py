"""A driver whose list of transactions is incomplete: a coordinator moves while it is listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest

import trionet
from spark.sink.micro_batches import Query
from trionet.client.admin._transactions import TransactionCalls, TransactionListing
from trionet.errors import TrionetError
from trionet.spark._loop_host import host
from trionet.spark.sink._messages import TaskPrepared
from trionet.spark.sink._micro_batch import (
    Coordinators,
    MicroBatch,
    TransactionLostError,
    leased_coordinators,
)

#: How long a marker that stays pending is waited for.
PATIENCE_MS = "1500"


class IncompleteLists(TransactionCalls):
    """Lists that leave some transactional ids out."""

    hidden: frozenset[str] = frozenset()

    async def list(self, **filters: Any) -> dict[str, TransactionListing]:
        found = await super().list(**filters)
        return {id: each for id, each in found.items() if id not in self.hidden}


@pytest.fixture
def query() -> Iterator[Query]:
    settings = {"delivery_timeout_ms": PATIENCE_MS, "request_timeout_ms": "1000", "linger_ms": "0"}
    with trionet.testing.broker(topics={"q": 2}) as broker:
        yield Query(broker.bootstrap_servers, "q", **settings)
        host().close()


def ids(tasks: Sequence[TaskPrepared]) -> frozenset[str]:
    return frozenset(each.transaction.transactional_id for each in tasks if each.transaction)


def commit(query: Query, tasks: Sequence[TaskPrepared], hidden: frozenset[str]) -> None:
    """Commit micro-batch 1 with lists that leave ids out."""

    async def run() -> None:
        async with leased_coordinators(query.options) as shared:
            lists = IncompleteLists(shared.calls)
            lists.hidden = hidden
            await _micro_batch(query, attrs.evolve(shared, transactions=lists), tasks).commit()

    host().call(run)


def _micro_batch(
    query: Query, coordinators: Coordinators, tasks: Sequence[TaskPrepared]
) -> MicroBatch:
    return MicroBatch(coordinators, query.options.transactional_id_prefix, 1, tasks)


def half_committed(query: Query) -> list[TaskPrepared]:
    """Tasks with their markers, of a driver that has died with its commits on their way."""
    tasks = query.tasks(1, attempt=1)

    async def mark() -> None:
        async with leased_coordinators(query.options) as coordinators:
            await _micro_batch(query, coordinators, tasks)._mark([0, 1, 2], head_of=0)

    host().call(mark)
    return tasks


def end(query: Query, tasks: Sequence[TaskPrepared]) -> None:
    """The commits arrive."""

    async def run() -> None:
        async with leased_coordinators(query.options) as coordinators:
            transactions = [each.transaction for each in tasks if each.transaction]
            ended = await coordinators.prepared.end(transactions, commit=True)
            assert not ended.errors

    host().call(run)


@pytest.mark.parametrize("is_first", [True, False], ids=["first micro-batch", "a later one"])
def test_a_pending_marker_of_a_transaction_that_is_not_listed_is_waited_for(
    query: Query, *, is_first: bool
) -> None:
    if not is_first:
        query.commit(0, query.tasks(0))
    before = half_committed(query)

    with pytest.raises(TrionetError, match="UNSTABLE_OFFSET_COMMIT"):
        commit(query, query.tasks(1), hidden=ids(before))
    end(query, before)
    query.commit(1, query.tasks(1))  # Spark starts the query again

    committed = query.committed()
    assert len(set(committed)) == len(committed)
    assert 6 == len([each for each in committed if each.startswith("1-")])


def test_a_list_without_the_transactions_of_the_micro_batch_is_not_trusted(query: Query) -> None:
    """Nor one that the client may not have in full; nothing is committed."""
    tasks = query.tasks(1)

    with pytest.raises(TransactionLostError, match="the client may describe"):
        commit(query, tasks, hidden=ids(tasks[:1]))

    assert [] == query.committed()
