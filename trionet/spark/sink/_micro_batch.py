"""The driver's side of a sink that writes each row exactly once: it ends the transactions.

A micro-batch is committed in five steps, of which each makes the next one safe:

1. *List and fence.* All open transactions of the query, except those of this micro-batch, are
   aborted and their producers fenced: attempts that Spark has not chosen, leftovers of an earlier
   run, and the transactions of a driver that is thought dead. Those that are ending are waited for.
   A list without the transactions of this micro-batch is not to be trusted.
2. *Read the markers.* Whatever another driver could still commit was fenced before, and a marker
   that is pending is waited for, so that the markers show all that is or will be committed. A task
   that is committed already is aborted here if its rows are the same, and an error otherwise.
3. *Mark.* Each transaction gets its marker. One that has ended, by ``transaction.timeout.ms`` or
   because another driver has fenced it, refuses the marker; then nothing is committed.
4. *Commit the first* transaction alone. Its marker is the head: while it is older than the
   micro-batch, nothing of the micro-batch is committed.
5. *Commit the others.*

Two drivers of one query never commit the same task twice: of two that both list and fence before
they read the markers, the later one aborts the transaction of the earlier, or sees its marker.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final

import attrs
import trio

from ..._util._logging import get_logger
from ...client._prepared_transaction import PreparedTransaction
from ...client._topic_partition import TopicPartition
from ...client.admin._calls import IN_FLIGHT_MAX, AdminSettings, Calls, open_calls
from ...client.admin._configs import ConfigCalls, ConfigResource, ConfigResourceType
from ...client.admin._groups import CommittedOffset, GroupCalls
from ...client.admin._transactions import (
    PreparedTransactionCalls,
    TransactionCalls,
    TransactionListing,
    TransactionOffset,
)
from ...client.producer._settings import producer_settings
from ...errors import ApiError, TrionetError, UnsupportedVersionError
from ...protocol import error_codes
from .._client_options import BOOTSTRAP_SERVERS, config_of
from .._loop_host import host
from .._options import SinkOptions
from ._markers import Marker, check_head, check_same, parse_marker, wanted_markers
from ._messages import TaskPrepared, query_prefix

logger = get_logger("trionet.spark")

#: How long an abort may take: Spark has failed the query, and waits for it.
ABORT_SECONDS: Final = 10.0

#: How long a look at the brokers' configuration may take.
RETENTION_SECONDS: Final = 5.0

#: The state of a transaction that has not begun to end.
OPEN: Final = "Ongoing"
_ENDING: Final = ("PrepareCommit", "PrepareAbort")

# The transaction has ended, by its timeout or because another producer or driver has fenced it; or
# its coordinator does not commit it any more, and asks for its abort.
_ENDED: Final = frozenset(
    {
        error_codes.INVALID_PRODUCER_EPOCH,
        error_codes.INVALID_PRODUCER_ID_MAPPING,
        error_codes.INVALID_TXN_STATE,
        error_codes.PRODUCER_FENCED,
        error_codes.TRANSACTION_ABORTABLE,
        error_codes.UNKNOWN_PRODUCER_ID,
    }
)

# Of group coordinators, whose default is a week.
_RETENTION: Final = "offsets.retention.minutes"
_RETENTION_MINUTES_MIN: Final = 24 * 60


class TransactionLostError(TrionetError):
    """Raised when a transaction of a micro-batch has ended before the driver could commit it.

    Spark replays the micro-batch when the query is started again.
    """


@attrs.frozen
class Coordinators:
    """The calls that a driver needs.

    Attributes:
        transactions: lists and fences transactions.
        prepared: ends them.
        groups: reads the markers.
        calls: sends them all.
    """

    transactions: TransactionCalls
    prepared: PreparedTransactionCalls
    groups: GroupCalls
    calls: Calls


class MicroBatch:
    """The transactions of one micro-batch. Its methods run in the loop.

    Args:
        coordinators: the calls.
        prefix: the first part of transactional ids and groups.
        batch_id: the id of the micro-batch.
        tasks: the messages of its tasks, at least one.
    """

    def __init__(
        self,
        coordinators: Coordinators,
        prefix: str,
        batch_id: int,
        tasks: Sequence[TaskPrepared],
    ) -> None:
        self._transactions = coordinators.transactions
        self._prepared = coordinators.prepared
        self._groups = coordinators.groups
        self._batch_id = batch_id
        self._prefix = query_prefix(prefix, tasks[0].task.query_id)
        with_rows = {each.task.partition_id: each for each in tasks if each.transaction}
        self._tasks = dict(sorted(with_rows.items()))
        self._markers = wanted_markers(
            batch_id, {number: each.digest for number, each in self._tasks.items()}
        )

    async def commit(self) -> None:
        """Commit all transactions that are not committed yet.

        Raises:
            ReplayError: this micro-batch was committed with other rows, or a later one was.
            TransactionLostError: a transaction has ended in the meantime.
            TrionetError: the coordinators could not be reached, or reject a request.
        """
        # A coordinator may move while it is listed.
        missing = await self._fence_others() and await self._fence_others()
        head = await self._head()
        done: Collection[int] = ()
        if check_head(self._batch_id, self._markers, head):
            done = await self._committed(head)
            await self._abort(done)
        if missing.difference(done):
            raise self._lost()
        left = [number for number in self._tasks if number not in done]
        if not left:
            await trio.lowlevel.checkpoint()
            return
        await self._mark(left, head_of=None if done else left[0])
        if not done:
            await self._end(left[:1])
            del left[0]
        await self._end(left)

    async def abort(self) -> None:
        """Abort all open transactions of the query."""
        await self._fence(await self._listed())

    # Steps.

    async def _fence_others(self) -> frozenset[int]:
        """Fence what is open besides this micro-batch, and wait for what is ending.

        Returns:
            The tasks whose transactions are not open.
        """
        listed = await self._listed()
        kept: set[str] = set()
        missing: set[int] = set()
        for number, task in self._tasks.items():
            transaction = _transaction(task)
            found = listed.get(transaction.transactional_id)
            if found is None or (found.state, found.producer_id) != (
                OPEN,
                transaction.producer_id,
            ):
                missing.add(number)
            else:
                kept.add(transaction.transactional_id)
        others = sorted(listed.keys() - kept)
        if others:
            logger.info(
                "micro-batch %d: ending open transactions of other attempts and runs: %s",
                self._batch_id,
                ", ".join(others),
            )
        await self._fence(others)
        return frozenset(missing)

    async def _listed(self) -> dict[str, TransactionListing]:
        """Return the transactions of the query that are open or ending."""
        states = (OPEN, *_ENDING)
        try:
            listed = await self._transactions.list(
                states=states, pattern=f"{re.escape(self._prefix)}.*"
            )
        except UnsupportedVersionError:  # before KIP-1152
            listed = await self._transactions.list(states=states)
        return {id: each for id, each in listed.items() if id.startswith(self._prefix)}

    async def _fence(self, ids: Iterable[str]) -> None:
        # The request waits until the last transaction of an id has ended.
        (await self._transactions.fence_producers(ids)).checked()

    async def _head(self) -> Marker | None:
        group = self._head_group
        return (await self._read({group: min(self._tasks, default=-1)}))[group]

    async def _committed(self, head: Marker | None) -> set[int]:
        """Return the tasks that are committed, with the rows that they have now."""
        assert head is not None
        # Also of those that have no rows now: theirs may have moved to another task.
        groups = {self._group(each): each for each in range(head.last + 1)}
        found = await self._read(groups)
        done = {head.partition_id}
        for group, marker in found.items():
            if marker is not None and marker.batch_id == self._batch_id:
                check_same(self._markers.get(groups[group]), marker)
                done.add(groups[group])
        return done

    async def _read(self, groups: Mapping[str, int]) -> dict[str, Marker | None]:
        """Return the newest marker of each group; None for a group without one.

        A marker that is pending is waited for: it is in a transaction that is ending, since those
        of this micro-batch get theirs later.

        Args:
            groups: for each group, the task whose transaction would commit its marker.
        """
        # Asked for all partitions, a coordinator looks for pending offsets only where there is a
        # committed one. So the partition with the marker is asked for by name, too.
        named = {
            group: [self._place(number)]
            for group, number in groups.items()
            if number in self._tasks
        }
        read = partial(self._groups.list_offsets, require_stable=True)
        committed: dict[str, list[CommittedOffset]] = {group: [] for group in groups}
        for asked in (named, dict.fromkeys(groups)):
            for group, offsets in (await read(asked)).checked().items():
                committed[group] += filter(None, offsets.checked().values())
        found: dict[str, Marker | None] = dict.fromkeys(groups)
        for group, each in committed.items():
            if each:
                newest = max(each, key=lambda offset: offset.offset)
                found[group] = parse_marker(group, newest.offset, newest.metadata)
        return found

    def _place(self, number: int) -> TopicPartition:
        """Return the partition for which a task commits its marker; a committed offset needs one.

        It is the same in a replay, whichever partitions of the topic its rows go to.
        """
        return TopicPartition(min(self._tasks[number].written).topic, 0)

    async def _mark(self, numbers: Collection[int], *, head_of: int | None) -> None:
        """Let each transaction commit its marker.

        Raises:
            TransactionLostError: a transaction has ended.
            TrionetError: a marker was rejected, or a coordinator could not be reached.
        """
        offsets = {
            self._head_group if number == head_of else self._group(number): TransactionOffset(
                _transaction(self._tasks[number]),
                self._place(number),
                CommittedOffset(self._batch_id, self._markers[number].metadata()),
            )
            for number in numbers
        }
        errors = (await self._prepared.add_offsets(offsets)).errors
        for error in errors.values():
            raise self._lost(error) if _is_ended(error) else error

    async def _end(self, numbers: Collection[int]) -> None:
        """Commit transactions.

        Raises:
            TransactionLostError: a transaction has ended without being committed.
            TrionetError: it is not known whether a transaction was committed.
        """
        transactions = {_transaction(self._tasks[each]): each for each in numbers}
        errors = (await self._prepared.end(transactions, commit=True)).errors
        for error in errors.values():
            if _must_be_aborted(error):  # it is open, with a marker that is pending as long
                raise self._lost(error)
            if not _is_ended(error):
                raise error
        if errors:
            await self._check_committed({transactions[key]: error for key, error in errors.items()})

    async def _check_committed(self, errors: Mapping[int, TrionetError]) -> None:
        """Check by their markers whether transactions that have ended were committed."""
        groups = {self._group(each): each for each in errors} | {self._head_group: min(self._tasks)}
        found = (await self._read(groups)).values()
        for number, error in errors.items():
            if self._markers[number] not in found:
                raise self._lost(error)

    async def _abort(self, numbers: Collection[int]) -> None:
        """Abort the transactions of tasks that are committed already."""
        transactions = [_transaction(self._tasks[each]) for each in numbers]
        logger.info(
            "micro-batch %d: %d of %d tasks are committed already",
            self._batch_id,
            len(transactions),
            len(self._tasks),
        )
        for error in (await self._prepared.end(transactions, commit=False)).errors.values():
            if not _is_ended(error):
                raise error

    def _lost(self, cause: TrionetError | None = None) -> TransactionLostError:
        found = cause or "it is not in the list of open transactions that the client may describe"
        error = TransactionLostError(
            f"micro-batch {self._batch_id} is not committed: a transaction of it has ended, because"
            " it was open for longer than kafka.transaction.timeout.ms, because another attempt of"
            " its task began later, or because another driver runs this query; or a broker asks for"
            f" its abort ({found}); Spark writes the micro-batch again when the query is started"
            " again"
        )
        error.__cause__ = cause
        return error

    # Groups.

    @property
    def _head_group(self) -> str:
        return self._prefix.removesuffix("-")

    def _group(self, number: int) -> str:
        return f"{self._prefix}{number}"


def _transaction(task: TaskPrepared) -> PreparedTransaction:
    assert task.transaction is not None
    return task.transaction


def _must_be_aborted(error: TrionetError) -> bool:
    """Return whether a broker asks for the abort of a transaction (KIP-890)."""
    return isinstance(error, ApiError) and error.error_code == error_codes.TRANSACTION_ABORTABLE


def _is_ended(error: TrionetError) -> bool:
    return isinstance(error, ApiError) and error.error_code in _ENDED


def leased_coordinators(options: SinkOptions) -> AbstractAsyncContextManager[Coordinators]:
    """Lease the driver's client, in the trio loop; see :meth:`.LoopHost.lease`."""
    key = "coordinators", frozenset(options.client.items())
    return host().lease(key, partial(open_coordinators, options.client))


