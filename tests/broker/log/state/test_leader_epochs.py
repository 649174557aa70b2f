"""Leader epochs of a log: where each began, what a consumer learns, and what a stop makes of them.

The cases of OffsetForLeaderEpoch are those of Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.logs import batch, headers
from trionet.broker.log import Directory, FolderDirectory, LastShutdown, Log, LogConfig
from trionet.broker.log.state._leader_epochs import (
    LEADER_EPOCH_FILE,
    EpochStart,
    LeaderEpochs,
    decode_epochs,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH

NOW = 5_000
CRASH = LastShutdown(was_clean=False)


def epochs(*starts: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochStart(*start) for start in starts])


def starts_of(known: LeaderEpochs) -> list[tuple[int, int]]:
    return [tuple(start) for start in known._starts]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),  # not known to the consumer
        (1, (1, 10)),  # older than all: ended where the oldest begins
        (2, (2, 20)),
        (3, (2, 20)),  # there is none: the one before
        (4, (4, 50)),
        (5, (4, 50)),
        (6, (6, 99)),  # the present one: the end of the log
        (7, (-1, -1)),  # of the future
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: tuple[int, int]) -> None:
    assert answer == epochs((2, 10), (4, 20), (6, 50)).end_of(asked, 99)


def test_of_no_epoch_nothing_is_known() -> None:
    assert (-1, -1) == LeaderEpochs().end_of(0, 99)
    assert -1 == LeaderEpochs().latest == LeaderEpochs().at(5)


def test_an_epoch_that_begins_again_or_earlier_replaces_what_it_contradicts() -> None:
    known = epochs((0, 0), (1, 10), (2, 20))
    known.assign(2, 30)
    unchanged = starts_of(known)
    known.assign(3, 20)
    without_records = starts_of(known)
    known.assign(4, 5)

    assert [(0, 0), (1, 10), (2, 20)] == unchanged
    assert [(0, 0), (1, 10), (3, 20)] == without_records
    assert [(0, 0), (4, 5)] == starts_of(known)


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (0, [(0, 5), (1, 10), (2, 20)]),
        (7, [(0, 7), (1, 10), (2, 20)]),
        (10, [(1, 10), (2, 20)]),
        (15, [(1, 15), (2, 20)]),
        (40, [(2, 40)]),
    ],
)
def test_a_log_that_starts_later_forgets_the_epochs_below(
    start_offset: int, left: list[tuple[int, int]]
) -> None:
    known = epochs((0, 5), (1, 10), (2, 20))
    known.remove_below(start_offset)

    assert left == starts_of(known)


@pytest.mark.parametrize(
    ("end_offset", "left"),
    [(20, [(0, 5), (1, 10)]), (21, [(0, 5), (1, 10), (2, 20)]), (5, [])],
)
def test_a_log_that_ends_earlier_forgets_later_epochs(
    end_offset: int, left: list[tuple[int, int]]
) -> None:
    known = epochs((0, 5), (1, 10), (2, 20))
    known.remove_from(end_offset)

    assert left == starts_of(known)


def test_the_file_is_kafka_s() -> None:
    data = b"0\n2\n0 0\n3 17\n"

    assert data == epochs((0, 0), (3, 17)).encode()
    assert [(0, 0), (3, 17)] == starts_of(decode_epochs(data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\n",
        b"1\n1\n0 0\n",
        b"0\n2\n0 0\n",
        b"0\n1\n0\n",
        b"0\n1\nx 0\n",
        b"0\n1\n-1 0\n",
        b"0\n2\n1 0\n1 5\n",
        b"0\n2\n1 5\n2 5\n",
        b"0\n1\n99999999999 0\n",
        b"0\n1\n2147483647 0\n",
        b"0\n1\n0 9223372036854775808\n",
    ],
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected|must both increase|must not exceed"):
        decode_epochs(data)


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("epoch", [2**31 - 1, 99_999_999_999])
async def test_a_log_goes_on_whose_file_speaks_of_an_impossible_epoch(
    folder: FolderDirectory, was_clean: bool, epoch: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(batch(2), NOW)
    await log.begin_epoch(1)
    log.append(batch(1), NOW)
    await log.close()
    folder.write(LEADER_EPOCH_FILE, 0, b"0\n1\n%d 0\n" % epoch)

    again = Log(
        folder, now_ms=NOW, last_shutdown=LastShutdown(was_clean=was_clean, recovery_point=3)
    )
    again.append(batch(1), NOW)
    await again.close()

    following = [(0, 0), (1, 2)] if was_clean else [(0, 0), (1, 2), (2, 3)]
    assert following == starts_of(again.epochs)
    assert f"{LEADER_EPOCH_FILE} is damaged; rebuilding it" in caplog.text


async def test_an_impossible_epoch_of_a_batch_is_not_believed(folder: FolderDirectory) -> None:
    # It lies outside the checksum, so that nothing else says what is wrong.
    name = "00000000000000000000.log"
    log = Log(folder, now_ms=NOW)
    log.append(batch(2), NOW)
    await log.flush()
    folder.write(name, 12, (2**31 - 1).to_bytes(4, "big"))
    folder.remove(LEADER_EPOCH_FILE)

    again = Log(folder, now_ms=NOW, last_shutdown=CRASH)
    again.append(batch(1), NOW)

    assert (1, [(1, 2)]) == (again.leader_epoch, starts_of(again.epochs))


async def test_records_bear_the_epoch_in_which_they_were_appended(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.append(batch(2), NOW)
    await log.begin_epoch(3)
    log.append(batch(1), NOW)

    assert [0, 3] == [header.leader_epoch for header in headers(log)]
    assert [(0, 2), (0, 2), (3, 3), (-1, -1)] == [log.end_of_epoch(epoch) for epoch in (0, 2, 3, 4)]
    with pytest.raises(ValueError, match="not greater than"):
        await log.begin_epoch(3)


async def test_epochs_survive_a_clean_stop(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(batch(2), NOW)
    await log.begin_epoch(1)
    log.append(batch(1), NOW)
    await log.close()

    again = Log(folder, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True, recovery_point=3))

    assert b"0\n2\n0 0\n1 2\n" == folder.read(LEADER_EPOCH_FILE)
    assert (1, [(0, 0), (1, 2)]) == (again.leader_epoch, starts_of(again.epochs))


async def test_an_epoch_is_on_the_disk_before_its_records_count_as_durable(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(batch(2), NOW)
    assert LEADER_EPOCH_FILE not in folder.names()
    await log.flush()

    assert b"0\n1\n0 0\n" == folder.read(LEADER_EPOCH_FILE)


async def test_after_an_unclean_stop_another_epoch_begins_at_the_end(
    folder: FolderDirectory,
) -> None:
    """The consumer that has read what the crash took learns it from the end of its epoch."""
    log = Log(folder, now_ms=NOW)
    log.append(batch(5), NOW)
    await log.flush()
    log.append(batch(5), NOW)
    # What a power cut leaves of the second batch.
    folder.truncate("00000000000000000000.log", len(batch(5)) + 30)
    log = Log(folder, now_ms=NOW, last_shutdown=CRASH)

    assert (1, 5) == (log.leader_epoch, log.end_offset)
    assert (0, 5) == log.end_of_epoch(0)
    log.append(batch(1), NOW)
    assert [0, 1] == [header.leader_epoch for header in headers(log)]


async def test_an_epoch_that_was_cut_away_is_not_used_again(folder: FolderDirectory) -> None:
    Log(folder, now_ms=NOW)
    lost = Log(folder, now_ms=NOW, last_shutdown=CRASH)
    lost.append(batch(1), NOW)
    folder.truncate("00000000000000000000.log", 0)

    assert lost.leader_epoch < Log(folder, now_ms=NOW, last_shutdown=CRASH).leader_epoch


@pytest.mark.parametrize("damage", ["missing", "torn"])
@pytest.mark.parametrize("was_clean", [True, False])
async def test_epochs_are_found_again_in_the_batches(
    folder: FolderDirectory, was_clean: bool, damage: str
) -> None:
    config = LogConfig(segment_bytes=3 * len(batch(2)))
    log = Log(folder, config, now_ms=NOW)
    for number in range(10):
        if number in (4, 8):
            await log.begin_epoch(number)
        log.append(batch(2), NOW)
    await log.close()
    if damage == "missing":
        folder.remove(LEADER_EPOCH_FILE)
    else:
        folder.truncate(LEADER_EPOCH_FILE, 7)

    again = Log(
        folder,
        config,
        now_ms=NOW,
        last_shutdown=LastShutdown(was_clean=was_clean, recovery_point=13),
    )

    expected = [(0, 0), (4, 8), (8, 16)]
    assert expected + ([] if was_clean else [(9, 20)]) == starts_of(again.epochs)


async def test_deleted_records_take_their_epochs_with_them(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.append(batch(4), NOW)
    await log.begin_epoch(1)
    log.append(batch(4), NOW)
    await log.delete_before(6)

    assert [(1, 6)] == starts_of(log.epochs)
    assert (0, 6) == log.end_of_epoch(0)


def test_a_client_with_another_epoch_learns_which_way_it_is_wrong(tmp_path: Path) -> None:
    log = Log(FolderDirectory(tmp_path), now_ms=NOW)
    log.leader_epoch = 5
    codes = []
    for epoch in (4, 6):
        with pytest.raises(ApiError) as raised:
            log.check_leader_epoch(epoch)
        codes.append(raised.value.error_code)
    log.check_leader_epoch(5)
    log.check_leader_epoch(-1)

    assert [FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH] == codes
