"""Any order of faults and cancellations: a transaction is visible as a whole, or not at all."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import NamedTuple

import attrs
import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import MockClock

import trionet
from support.scripted_coordinator import (
    ONGOING,
    CoordinatedLeaders,
    Fault,
    lose_request,
    lose_response,
    refuse,
)
from support.scripted_leaders import AT_ONCE, Answer, hang_up, refusal
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.coordinator._classic_member import GroupMetadata
from trionet.protocol import error_codes
from trionet.testing import MemoryNetwork

pytestmark = pytest.mark.slow

SETTINGS = attrs.evolve(
    AT_ONCE, transactional_id="x", max_block_seconds=3.0, delivery_timeout_seconds=35.0
)
GROUP = GroupMetadata("g", -1, "", None)
SOURCE = TopicPartition("in", 0)

CODES = (
    error_codes.CONCURRENT_TRANSACTIONS,
    error_codes.COORDINATOR_LOAD_IN_PROGRESS,
    error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.NOT_COORDINATOR,
)
FAULTS: tuple[Fault, ...] = (lose_request, lose_response, *map(refuse, CODES))
APIS = (
    "FindCoordinator",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
)
FATES = (
    "written",
    "written",
    "request lost",
    "response lost",
    "rejected for now",
    "rejected",
    "from an old epoch",
)


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Transact(NamedTuple):
    """A transaction as the user writes it.

    Attributes:
        records: how many there are, for each of two partitions.
        has_offsets: whether it sends offsets.
        raises: whether its block raises an exception.
        cancelled_at: at which await its task is cancelled; 0 for none.
        fates: of the next batches.
        faults: what becomes of the next requests, by API.
        finalized: another level of the cluster.
        is_silent: whether no request to end it arrives while its block is run.
        times_out: whether the coordinator then aborts it, if it is still open (only TV2, since TV1
            fences its producer).
    """

    records: int
    has_offsets: bool
    raises: bool
    cancelled_at: int
    fates: list[str]
    faults: dict[str, list[Fault]]
    finalized: int
    is_silent: bool
    times_out: bool


TRANSACTIONS = st.builds(
    Transact,
    records=st.integers(0, 3),
    has_offsets=st.booleans(),
    raises=st.sampled_from([False, False, False, True]),
    cancelled_at=st.one_of(st.just(0), st.integers(1, 12)),
    fates=st.lists(st.sampled_from(FATES), max_size=4),
    faults=st.dictionaries(
        st.sampled_from(APIS), st.lists(st.sampled_from(FAULTS), max_size=3), max_size=3
    ),
    finalized=st.sampled_from([0, 0, 0, 1, 2]),
    is_silent=st.sampled_from([False, False, False, True]),
    times_out=st.booleans(),
)


class CancelAt(trio.abc.Instrument):
    """Cancels a block of one task at its n-th await."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._task = trio.lowlevel.current_task()
        self.scope = trio.CancelScope()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if self._left == 0:
                self.scope.cancel()


def fate(leaders: CoordinatedLeaders, name: str) -> Answer:
    fates: dict[str, Answer] = {
        "written": leaders.write,
        "request lost": hang_up,
        "response lost": leaders.write_and(hang_up),
        "rejected for now": refusal(error_codes.NOT_ENOUGH_REPLICAS),
        "rejected": refusal(error_codes.TOPIC_AUTHORIZATION_FAILED),
        "from an old epoch": refusal(error_codes.INVALID_PRODUCER_EPOCH),
    }
    return fates[name]


class _GivenUpError(Exception):
    pass


async def transact(
    producer: trionet.Producer, number: int, plan: Transact
) -> tuple[Outcome, list[bytes]]:
    """Carry out one transaction. Returns its outcome as the user sees it, and its values."""
    values = [b"%d.%d" % (number, each) for each in range(plan.records)]
    is_complete = False
    canceller = CancelAt(plan.cancelled_at)
    trio.lowlevel.add_instrument(canceller)
    try:
        with canceller.scope:
            async with producer.transaction() as tx:
                for partition in (0, 1):
                    if values:
                        await producer.enqueue_batch("t", values, partition=partition)
                if plan.has_offsets:
                    await tx.send_offsets({SOURCE: number}, GROUP)
                if plan.raises:
                    raise _GivenUpError
                is_complete = True
            return Outcome.COMMITTED, values
    except trionet.TransactionOutcomeUnknownError:
        return Outcome.UNKNOWN, values
    except (_GivenUpError, trionet.TransactionAbortableError, trionet.CallTimedOutError):
        return Outcome.ABORTED, values
    finally:
        trio.lowlevel.remove_instrument(canceller)
    return (Outcome.UNKNOWN if is_complete else Outcome.ABORTED), values


async def play(level: int, plans: list[Transact]) -> None:
    leaders = CoordinatedLeaders(MemoryNetwork(), level, topics={"t": 2})
    outcomes: list[tuple[Outcome, list[bytes]]] = []
    is_always_v2 = level == 2 and not any(plan.finalized for plan in plans)
    async with leaders.producer(SETTINGS) as producer:
        for number, plan in enumerate(plans, 1):
            leaders.answers = [fate(leaders, each) for each in plan.fates]
            leaders.faults = {name: list(each) for name, each in plan.faults.items()}
            if plan.finalized:
                leaders.finalize(plan.finalized)
            if plan.is_silent:
                leaders.faults["EndTxn"] = [lose_request] * 1000
            outcomes.append(await transact(producer, number, plan))
            if plan.times_out and is_always_v2 and leaders.state == ONGOING:
                leaders.time_out()
        leaders.answers, leaders.faults = [], {}
        async with producer.transaction():
            await producer.send("t", b"last", partition=0)

    first, second = (leaders.committed.get(("t", each), []) for each in (0, 1))
    assert [*second, b"last"] == first
    at = 0
    for outcome, values in outcomes:
        if outcome is not Outcome.ABORTED and second[at : at + len(values)] == values:
            at += len(values)
        else:
            assert outcome is not Outcome.COMMITTED
    assert len(second) == at
    certain = [
        number
        for number, (plan, (outcome, _)) in enumerate(zip(plans, outcomes, strict=True), 1)
        if outcome is Outcome.COMMITTED and plan.has_offsets
    ]
    possible = {
        number
        for number, (plan, (outcome, _)) in enumerate(zip(plans, outcomes, strict=True), 1)
        if outcome is Outcome.UNKNOWN and plan.has_offsets and number > max(certain, default=0)
    }
    assert leaders.offsets.get(("g", SOURCE), 0) in {max(certain, default=0), *possible}


# A commit in doubt, which the coordinator then aborts.
IN_DOUBT = Transact(
    records=1,
    has_offsets=False,
    raises=False,
    cancelled_at=0,
    fates=[],
    faults={},
    finalized=0,
    is_silent=True,
    times_out=True,
)


@given(st.sampled_from([1, 2]), st.lists(TRANSACTIONS, min_size=1, max_size=4))
@example(2, [IN_DOUBT, IN_DOUBT])
def test_transactions_are_visible_as_a_whole_or_not_at_all(
    level: int, plans: list[Transact]
) -> None:
    trio.run(partial(play, level, plans), clock=MockClock(autojump_threshold=0))