@asynccontextmanager
async def open_coordinators(client: Mapping[str, str]) -> AsyncIterator[Coordinators]:
    """Open the driver's client for the duration of a block.

    Args:
        client: producer settings, including ``bootstrap.servers``.

    Cancellation: all connections are closed at once.
    """
    settings = producer_settings(config_of(client), {})
    requests = attrs.evolve(settings.client.requests, in_flight_max=IN_FLIGHT_MAX)
    of_admin = AdminSettings(
        client=attrs.evolve(settings.client, requests=requests),
        api_timeout_seconds=settings.delivery_timeout_seconds,
        retry=settings.retry,
    )
    async with open_calls(client[BOOTSTRAP_SERVERS], of_admin) as calls:
        yield coordinators_of(calls)


def coordinators_of(calls: Calls) -> Coordinators:
    """Return a driver's calls, which ``calls`` sends."""
    return Coordinators(
        TransactionCalls(calls), PreparedTransactionCalls(calls), GroupCalls(calls), calls
    )


async def commit_micro_batch(
    options: SinkOptions, batch_id: int, tasks: Sequence[TaskPrepared]
) -> None:
    """Commit the transactions of a micro-batch; see :meth:`MicroBatch.commit`.

    Args:
        options: the options of the sink.
        batch_id: the id of the micro-batch.
        tasks: the messages of its tasks.
    """
    async with leased_coordinators(options) as coordinators:
        prefix = options.transactional_id_prefix
        await MicroBatch(coordinators, prefix, batch_id, tasks).commit()
        if (servers := options.client[BOOTSTRAP_SERVERS]) not in _of_known_retention:
            _of_known_retention.add(servers)
            with trio.move_on_after(RETENTION_SECONDS):  # Spark waits for the commit
                await log_retention(coordinators.calls)


