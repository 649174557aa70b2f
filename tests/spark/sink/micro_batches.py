"""Runs of a query that writes exactly once, without Spark: tasks and drivers, and how they die."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, cast

import pyarrow as pa
import trio

from spark.reading import table
from support.eventually import eventually
from trionet.client.admin._calls import Calls
from trionet.client.network._kafka_client import KafkaClient
from trionet.protocol.messages.end_txn import EndTxnRequest
from trionet.spark._loop_host import host
from trionet.spark._options import SinkOptions
from trionet.spark.sink import _micro_batch
from trionet.spark.sink._columns import Batch
from trionet.spark.sink._messages import TaskId, TaskPrepared
from trionet.spark.sink._micro_batch import (
    MicroBatch,
    coordinators_of,
    leased_coordinators,
)
from trionet.spark.sink._transactional import write_transaction

#: Surrounds a request of a driver.
Turn = Callable[[object], AbstractAsyncContextManager[None]]


class DriverDiedError(Exception):
    """A driver has died in a test."""


def texts(values: Sequence[str]) -> Batch:
    return pa.record_batch({"value": pa.array(values, pa.string())})


def rows(batch_id: int, task: int, count: int = 2) -> list[str]:
    """The rows that a query has in a task."""
    return [f"{batch_id}-{task}-{number}" for number in range(count)]


class Query:
    """A query, which may be run several times, even at the same time.

    Args:
        servers: the cluster.
        topic: where it writes to; also its id.
        client: more settings of the client, with underscores for dots.
    """

    def __init__(self, servers: str, topic: str, **client: str) -> None:
        self.topic = topic
        self.servers = servers
        self.options = SinkOptions.parse(
            {
                "kafka.bootstrap.servers": servers,
                "topic": topic,
                "delivery.guarantee": "exactly-once",
                **{f"kafka.{key.replace('_', '.')}": text for key, text in client.items()},
            }
        )

    def task(
        self, number: int, values: Sequence[str], *, batch_id: int = 0, attempt: int = 0
    ) -> TaskPrepared:
        """Run an attempt of a task."""
        id = TaskId(self.topic, batch_id, number, attempt)
        return write_transaction(self.options, id, iter([texts(values)]))

    def tasks(self, batch_id: int, *, attempt: int = 0, count: int = 3) -> list[TaskPrepared]:
        """Run all tasks of a micro-batch."""
        return [
            self.task(number, rows(batch_id, number), batch_id=batch_id, attempt=attempt)
            for number in range(count)
        ]

    def commit(self, batch_id: int, tasks: Sequence[TaskPrepared]) -> None:
        """Commit a micro-batch as the driver does."""
        host().call(_micro_batch.commit_micro_batch, self.options, batch_id, tasks)

    def abort(self, batch_id: int, tasks: Sequence[TaskPrepared]) -> None:
        """Abort a micro-batch as the driver does."""
        host().call(_micro_batch.abort_micro_batch, self.options, batch_id, tasks)

    async def commit_by_turns(
        self, batch_id: int, tasks: Sequence[TaskPrepared], turn: Turn
    ) -> None:
        """Commit a micro-batch with a driver that sends each request in its turn."""
        async with leased_coordinators(self.options) as shared:
            inner = shared.calls
            client = cast(KafkaClient, _TurnTaking(inner.client, turn))
            calls = Calls(client, inner._settings, inner._rng)
            prefix = self.options.transactional_id_prefix
            await MicroBatch(coordinators_of(calls), prefix, batch_id, tasks).commit()

    def commit_until(self, batch_id: int, tasks: Sequence[TaskPrepared], requests: int) -> bool:
        """Commit a micro-batch with a driver that dies before another request than so many.

        Returns whether it has lived long enough to end.
        """
        left = requests
        alone = trio.Lock()  # so that all of them have their response

        @asynccontextmanager
        async def turn(_: object) -> AsyncIterator[None]:
            nonlocal left
            async with alone:
                left -= 1
                if left == -1:
                    raise DriverDiedError
                if left < -1:
                    await trio.sleep_forever()
                yield

        try:
            host().call(self.commit_by_turns, batch_id, tasks, turn)
        except DriverDiedError:
            return False
        return True

    def commit_only(
        self, batch_id: int, tasks: Sequence[TaskPrepared], numbers: Collection[int]
    ) -> None:
        """Commit a micro-batch with a driver that dies when it has committed these tasks of it.

        The first is one of them, unless it is committed already.
        """
        ids = {each.task.partition_id: _id(each) for each in tasks}
        left = {ids[number] for number in numbers}

        @asynccontextmanager
        async def turn(request: object) -> AsyncIterator[None]:
            if not isinstance(request, EndTxnRequest) or not request.committed:
                yield
                return
            if request.transactional_id not in left:
                await trio.sleep_forever()
            yield
            left.remove(request.transactional_id)
            if not left:
                raise DriverDiedError

        try:
            host().call(self.commit_by_turns, batch_id, tasks, turn)
        except DriverDiedError:
            pass
        assert {*numbers} == {*self.ended(tasks)}

    def fence(self, task: TaskPrepared) -> None:
        """Abort the transaction of a task, as a newer producer of its id does."""
        host().call(self._fence, _id(task))

    async def _fence(self, id: str) -> None:
        async with leased_coordinators(self.options) as coordinators:
            (await coordinators.transactions.fence_producers([id])).checked()

    def ended(self, tasks: Sequence[TaskPrepared]) -> list[int]:
        """The tasks whose transactions are committed, unless their ids are used again; sorted."""
        host().call(self._settle)
        committed = host().call(self._listed, "CompleteCommit")
        return sorted(each.task.partition_id for each in tasks if _id(each) in committed)

    def committed(self) -> list[str]:
        """What ``read_committed`` shows, once no transaction is being ended; sorted."""
        host().call(self._settle)
        return sorted(table(self.servers, subscribe=self.topic, **COMMITTED))

    def written(self) -> list[str]:
        """What ``read_uncommitted`` shows, sorted."""
        return sorted(table(self.servers, subscribe=self.topic))

    def open(self) -> list[str]:
        """The transactional ids with open transactions, once none is being ended; sorted."""
        host().call(self._settle)
        return host().call(self._listed, "Ongoing")

    async def _settle(self) -> None:
        async with leased_coordinators(self.options) as coordinators:
            states = ("PrepareCommit", "PrepareAbort")

            async def ending() -> object:
                return await coordinators.transactions.list(states=states)

            await eventually(ending, lambda found: not found)

    async def _listed(self, state: str) -> list[str]:
        async with leased_coordinators(self.options) as coordinators:
            return sorted(await coordinators.transactions.list(states=[state]))


COMMITTED: Final = {"kafka_isolation_level": "read_committed"}


def _id(task: TaskPrepared) -> str:
    assert task.transaction is not None
    return task.transaction.transactional_id


class _TurnTaking:
    """A client that sends each request in its turn; what else it has, is the client's."""

    def __init__(self, client: Any, turn: Turn) -> None:
        self._client = client
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def request(self, node: Any, body: Any, **keywords: Any) -> Any:
        async with self._turn(body):
            return await self._client.request(node, body, **keywords)
