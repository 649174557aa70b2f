"""The transaction coordinator with real logs and a real database: markers, retries, restarts."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from support.coordinating import Asked, _rename
from support.faulty_directory import Faults, FaultyDirectory
from support.logs import batch
from support.transacting import (
    LEADER,
    NO_LEADER,
    START_MS,
    TIMEOUT_MS,
    Killed,
    Partition,
    Transacting,
    transacting,
)
from trionet.broker.groups._offsets_partition import partition_of
from trionet.broker.log import Directory, FolderDirectory, Log, LogConfig, MemoryDirectory
from trionet.broker.storage._database import DATABASE_NAME, IN_MEMORY, Database, open_database
from trionet.broker.transactions._transaction import (
    EPOCH_MAX,
    EXHAUSTED,
    TV1,
    TV2,
    ProducerIdAndEpoch,
    TransactionState,
)
from trionet.broker.transactions._transaction_coordinator import MARKERS_AT_ONCE
from trionet.errors import ApiError
from trionet.protocol import error_codes

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)
ALL = (T0, T1, T2)
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT
PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
ONGOING = TransactionState.ONGOING


def in_memory(*partitions: Partition) -> dict[Partition, Directory]:
    return {key: MemoryDirectory() for key in partitions}


@pytest.fixture(params=["disk", "memory"])
async def storage(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Database, dict[Partition, Directory]]]:
    if request.param == "memory":
        async with open_database(IN_MEMORY) as database:
            yield database, in_memory(*ALL)
    else:
        async with open_database(str(tmp_path / DATABASE_NAME)) as database:
            yield database, {key: FolderDirectory(tmp_path / f"{key[0]}-{key[1]}") for key in ALL}


@pytest.fixture
async def rig(
    storage: tuple[Database, dict[Partition, Directory]],
) -> AsyncIterator[Transacting]:
    async with transacting(*storage) as rig:
        yield rig


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    async with open_database(IN_MEMORY) as database:
        yield database


def code(caught: pytest.ExceptionInfo[ApiError]) -> str:
    return error_codes.name_of(caught.value.error_code)


async def refused(name: str, result: Asked[Any]) -> None:
    answer = await result.answer()
    assert isinstance(answer, ApiError)
    assert name == error_codes.name_of(answer.error_code)


# Ends.


@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_writes_a_marker_to_every_partition_and_then_responds(
    rig: Transacting, commit: bool
) -> None:
    producer = await rig.initialized("x")
    for number, key in enumerate(ALL):
        rig.produce("x", producer, key, b"%d" % number, adds=True)

    asked = await rig.end("x", producer, commit=commit)
    assert [[None]] * 3 == [list(rig.fates(key).values()) for key in ALL]
    await rig.commit()

    assert [(producer.producer_id, 1)] == asked.answers
    assert [[commit]] * 3 == [list(rig.fates(key).values()) for key in ALL]
    assert [2] * 3 == [log.last_stable_offset for log in rig.logs.values()]
    assert (COMPLETE_COMMIT if commit else COMPLETE_ABORT) is rig.state("x")
    assert set(rig.logs.values()) == set(rig.announced)
    assert {} == rig.coordinator.unfinished


async def test_markers_have_the_epochs_of_producer_and_coordinator(rig: Transacting) -> None:
    rig.leader_epoch = 7
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    await rig.end("x", producer)
    await rig.commit()

    entry = rig.logs[T0].producers[producer.producer_id]
    assert (1, 7) == (entry.epoch, entry.coordinator_epoch)


async def test_the_first_protocol_keeps_the_epoch_over_transactions(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    for value in (b"a", b"b"):
        rig.add("x", producer, T0)
        await rig.commit()
        rig.produce("x", producer, T0, value, adds=False)
        asked = await rig.end("x", producer, commit=value == b"b", version=TV1)
        await rig.commit()
        assert [producer] == asked.answers

    assert {b"a": False, b"b": True} == rig.fates(T0)


async def test_a_partition_that_was_added_and_not_written_gets_a_marker(rig: Transacting) -> None:
    """As in Kafka: the coordinator does not know what was written."""
    producer = await rig.initialized("x")
    rig.add("x", producer, T0, T1)
    await rig.commit()
    rig.produce("x", producer, T0, b"a", adds=False)
    await rig.end("x", producer, version=TV1)
    await rig.commit()

    assert [2, 1, 0] == [log.end_offset for log in rig.logs.values()]


async def test_partitions_that_are_added_already_are_not_stored_again(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    rig.add("x", producer, T0, T1, groups=[4])
    await rig.commit()

    again = rig.add("x", producer, T1, groups=[4])

    assert [None] == again.answers
    assert [] == rig.writes._queue


async def test_a_decision_that_cannot_be_stored_changes_nothing(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    await rig.database.transaction(lambda c: _rename(c, "transactional_id", "gone"))
    asked = await rig.end("x", producer)
    await rig.commit()
    await refused("COORDINATOR_NOT_AVAILABLE", asked)
    assert ({b"a": None}, ONGOING) == (rig.fates(T0), rig.state("x"))

    await rig.database.transaction(lambda c: _rename(c, "gone", "transactional_id"))
    again = await rig.end("x", producer)
    await rig.commit()

    assert [(producer.producer_id, 1)] == again.answers
    assert {b"a": True} == rig.fates(T0)


async def test_a_new_id_that_cannot_be_stored_is_as_new_as_before(rig: Transacting) -> None:
    await rig.database.transaction(lambda c: _rename(c, "transactional_id", "gone"))
    asked = await rig.init("x")
    await rig.commit()
    await refused("COORDINATOR_NOT_AVAILABLE", asked)
    assert {} == rig.coordinator.transactions

    await rig.database.transaction(lambda c: _rename(c, "gone", "transactional_id"))
    assert 0 == (await rig.initialized("x")).epoch


async def test_everything_else_waits_while_a_decision_is_stored(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    await rig.end("x", producer)

    for request in (
        lambda: rig.produce("x", producer, T0, b"b", adds=True),
        lambda: rig.produce("x", producer, T0, b"b", adds=False),
        lambda: rig.add("x", producer, T1),
        lambda: rig.offsets("x", producer, "g", {T0: 1}),
        lambda: rig.coordinator.check_added("x", producer),
    ):
        with pytest.raises(ApiError) as caught:
            request()
        assert "CONCURRENT_TRANSACTIONS" == code(caught)
    for waiting in (rig.end, rig.init):
        with pytest.raises(ApiError) as caught:
            await waiting("x", producer)
        assert "CONCURRENT_TRANSACTIONS" == code(caught)


async def test_exhausted_epochs_end_with_a_new_producer_id(rig: Transacting) -> None:
    producer = await rig.initialized("x", EXHAUSTED)
    rig.produce("x", producer, T0, b"a", adds=True)
    asked = await rig.end("x", producer)
    await rig.commit()

    following = await asked.answer()
    assert isinstance(following, ProducerIdAndEpoch)
    assert 0 == following.epoch
    assert following.producer_id > producer.producer_id
    assert EPOCH_MAX == rig.logs[T0].producers[producer.producer_id].epoch
    again = await rig.end("x", producer)
    assert [following] == again.answers
    rig.produce("x", following, T0, b"b", adds=True)
    assert {b"a": True, b"b": None} == rig.fates(T0)


# Markers that cannot be written.


async def test_a_partition_without_leader_gets_its_marker_later(
    rig: Transacting, caplog: pytest.LogCaptureFixture
) -> None:
    """The response does not wait for it, but the next transaction does."""
    producer = await rig.initialized("x")
    for key in ALL:
        rig.produce("x", producer, key, b"a", adds=True)
    rig.logs[T1].leader_id = NO_LEADER
    asked = await rig.end("x", producer)
    await rig.commit()
    following = await asked.answer()
    assert isinstance(following, ProducerIdAndEpoch)
    assert (True, None, True) == tuple(rig.fates(key)[b"a"] for key in ALL)
    assert PREPARE_COMMIT is rig.state("x")
    with pytest.raises(ApiError) as caught:
        rig.produce("x", following, T0, b"b", adds=True)
    assert "CONCURRENT_TRANSACTIONS" == code(caught)

    await rig.coordinator.retry_markers()
    assert PREPARE_COMMIT is rig.state("x")
    rig.logs[T1].leader_id = LEADER
    await rig.coordinator.retry_markers()

    assert {b"a": True} == rig.fates(T1)
    assert (COMPLETE_COMMIT, {}) == (rig.state("x"), rig.coordinator.unfinished)
    assert [2, 2, 2] == [log.end_offset for log in rig.logs.values()]
    rig.produce("x", following, T0, b"b", adds=True)


async def test_a_full_disk_delays_one_marker_and_is_logged_once(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults = Faults()
    full = FaultyDirectory(FolderDirectory(tmp_path / "t-0"), faults)
    async with transacting(database, {T0: full, T1: MemoryDirectory()}) as rig:
        producer = await rig.initialized("x")
        rig.produce("x", producer, T0, b"a", adds=True)
        rig.produce("x", producer, T1, b"a", adds=True)
        with faults.failing(dict.fromkeys(range(99), "before")):
            asked = await rig.end("x", producer)
            await rig.commit()
            await rig.coordinator.retry_markers()
            await rig.coordinator.retry_markers()
            assert [(producer.producer_id, 1)] == asked.answers
            assert ({b"a": None}, {b"a": True}) == (rig.fates(T0), rig.fates(T1))

        await rig.coordinator.retry_markers()

        assert {b"a": True} == rig.fates(T0)
        warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert 1 == len(warnings)
        assert "t-0: cannot write the marker of transaction 'x'" in warnings[0].getMessage()


async def test_many_markers_that_cannot_be_written_are_counted_in_one_line(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults = Faults()
    full = {
        ("t", number): FaultyDirectory(FolderDirectory(tmp_path / f"t-{number}"), faults)
        for number in range(250)
    }
    async with transacting(database, full) as rig:
        producer = await rig.initialized("x")
        for key in full:
            rig.produce("x", producer, key, b"a", adds=True)
        with faults.failing(dict.fromkeys(range(999), "before")):
            await rig.end("x", producer)
            await rig.commit()
            await trio.testing.wait_all_tasks_blocked()

    warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert 4 == len(warnings)
    assert "t-2: cannot write the marker of transaction 'x': t-2: " in warnings[2]
    assert "247 more markers of transaction 'x' cannot be written; all are retried" == warnings[3]


async def test_a_marker_of_which_the_log_knows_a_newer_one_is_not_retried(
    rig: Transacting,
) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    rig.logs[T0].append_marker(
        producer.producer_id,
        9,
        is_commit=False,
        coordinator_epoch=0,
        transaction_version=0,
        now_ms=START_MS,
    )
    await rig.end("x", producer)
    await rig.commit()

    assert ({b"a": False}, COMPLETE_COMMIT) == (rig.fates(T0), rig.state("x"))


async def test_the_coordinator_epoch_of_an_administrator_does_not_fence_the_coordinator(
    rig: Transacting,
) -> None:
    """Otherwise, the next transaction of the producer would stay open for ever."""
    producer = await rig.initialized("x")
    rig.logs[T0].append_marker(
        *producer,
        is_commit=False,
        coordinator_epoch=99,
        transaction_version=0,
        now_ms=START_MS,
    )
    rig.produce("x", producer, T0, b"a", adds=True)
    await rig.end("x", producer)
    await rig.commit()

    assert ({b"a": True}, COMPLETE_COMMIT) == (rig.fates(T0), rig.state("x"))
    assert {} == rig.logs[T0].open_transactions


async def test_any_other_error_of_a_marker_does_not_stop_the_others(
    rig: Transacting, caplog: pytest.LogCaptureFixture
) -> None:
    """The client would wait for a response until its timeout."""
    producer = await rig.initialized("x")
    for key in ALL:
        rig.produce("x", producer, key, b"a", adds=True)
    rig.kill_after, rig.kill_with = 0, MemoryError
    asked = await rig.end("x", producer)
    await rig.commit()

    assert [(producer.producer_id, 1)] == asked.answers
    assert [True] * 3 == [rig.fates(key)[b"a"] for key in ALL]
    assert "cannot write the marker of transaction 'x': unexpected error" in caplog.text


# Flushes.


async def test_with_flush_messages_1_the_response_waits_until_the_markers_are_on_disk(
    database: Database, tmp_path: Path
) -> None:
    """So committed records can be read by all when the response comes."""
    folder = {T0: FolderDirectory(tmp_path / "t-0")}
    async with transacting(database, folder, config=LogConfig(flush_messages=1)) as rig:
        log = rig.logs[T0]
        producer = await rig.initialized("x")
        rig.produce("x", producer, T0, b"a", adds=True)
        await log.flush()
        rig.announced.clear()
        asked = await rig.end("x", producer)
        await rig.commit()
        assert ([], PREPARE_COMMIT, 0) == (asked.answers, rig.state("x"), log.last_stable_offset)
        await rig.coordinator.retry_markers()

        await asked.answer()

        assert (COMPLETE_COMMIT, 2, [log]) == (
            rig.state("x"),
            log.last_stable_offset,
            rig.announced,
        )
        assert 2 == log.end_offset


async def test_a_marker_that_is_not_on_disk_keeps_the_decision(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next decision would replace it, and a power failure could still take the marker."""
    faults = Faults()
    failing = FaultyDirectory(FolderDirectory(tmp_path / "t-0"), faults)
    config = LogConfig(flush_messages=1)
    async with transacting(database, {T0: failing}, config=config) as rig:
        producer = await rig.initialized("x")
        rig.produce("x", producer, T0, b"a", adds=True)
        await rig.logs[T0].flush()
        with faults.failing(dict.fromkeys(range(2, 99), "before")):  # after the write
            asked = await rig.end("x", producer)
            await rig.commit()
            assert (producer.producer_id, 1) == await asked.answer()

        assert PREPARE_COMMIT is rig.state("x")
        assert "t-0: cannot flush the marker of transaction 'x'" in caplog.text
        async with restarted(rig) as again:
            assert (COMPLETE_COMMIT, {b"a": True}) == (again.state("x"), again.fates(T0))


