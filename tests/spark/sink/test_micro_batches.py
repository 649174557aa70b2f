"""Each row of a query once, whatever dies; without Spark, against our broker and Apache Kafka."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

import pytest
import trio

import trionet
from spark.sink.micro_batches import Query, rows
from support.cache import Unavailable
from support.eventually import eventually
from support.kafka_node import kafka_node
from support.protocol_level import finalize
from trionet.client.admin import NewTopic
from trionet.errors import ConfigError, TrionetError
from trionet.spark._loop_host import host
from trionet.spark.sink._markers import ReplayError
from trionet.spark.sink._messages import TaskPrepared
from trionet.spark.sink._micro_batch import TransactionLostError, leased_coordinators
from trionet.testing import broker

pytestmark = pytest.mark.slow
SLOW = [pytest.mark.spark, pytest.mark.timeout(300)]
_names = count()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("trionet", 2), id="trionet-TV2"),
        pytest.param(("trionet", 1), id="trionet-TV1", marks=SLOW),
        pytest.param(("kafka", 2), id="kafka-TV2", marks=[*SLOW, pytest.mark.interop]),
        pytest.param(("kafka", 1), id="kafka-TV1", marks=[*SLOW, pytest.mark.interop]),
    ],
)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    kind, level = request.param

    async def choose(bootstrap_servers: str) -> None:
        async with trionet.open_admin(bootstrap_servers) as admin:
            await finalize(admin, level)

    if kind == "trionet":
        with broker(auto_create_topics_enable=False) as it:
            trio.run(choose, it.bootstrap_servers)
            yield it.bootstrap_servers
            host().close()
        return
    try:
        with kafka_node() as (bootstrap_servers, _):
            trio.run(choose, bootstrap_servers)
            yield bootstrap_servers
            host().close()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def query(servers: str) -> Query:
    topic = f"q{next(_names)}"

    async def create() -> None:
        async with trionet.open_admin(servers) as admin:
            (await admin.create_topics([NewTopic(topic, 2)])).checked()

    trio.run(create)
    return Query(servers, topic)


def all_rows(*batches: int, tasks: int = 3) -> list[str]:
    return sorted(row for n in batches for task in range(tasks) for row in rows(n, task))


def test_micro_batches_are_committed_one_after_the_other(query: Query) -> None:
    for number in range(3):
        tasks = query.tasks(number)
        assert all_rows(*range(number)) == query.committed()
        query.commit(number, tasks)

    assert all_rows(0, 1, 2) == query.committed() == query.written()
    assert [] == query.open()


def test_task_without_rows_has_no_transaction(query: Query) -> None:
    empty = query.task(0, [])
    assert empty.transaction is None
    query.commit(0, [empty, query.task(1, rows(0, 1))])
    query.commit(1, [query.task(0, []), query.task(1, [])])

    assert rows(0, 1) == query.committed()


def test_task_that_fails_aborts_its_transaction(query: Query) -> None:
    """Its next attempt fences nobody, and no reader waits for the first."""
    with pytest.raises(TrionetError):
        query.task(0, ["x" * 2_000_000])
    assert [] == query.open()
    tasks = [query.task(0, rows(0, 0), attempt=1), query.task(1, rows(0, 1))]
    query.commit(0, tasks)

    assert [*rows(0, 0), *rows(0, 1)] == query.committed()


def test_attempt_that_was_not_chosen_is_aborted(query: Query) -> None:
    """A speculative attempt ends as well, or was killed before its driver heard of it."""
    tasks = query.tasks(0)
    twin = query.task(1, rows(0, 1), attempt=1)
    query.commit(0, tasks)

    assert twin.transaction is not None
    assert all_rows(0) == query.committed()
    assert [] == query.open()


def test_micro_batch_that_is_aborted_leaves_nothing_visible(query: Query) -> None:
    tasks = query.tasks(0)
    query.task(2, rows(0, 2), attempt=1)
    query.abort(0, tasks[:1])

    assert [] == query.open() == query.committed()
    query.commit(0, query.tasks(0))
    assert all_rows(0) == query.committed()


@pytest.mark.parametrize("attempt", [0, 1], ids=["same ids", "other ids"])
def test_driver_may_die_before_any_request(query: Query, attempt: int) -> None:
    """The next run replays the micro-batch: of each row, the topic has one that is committed."""
    reached = set()
    for number in count():
        tasks = query.tasks(number)
        is_done = query.commit_until(number, tasks, requests=number)
        reached.add(named(query.ended(tasks)))
        seen = query.committed()
        assert set(all_rows(*range(number))) <= set(seen) <= set(all_rows(*range(number + 1)))
        query.commit(number, query.tasks(number, attempt=attempt))
        assert all_rows(*range(number + 1)) == query.committed()
        assert [] == query.open()
        if is_done:
            break
    assert STATES == reached


@pytest.mark.parametrize("attempt", [0, 1], ids=["same ids", "other ids"])
def test_driver_may_come_back(query: Query, attempt: int) -> None:
    """A driver that was thought dead goes on after any request, when another has replayed."""
    reached = set()
    for number in count():
        late = query.tasks(number)
        pause = Pause(number)
        is_done, ended = host().call(_one_within_the_other, query, number, late, pause, attempt)
        reached.add(named(ended))
        assert all_rows(*range(number + 1)) == query.committed()
        assert [] == query.open()
        if is_done:
            break
    assert STATES == reached


#: How far a driver may have come with three tasks.
STATES = {"nothing", "the first only", "some", "all"}


def named(committed: Sequence[int]) -> str:
    """Which of them it is."""
    return {(): "nothing", (0,): "the first only", (0, 1, 2): "all"}.get((*committed,), "some")


class Pause:
    """Lets a driver send so many requests, one by one, and later all others."""

    def __init__(self, requests: int) -> None:
        self._left = requests
        self._alone = trio.Lock()
        self.reached = trio.Event()
        self.over = trio.Event()

    @asynccontextmanager
    async def turn(self, _: object) -> AsyncIterator[None]:
        async with self._alone:
            self._left -= 1
            if self._left < 0:
                self.reached.set()
                await self.over.wait()
            yield


async def _one_within_the_other(
    query: Query, number: int, late: Sequence[TaskPrepared], pause: Pause, attempt: int
) -> tuple[bool, list[int]]:
    """Replay a micro-batch while its first driver pauses.

    Returns whether that had ended before, and the tasks that it had committed.
    """
    has_ended = False

    async def first() -> None:
        nonlocal has_ended
        try:
            await query.commit_by_turns(number, late, pause.turn)
        except TrionetError:
            pass  # fenced; Spark would run the micro-batch again
        has_ended = True
        pause.reached.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await pause.reached.wait()
        was_done = has_ended
        ended = await trio.to_thread.run_sync(query.ended, late)
        tasks = await trio.to_thread.run_sync(lambda: query.tasks(number, attempt=attempt))
        await trio.to_thread.run_sync(query.commit, number, tasks)
        pause.over.set()
    return was_done, ended


@pytest.mark.parametrize("seed", range(12))
def test_two_drivers_at_the_same_time_commit_each_row_once(query: Query, seed: int) -> None:
    """Their requests come in any order: at least one fails, unless the other was done before."""
    rng = random.Random(seed)
    runs = [query.tasks(0), query.tasks(0, attempt=1)]
    succeeded = host().call(_interleaved, query, runs, rng)
    if succeeded:
        assert all_rows(0) == query.committed()

    query.commit(0, query.tasks(0, attempt=rng.randrange(3)))
    assert all_rows(0) == query.committed()
    assert [] == query.open()


async def _interleaved(
    query: Query, runs: Sequence[Sequence[TaskPrepared]], rng: random.Random
) -> int:
    """Let drivers commit, whose requests are sent in a random order. Returns how many succeed."""
    waiting: list[list[trio.Event]] = [[] for _ in runs]
    news = trio.Event()
    left, succeeded = len(runs), 0

    async def drive(number: int) -> None:
        nonlocal left, succeeded

        @asynccontextmanager
        async def turn(_: object) -> AsyncIterator[None]:
            mine = trio.Event()
            waiting[number].append(mine)
            news.set()
            await mine.wait()
            yield

        try:
            await query.commit_by_turns(0, runs[number], turn)
            succeeded += 1
        except TrionetError:
            pass  # fenced by the other
        left -= 1
        news.set()

    async with trio.open_nursery() as nursery:
        for number in range(len(runs)):
            nursery.start_soon(drive, number)
        while left:
            ready = [each for each in waiting if each]
            if ready:
                rng.choice(ready).pop(0).set()
                await trio.lowlevel.checkpoint()
            else:
                news = trio.Event()
                await news.wait()
    return succeeded


def test_transaction_that_has_ended_meanwhile_fails_the_micro_batch(query: Query) -> None:
    """For example by transaction.timeout.ms; here it is fenced."""
    tasks = query.tasks(0)
    query.fence(tasks[2])

    with pytest.raises(TransactionLostError, match=r"kafka\.transaction\.timeout\.ms"):
        query.commit(0, tasks)
    assert [] == query.committed()
    query.commit(0, query.tasks(0))
    assert all_rows(0) == query.committed()


def partly_committed(query: Query) -> None:
    """Commit a part of the first micro-batch: the first of three tasks."""
    query.commit_only(0, query.tasks(0), [0])


@pytest.mark.parametrize(
    "replay",
    [
        [rows(0, 0), rows(0, 1), [*rows(0, 2), "more"]],
        [[*rows(0, 0), "more"], rows(0, 1), rows(0, 2)],
        [rows(0, 0), [*rows(0, 1), *rows(0, 2)]],
        [rows(0, 1), rows(0, 0), rows(0, 2)],
        [[], rows(0, 0), rows(0, 1), rows(0, 2)],
        [[], [], []],
    ],
    ids=["more rows", "other rows", "fewer tasks", "rows moved", "tasks moved", "no rows"],
)
def test_replay_with_other_rows_is_not_committed(query: Query, replay: list[list[str]]) -> None:
    partly_committed(query)
    seen = query.committed()
    tasks = [query.task(number, values) for number, values in enumerate(replay)]

    with pytest.raises(ReplayError, match=r"micro-batch 0 was replayed with other rows"):
        query.commit(0, tasks)
    query.abort(0, tasks)

    assert seen == query.committed()
    assert [] == query.open()


def in_tasks(query: Query, *numbers: int) -> list[TaskPrepared]:
    """The rows of the first micro-batch, in the tasks with these numbers."""
    return [query.task(number, rows(0, index)) for index, number in enumerate(numbers)]


@pytest.mark.parametrize("committed", [[0], [0, 1], [0, 2]])
def test_rows_may_not_move_to_a_later_task(query: Query, committed: list[int]) -> None:
    """Although neither the number of tasks nor all rows together differ.

    The driver of the replay might die when it has committed them there, and a second replay with
    the tasks of the first run would look for no marker as far as that.
    """
    query.commit_only(0, in_tasks(query, 0, 1, 2), committed)
    replay = in_tasks(query, 0, 1, 3)
    with pytest.raises(ReplayError, match=r"3 tasks up to task 3 .* 3 up to task 2"):
        query.commit(0, replay)
    query.abort(0, replay)

    assert sorted(row for task in committed for row in rows(0, task)) == query.committed()


@pytest.mark.parametrize(
    ("committed", "text"),
    [([0], None), ([0, 3], None), ([0, 1], "that task has no rows")],
)
def test_only_rows_of_tasks_that_are_not_committed_may_move(
    query: Query, committed: list[int], text: str | None
) -> None:
    """Within the micro-batch's tasks: markers are looked for there."""
    query.commit_only(0, in_tasks(query, 0, 1, 3), committed)
    replay = in_tasks(query, 0, 2, 3)
    if text is None:
        query.commit(0, replay)
        assert all_rows(0) == query.committed()
        return
    with pytest.raises(ReplayError, match=text):
        query.commit(0, replay)
    query.abort(0, replay)
    assert [*rows(0, 0), *rows(0, 1)] == query.committed()