#: The clusters whose retention this process has logged.
_of_known_retention: Final[set[str]] = set()


async def log_retention(calls: Calls) -> None:
    """Log for how long a query may be stopped: markers that have expired say nothing of a replay.

    This needs the right to describe the cluster's configuration. Without it, only that is logged.
    """
    await trio.lowlevel.checkpoint()
    try:
        broker = ConfigResource(ConfigResourceType.BROKER, str((await calls.nodes.any()).id))
        described = (await ConfigCalls(calls).describe([broker], keys=[_RETENTION])).checked()
        minutes = int(described[broker][_RETENTION].value or "")
    except (TrionetError, KeyError, ValueError) as error:
        logger.info(
            "%s could not be read (%s): within this time after it was stopped, a query must be"
            " started again for exactly-once",
            _RETENTION,
            error,
        )
        return
    level = logging.INFO if minutes >= _RETENTION_MINUTES_MIN else logging.WARNING
    logger.log(
        level,
        "the brokers keep the markers of a query for %g hours (%s = %d): if it is stopped for"
        " longer in the middle of a commit, rows of that micro-batch may be written twice",
        minutes / 60,
        _RETENTION,
        minutes,
    )


async def abort_micro_batch(
    options: SinkOptions, batch_id: int, tasks: Sequence[TaskPrepared]
) -> None:
    """Abort what is open of a query, for at most :data:`ABORT_SECONDS`; only logs errors."""
    prefix = options.transactional_id_prefix
    with trio.move_on_after(ABORT_SECONDS):
        await trio.lowlevel.checkpoint()
        try:
            async with leased_coordinators(options) as coordinators:
                await MicroBatch(coordinators, prefix, batch_id, tasks).abort()
                return
        except TrionetError as error:
            logger.warning("micro-batch %d: its transactions were not aborted: %s", batch_id, error)
            return
    logger.warning(
        "micro-batch %d: its transactions were not aborted within %g s; coordinators do it after"
        " kafka.transaction.timeout.ms",
        batch_id,
        ABORT_SECONDS,
    )