async def test_the_client_gets_a_response_also_after_an_unexpected_error(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = {T0: FolderDirectory(tmp_path / "t-0")}
    async with transacting(database, folder, config=LogConfig(flush_messages=1)) as rig:
        producer = await rig.initialized("x")
        rig.produce("x", producer, T0, b"a", adds=True)
        rig.kill_after, rig.kill_with = 0, MemoryError
        asked = await rig.end("x", producer)
        await rig.commit()

        assert (producer.producer_id, 1) == await asked.answer()
        assert "cannot finish transaction 'x'" in caplog.text


# Many.


async def test_many_markers_are_written_in_steps(database: Database) -> None:
    many = [("t", number) for number in range(3 * MARKERS_AT_ONCE + 1)]
    async with transacting(database, in_memory(*many)) as rig:
        producer = await rig.initialized("x")
        for key in many:
            rig.produce("x", producer, key, b"a", adds=True)
        asked = await rig.end("x", producer)
        await rig.commit()
        assert [] == asked.answers
        await rig.coordinator.retry_markers()
        turns = 0
        while not asked.answers:
            await trio.lowlevel.checkpoint()
            turns += 1

        assert turns >= 3
        assert {1: len(many)} == {1: sum(rig.fates(key)[b"a"] is True for key in many)}
        assert {2} == {log.end_offset for log in rig.logs.values()}
        assert COMPLETE_COMMIT is rig.state("x")


async def test_others_have_turns_while_many_ids_are_looked_at(database: Database) -> None:
    async with transacting(database, in_memory(T0)) as rig:
        for number in range(10_000):
            await rig.init(str(number))
        await rig.commit()
        rig.now_ms += 10_000_000
        for work in (rig.coordinator.abort_overdue, lambda: rig.coordinator.expire(1)):
            turns = 0
            has_ended = False

            async def take_turns() -> None:
                nonlocal turns
                while not has_ended:  # noqa: B023
                    turns += 1
                    await trio.lowlevel.checkpoint()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_turns)
                await work()
                has_ended = True
            assert turns >= 5
        await rig.commit()

        assert {} == rig.coordinator.transactions