def test_rows_that_a_replay_has_moved_may_not_move_back(query: Query) -> None:
    query.commit_only(0, in_tasks(query, 0, 1, 3), [0])
    query.commit_only(0, in_tasks(query, 0, 2, 3), [2])
    again = in_tasks(query, 0, 1, 3)
    with pytest.raises(ReplayError, match=r"task 2 has committed .* that task has no rows"):
        query.commit(0, again)
    query.abort(0, again)

    query.commit(0, in_tasks(query, 0, 2, 3))
    assert all_rows(0) == query.committed()


def test_attempt_that_begins_in_the_next_micro_batch_fences_nobody(query: Query) -> None:
    """A speculative one that Spark has not chosen, and that comes to its first row late."""
    query.commit(0, query.tasks(0))
    tasks = query.tasks(1)
    query.task(0, rows(0, 0), batch_id=0)
    query.commit(1, tasks)

    assert all_rows(0, 1) == query.committed()
    assert [] == query.open()


@pytest.mark.parametrize("chosen", [0, 1], ids=["first", "second"])
def test_attempts_of_a_stage_that_is_run_again_do_not_fence_each_other(
    query: Query, chosen: int
) -> None:
    """Spark numbers them from 0 again, while those of the first run may go on."""
    query.commit(0, query.tasks(0))
    tasks = query.tasks(1)
    both = [tasks[0], query.task(0, rows(1, 0), batch_id=1)]

    query.commit(1, [both[chosen], *tasks[1:]])

    assert all_rows(0, 1) == query.committed()
    assert [] == query.open()


def test_replay_may_have_its_rows_in_another_order(query: Query) -> None:
    partly_committed(query)
    query.commit(0, [query.task(number, rows(0, number)[::-1]) for number in range(3)])

    assert all_rows(0) == query.committed()


def test_older_checkpoint_is_refused(query: Query) -> None:
    for number in range(2):
        query.commit(number, query.tasks(number))

    with pytest.raises(ReplayError, match="the topics have micro-batch 1 of this query already"):
        query.commit(0, query.tasks(0))
    assert all_rows(0, 1) == query.committed()


def test_transaction_that_was_open_for_too_long_fails_the_micro_batch() -> None:
    """kafka.transaction.timeout.ms is over: the coordinator has aborted it, and readers go on."""
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 10}
    with broker(settings, topics={"late": 1}) as it:
        query = Query(it.bootstrap_servers, "late", transaction_timeout_ms="500")
        tasks = query.tasks(0)
        host().call(_until_none_is_open, query)

        with pytest.raises(TransactionLostError, match=r"kafka\.transaction\.timeout\.ms"):
            query.commit(0, tasks)
        assert [] == query.committed()

        query = Query(it.bootstrap_servers, "late")
        query.commit(0, query.tasks(0))
        assert all_rows(0) == query.committed()
        host().close()