# Topics.


async def test_a_deleted_topic_leaves_its_transactions(rig: Transacting) -> None:
    """A topic of the same name that is created afterwards gets no marker."""
    producer = await rig.initialized("x")
    for key in ALL:
        rig.produce("x", producer, key, b"a", adds=True)
    removed = rig.logs.pop(T1)
    rig.coordinator.forget([removed])
    again = rig.logs[T1] = Log(
        MemoryDirectory(), topic="t", partition=1, topic_id=b"2" * 16, now_ms=START_MS
    )

    await rig.end("x", producer)
    await rig.commit()

    assert COMPLETE_COMMIT is rig.state("x")
    assert (0, 1) == (again.end_offset, removed.end_offset)


async def test_a_transaction_that_only_waits_for_a_deleted_topic_is_complete(
    rig: Transacting,
) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T1, b"a", adds=True)
    rig.logs[T1].leader_id = NO_LEADER
    await rig.end("x", producer)
    await rig.commit()
    assert PREPARE_COMMIT is rig.state("x")

    rig.coordinator.forget([rig.logs.pop(T1)])

    assert (COMPLETE_COMMIT, {}) == (rig.state("x"), rig.coordinator.unfinished)


async def test_a_topic_that_is_deleted_while_it_is_added_is_not_in_the_transaction(
    rig: Transacting,
) -> None:
    producer = await rig.initialized("x")
    asked = rig.add("x", producer, T0, T1)
    rig.coordinator.forget([rig.logs.pop(T1)])
    await rig.commit()

    assert [None] == asked.answers
    assert {rig.logs[T0]: None} == rig.coordinator.transactions["x"].partitions