@pytest.mark.parametrize("api", ["TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("position", ["first", "later"])
def test_micro_batch_that_a_broker_asks_to_abort_is_written_again(api: str, position: str) -> None:
    """TRANSACTION_ABORTABLE (KIP-890): what is committed stays, and the rest is replayed."""
    with broker(topics={"t": 2}) as it:
        query = Query(it.bootstrap_servers, "t")
        if position == "later":
            query.commit_only(0, query.tasks(0), [0])
        tasks = query.tasks(0)
        # What is committed already is aborted here, by the same API.
        fault = it.faults.fail(
            api, "TRANSACTION_ABORTABLE", when=lambda seen: getattr(seen.message, "committed", True)
        )

        with pytest.raises(TransactionLostError, match=r"abort .*TRANSACTION_ABORTABLE"):
            query.commit(0, tasks)
        query.abort(0, tasks)

        assert 1 == fault.hits
        assert [] == query.open()
        # All but the first are committed at the same time.
        done = rows(0, 0) if position == "later" else []
        assert {*done} <= {*query.committed()} < {*all_rows(0)}
        query.commit(0, query.tasks(0))
        assert all_rows(0) == query.committed()
        host().close()


def test_task_that_a_broker_asks_to_abort_does_so_and_its_next_attempt_succeeds() -> None:
    with broker(topics={"t": 2}) as it:
        query = Query(it.bootstrap_servers, "t")
        it.faults.fail("Produce", "TRANSACTION_ABORTABLE")
        with pytest.raises(TrionetError, match="TRANSACTION_ABORTABLE"):
            query.task(0, rows(0, 0))

        assert [] == query.open() == query.committed()
        query.commit(0, [query.task(0, rows(0, 0), attempt=1)])
        assert rows(0, 0) == query.committed() == query.written()
        host().close()


async def _until_none_is_open(query: Query) -> None:
    async with leased_coordinators(query.options) as coordinators:
        await eventually(
            partial(coordinators.transactions.list, states=["Ongoing"]), lambda found: not found
        )


def test_longer_timeout_than_the_brokers_allow_is_a_mistake(servers: str) -> None:
    query = Query(servers, "x", transaction_timeout_ms="900001")

    with pytest.raises(ConfigError, match=r"kafka\.transaction\.timeout\.ms = 900001 is more"):
        query.task(0, ["1"])


def test_retention_of_markers_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Once for each cluster; a warning if a query must not be stopped for a day."""
    for minutes, level in (("10080", "INFO"), ("60", "WARNING")):
        caplog.clear()
        caplog.set_level("INFO", "trionet.spark")
        with broker({"offsets.retention.minutes": minutes}, topics={"x": 1}) as it:
            query = Query(it.bootstrap_servers, "x")
            for number in range(2):
                query.commit(number, query.tasks(number, count=1))
            host().close()
        assert [level] == [
            each.levelname
            for each in caplog.records
            if f"offsets.retention.minutes = {minutes}" in each.getMessage()
        ]