# Time.


@pytest.mark.parametrize("level", [TV1, TV2])
async def test_a_transaction_is_aborted_after_its_timeout_and_its_producer_fenced(
    rig: Transacting, level: int
) -> None:
    rig.level = level
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    rig.now_ms += TIMEOUT_MS
    await rig.coordinator.abort_overdue()
    assert [] == rig.writes._queue
    rig.now_ms += 1
    await rig.coordinator.abort_overdue()
    await rig.coordinator.abort_overdue()
    assert 1 == len(rig.writes._queue)
    await rig.commit()

    assert ({b"a": False}, COMPLETE_ABORT) == (rig.fates(T0), rig.state("x"))
    assert (producer.producer_id, 1) == rig.identity("x")
    with pytest.raises(ApiError) as caught:
        rig.produce("x", producer, T0, b"b", adds=True)
    assert "PRODUCER_FENCED" == code(caught)
    with pytest.raises(ApiError) as caught:
        await rig.end("x", producer, commit=True)
    assert "INVALID_TXN_STATE" == code(caught)
    late = await rig.end("x", producer, commit=False)
    assert [(producer.producer_id, 1)] == late.answers


async def test_a_producer_goes_on_after_its_timeout_with_the_epoch_that_the_abort_has_raised(
    rig: Transacting,
) -> None:
    """As in Kafka since KAFKA-19367, unless another instance has a newer one meanwhile. In the
    first protocol, the producer is fenced.
    """
    for id, level in (("first", TV1), ("second", TV2)):
        rig.level = level
        producer = await rig.initialized(id)
        rig.produce(id, producer, T0, b"a", adds=True)
        rig.now_ms += TIMEOUT_MS + 1
        await rig.coordinator.abort_overdue()
        await rig.commit()
        if level == TV1:
            with pytest.raises(ApiError) as caught:
                await rig.init(id, producer)
            assert "PRODUCER_FENCED" == code(caught)
        else:
            asked = await rig.init(id, producer)
            await rig.commit()
            assert [(producer.producer_id, producer.epoch + 1)] == asked.answers


async def test_the_timeout_counts_from_the_first_partition(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    rig.now_ms += TIMEOUT_MS
    rig.produce("x", producer, T1, b"b", adds=True)
    rig.now_ms += 1
    await rig.coordinator.abort_overdue()

    assert 1 == len(rig.writes._queue)


async def test_an_unused_id_expires(rig: Transacting) -> None:
    first = await rig.initialized("x")
    ongoing = await rig.initialized("y")
    rig.produce("y", ongoing, T0, b"a", adds=True)
    rig.now_ms += 1000
    await rig.coordinator.expire(1001)
    assert [] == rig.writes._queue
    await rig.coordinator.expire(1000)
    with pytest.raises(ApiError) as caught:
        await rig.init("x")
    assert "CONCURRENT_TRANSACTIONS" == code(caught)
    await rig.commit()

    assert ["y"] == list(rig.coordinator.transactions)
    with pytest.raises(ApiError) as caught:
        await rig.end("x", first)
    assert "INVALID_PRODUCER_ID_MAPPING" == code(caught)
    assert await rig.initialized("x") > first


async def test_an_id_that_cannot_be_removed_is_kept(rig: Transacting) -> None:
    first = await rig.initialized("x")
    rig.now_ms += 1000
    await rig.database.transaction(lambda c: _rename(c, "transactional_id", "gone"))
    await rig.coordinator.expire(1)
    await rig.commit()
    await rig.database.transaction(lambda c: _rename(c, "gone", "transactional_id"))

    assert (first.producer_id, 1) == await rig.initialized("x")


# Offsets.


@pytest.mark.parametrize("commit", [True, False])
async def test_offsets_share_the_fate_of_their_transaction(rig: Transacting, commit: bool) -> None:
    producer = await rig.initialized("x")
    asked = rig.offsets("x", producer, "g", {T0: 5})
    await rig.commit()
    assert [0] == asked.answers
    assert ({}, {T0}) == (rig.committed("g"), rig.unstable("g"))

    await rig.end("x", producer, commit=commit)
    await rig.commit()

    assert ({T0: 5} if commit else {}, set()) == (rig.committed("g"), rig.unstable("g"))


async def test_offsets_need_their_group_in_the_transaction(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    with pytest.raises(ApiError) as caught:
        rig.offsets("x", producer, "g", {T0: 5}, adds=False)
    assert "TRANSACTION_ABORTABLE" == code(caught)

    rig.add("x", producer, groups=[partition_of("g")])
    await rig.commit()
    rig.offsets("x", producer, "g", {T0: 5}, adds=False)


# Restarts.


@asynccontextmanager
async def restarted(rig: Transacting, **settings: Any) -> AsyncIterator[Transacting]:
    """The broker after SIGKILL, with all files as they are."""
    directories = {key: log.directory for key, log in rig.logs.items()}
    async with transacting(
        rig.database, directories, ids=itertools.count(5000), now_ms=rig.now_ms, **settings
    ) as again:
        yield again


@pytest.mark.parametrize("version", [TV1, TV2])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("markers", [0, 1, 2])
async def test_a_decision_is_carried_out_after_a_kill(
    rig: Transacting, version: int, commit: bool, markers: int
) -> None:
    producer = await rig.initialized("x")
    rig.add("x", producer, *ALL)
    await rig.commit()
    for key in ALL:
        rig.produce("x", producer, key, b"a", adds=False)
    await rig.end("x", producer, commit=commit, version=version)
    rig.kill_after = markers
    with pytest.raises(Killed):
        await rig.commit()
    assert markers + 1 == [rig.fates(key)[b"a"] for key in ALL].count(commit)

    async with restarted(rig) as again:
        assert [commit] * 3 == [again.fates(key)[b"a"] for key in ALL]
        assert (COMPLETE_COMMIT if commit else COMPLETE_ABORT) is again.state("x")
        repeated = await again.end("x", producer, commit=commit, version=version)
        assert [(producer.producer_id, int(version == TV2))] == repeated.answers
        with pytest.raises(ApiError) as caught:
            await again.end("x", producer, commit=not commit, version=version)
        assert "INVALID_TXN_STATE" == code(caught)
        assert {2} == {log.end_offset for log in again.logs.values()}


async def test_markers_of_a_restart_are_not_fenced_by_those_before(rig: Transacting) -> None:
    rig.leader_epoch = 9
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    await rig.end("x", producer)
    await rig.commit()

    async with restarted(rig) as again:
        following = again.identity("x")
        again.produce("x", following, T0, b"b", adds=True)
        await again.end("x", following)
        await again.commit()

        assert {b"a": True, b"b": True} == again.fates(T0)
        assert 10 == again.logs[T0].coordinator_epoch


@pytest.mark.parametrize("version", [TV1, TV2])
async def test_a_transaction_goes_on_after_a_kill(rig: Transacting, version: int) -> None:
    """In TV2 nothing of it is stored: the logs say that it is ongoing; its time starts again."""
    producer = await rig.initialized("x")
    if version == TV1:
        rig.add("x", producer, T0, T2)
        await rig.commit()
    rig.produce("x", producer, T0, b"a", adds=version == TV2)
    started_at_ms = rig.now_ms
    rig.now_ms += 5

    async with restarted(rig) as again:
        assert ONGOING is again.state("x")
        current = again.coordinator.transactions["x"].current
        assert current is not None
        assert (rig.now_ms if version == TV2 else started_at_ms) == current.started_at_ms
        rig.now_ms += 5
        again.produce("x", producer, T0, b"b", adds=version == TV2)
        asked = await again.end("x", producer, version=version)
        await again.commit()

        assert [(producer.producer_id, int(version == TV2))] == asked.answers
        assert {b"a": True, b"b": True} == again.fates(T0)
        assert (1 if version == TV1 else 0) == again.logs[T2].end_offset


async def test_offsets_alone_make_a_transaction_ongoing_after_a_kill(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    rig.offsets("x", producer, "g", {T0: 5})
    await rig.commit()

    async with restarted(rig) as again:
        assert (ONGOING, {T0}) == (again.state("x"), again.unstable("g"))
        await again.end("x", producer)
        await again.commit()

        assert ({T0: 5}, set()) == (again.committed("g"), again.unstable("g"))


async def test_the_next_transaction_is_not_part_of_a_decision_of_before(rig: Transacting) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    await rig.end("x", producer)
    await rig.commit()
    following = rig.identity("x")
    rig.produce("x", following, T0, b"b", adds=True)

    async with restarted(rig) as again:
        assert ({b"a": True, b"b": None}, ONGOING) == (again.fates(T0), again.state("x"))
        await again.end("x", following, commit=False)
        await again.commit()

        assert {b"a": True, b"b": False} == again.fates(T0)


async def test_a_decision_whose_partition_has_no_leader_waits_also_after_a_restart(
    rig: Transacting,
) -> None:
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    rig.logs[T0].leader_id = NO_LEADER
    await rig.end("x", producer)
    await rig.commit()

    directories = {key: log.directory for key, log in rig.logs.items()}
    async with trio.open_nursery() as nursery:
        again = Transacting(rig.database, directories, nursery, ids=itertools.count(5000))
        again.logs[T0].leader_id = NO_LEADER
        await again.start()
        assert PREPARE_COMMIT is again.state("x")
        again.logs[T0].leader_id = LEADER
        await again.coordinator.retry_markers()

        assert ({b"a": True}, COMPLETE_COMMIT) == (again.fates(T0), again.state("x"))


def _lost_marker(rig: Transacting, producer: tuple[int, int], key: Partition) -> None:
    """Have records without a marker, as after a power failure that took it."""
    log = rig.logs[key]
    data = batch(value=b"lost", producer=(*producer, 0), transactional=True)
    log.append(data, rig.now_ms, TV2)


async def test_records_of_an_aborted_epoch_without_a_marker_are_aborted(
    rig: Transacting, caplog: pytest.LogCaptureFixture
) -> None:
    """A power failure took the marker. A commit of a later epoch does not cover them."""
    producer = await rig.initialized("x")
    _lost_marker(rig, producer, T1)
    following = await rig.initialized("x")
    rig.produce("x", following, T0, b"a", adds=True)
    await rig.end("x", following)
    rig.kill_after = 0
    with pytest.raises(Killed):
        await rig.commit()

    async with restarted(rig) as again:
        assert ({b"a": True}, {b"lost": False}) == (again.fates(T0), again.fates(T1))
        assert "records of an old epoch of transactional id 'x' have no marker" in caplog.text


async def test_also_after_a_marker_of_an_administrator_with_a_higher_coordinator_epoch(
    rig: Transacting,
) -> None:
    producer = await rig.initialized("x")
    rig.logs[T1].append_marker(
        *producer,
        is_commit=False,
        coordinator_epoch=99,
        transaction_version=TV1,
        now_ms=START_MS,
    )
    _lost_marker(rig, producer, T1)
    await rig.initialized("x")

    async with restarted(rig) as again:
        assert {b"lost": False} == again.fates(T1)
        assert 100 == again.logs[T1].coordinator_epoch


async def test_what_went_on_waits_for_a_marker_that_was_lost(rig: Transacting) -> None:
    """The decision may not be forgotten before, and the transaction must not lose a part."""
    producer = await rig.initialized("x")
    rig.produce("x", producer, T0, b"a", adds=True)
    rig.logs[T0].leader_id = NO_LEADER
    await rig.end("x", producer)
    await rig.commit()
    following = rig.identity("x")
    _lost_marker(rig, following, T1)  # it was sent when T0 had its marker still

    directories = {key: log.directory for key, log in rig.logs.items()}
    async with trio.open_nursery() as nursery:
        again = Transacting(rig.database, directories, nursery, ids=itertools.count(5000))
        again.logs[T0].leader_id = NO_LEADER
        await again.start()
        assert {b"lost": None} == again.fates(T1)
        with pytest.raises(ApiError) as caught:
            again.produce("x", following, T1, b"b", adds=True)
        assert "CONCURRENT_TRANSACTIONS" == code(caught)
        again.logs[T0].leader_id = LEADER
        await again.coordinator.retry_markers()
        assert ({b"a": True}, ONGOING) == (again.fates(T0), again.state("x"))
        await again.end("x", following)
        await again.commit()

        assert {b"lost": True} == again.fates(T1)


async def test_a_transaction_of_no_id_hangs_and_is_reported(
    rig: Transacting, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a folder that Kafka has written."""
    _lost_marker(rig, (77, 3), T1)

    async with restarted(rig) as again:
        assert {b"lost": None} == again.fates(T1)
        lines = [each.getMessage() for each in caplog.records]
        [line] = [each for each in lines if "producer id 77" in each]
        assert "such as t-1" in line


async def test_pending_offsets_of_no_id_are_dropped(rig: Transacting) -> None:
    rig.store.pend(77, "g", {}, Asked[int]())
    producer = await rig.initialized("x")
    rig.offsets("x", producer, "g", {T0: 5})
    await rig.commit()
    await rig.database.transaction(lambda c: c.execute("DELETE FROM transactional_id"))

    async with restarted(rig) as again:
        assert {T0} == again.unstable("g")
        await again.commit()
        assert set() == again.unstable("g")


async def test_a_topic_that_was_deleted_before_the_restart_is_not_in_the_transaction(
    rig: Transacting,
) -> None:
    producer = await rig.initialized("x")
    rig.add("x", producer, T0, T1)
    await rig.commit()
    del rig.logs[T1]

    async with restarted(rig) as again:
        assert [again.logs[T0]] == list(again.coordinator.transactions["x"].partitions)


async def test_the_last_epoch_survives_a_restart(rig: Transacting) -> None:
    """So a client may repeat InitProducerId to a broker that has restarted (KIP-360)."""
    producer = await rig.initialized("x")
    asked = await rig.init("x", producer)
    await rig.commit()
    following = await asked.answer()

    async with restarted(rig) as again:
        repeated = await again.init("x", producer)
        await again.commit()

        assert [following] == repeated.answers


async def test_two_protocols_at_once(rig: Transacting) -> None:
    old, new = await rig.initialized("old"), await rig.initialized("new")
    rig.add("old", old, T0)
    await rig.commit()
    rig.produce("old", old, T0, b"a", adds=False)
    rig.produce("new", new, T0, b"b", adds=True)
    await rig.end("new", new)
    await rig.commit()
    assert ({b"a": None, b"b": True}, 0) == (rig.fates(T0), rig.logs[T0].last_stable_offset)

    await rig.end("old", old, commit=False, version=TV1)
    await rig.commit()

    assert {b"a": False, b"b": True} == rig.fates(T0)
    assert 4 == rig.logs[T0].last_stable_offset
