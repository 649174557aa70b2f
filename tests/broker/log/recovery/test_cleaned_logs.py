"""Gaps that compaction has left are no damage, whatever the topic's policy has become since."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from support.cleaned import replace
from support.logs import batch, headers, placed
from trionet.broker.log import FolderDirectory, Log, LogConfig, LogFolder, open_log_folder
from trionet.broker.log.files._checkpoint_files import (
    CLEANER_OFFSET_FILE,
    EXTENT_FILE,
    RECOVERY_POINT_FILE,
    START_OFFSET_FILE,
    decode_extents,
    decode_offsets,
    encode_extents,
    encode_offsets,
    extent_line,
)

NOW = 5_000
SIZE = len(batch())
KEY = ("orders", 0)
TOPIC_ID = bytes(range(16))
COMPACTED = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, cleanup_policy="compact")
DELETED = attrs.evolve(COMPACTED, cleanup_policy="delete")
#: Of eleven records in segments of three, of which all but the last two have been cleaned.
LEFT = [0, 2, 4, 6, 8, 9, 10]


@pytest.fixture
def folder(quick_disk: Path) -> FolderDirectory:
    return FolderDirectory(quick_disk / "data")


@asynccontextmanager
async def opened(folder: FolderDirectory, config: LogConfig) -> AsyncIterator[LogFolder]:
    async with open_log_folder(folder, node_id=1) as logs:
        await logs.open_all(
            lambda _: config,
            NOW,
            topic_id_for=lambda _: TOPIC_ID,
            expected=[KEY],
            loss_allowed=False,
        )
        yield logs


def kill(logs: LogFolder) -> None:
    """As if the process were killed now: nothing is written at the end of the block."""
    logs._is_open = False


async def cleaned(folder: FolderDirectory, *, is_clean: bool = False) -> Path:
    """A log that was cleaned up to 9, one group after the other; returns the data directory."""
    async with open_log_folder(folder, node_id=1) as logs:
        await logs.open_all(lambda _: COMPACTED, NOW)
        log = await logs.create(*KEY, TOPIC_ID, COMPACTED, NOW)
        for number in range(11):
            log.append(batch(timestamp=1000 + number), NOW)
        await log.flush()
        await logs.write_checkpoints()
        assert await replace(log, log.old_segments[:2])
        assert await replace(log, log.old_segments[1:])
        await logs.set_first_dirty(log, 9)
        if not is_clean:
            kill(logs)
    assert folder.path is not None
    return Path(folder.path)


def records(log: Log) -> list[int]:
    """The offsets that a consumer gets."""
    return [header.base_offset for header in headers(log) if header.count]


def nothing(data: Path) -> None:
    """All files are as they were left."""


def lost(name: str) -> Callable[[Path], None]:
    return lambda data: (data / name).unlink()


def old_recovery_point(data: Path) -> None:
    """Of before the cleaning: all segments are scanned."""
    extent = decode_extents((data / EXTENT_FILE).read_bytes())[KEY]
    old = attrs.evolve(extent, end_offset=0, base_offset=0, position=0, bytes_before=0)
    (data / EXTENT_FILE).write_bytes(encode_extents([extent_line(KEY, old)]))


def old_recovery_point_of_kafka(data: Path) -> None:
    (data / EXTENT_FILE).unlink()
    (data / RECOVERY_POINT_FILE).write_bytes(encode_offsets({KEY: 4}))


FILES = [EXTENT_FILE, RECOVERY_POINT_FILE, START_OFFSET_FILE, CLEANER_OFFSET_FILE]
CHANGES = [
    nothing,
    *(pytest.param(lost(name), id=f"lost-{name}") for name in FILES),
    old_recovery_point,
    old_recovery_point_of_kafka,
]


def losses(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log lines say of records that are missing or cut off."""
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    return [each for each in lines if "records" in each and EXTENT_FILE not in each]


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("policy", [COMPACTED, DELETED], ids=["compact", "delete"])
@pytest.mark.parametrize("change", CHANGES)
async def test_nothing_is_cut_and_no_loss_is_reported(
    folder: FolderDirectory,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Path], None],
    policy: LogConfig,
    is_clean: bool,
) -> None:
    data = await cleaned(folder, is_clean=is_clean)
    change(data)
    for _ in range(2):
        async with opened(folder, policy) as logs:
            log = logs.logs[KEY]

            assert records(log) == LEFT
            assert (9, 11) == (log.cleaned_to, log.end_offset)
            kill(logs)
    assert not losses(caplog)


async def test_without_any_record_of_it_the_policy_says_whether_a_gap_is_damage(
    folder: FolderDirectory,
) -> None:
    data = await cleaned(folder)
    (data / CLEANER_OFFSET_FILE).unlink()
    old_recovery_point_of_kafka(data)
    async with opened(folder, COMPACTED) as logs:
        assert records(logs.logs[KEY]) == LEFT
        # From now on it is known.
        assert 9 == logs.logs[KEY].cleaned_to
        kill(logs)
    async with opened(folder, DELETED) as logs:
        assert records(logs.logs[KEY]) == LEFT


async def test_gap_in_a_log_that_is_newer_than_the_last_checkpoint_is_damage(
    folder: FolderDirectory,
) -> None:
    """Such a log was never cleaned: a power failure has taken the end of its first segment."""
    async with open_log_folder(folder, node_id=1) as logs:
        await logs.open_all(lambda _: COMPACTED, NOW)
        log = await logs.create(*KEY, TOPIC_ID, COMPACTED, NOW)
        for _ in range(5):
            log.append(batch(), NOW)
        kill(logs)
    folder.folder("orders-0").truncate(f"{0:020}.log", 2 * SIZE)
    async with opened(folder, COMPACTED) as logs:
        log = logs.logs[KEY]

        assert (2, [0, 1]) == (log.end_offset, records(log))


async def test_gap_above_what_was_cleaned_is_damage(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    data = await cleaned(folder)
    with (data / "orders-0" / f"{9:020}.log").open("ab") as file:
        file.write(b"".join(placed([batch()], 13)))
    async with opened(folder, COMPACTED) as logs:
        log = logs.logs[KEY]

        assert 11 == log.end_offset
        assert "offset 13, expected 11" in caplog.text


async def test_cleaned_segment_that_is_gone_is_reported(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    """Cleaned segments leave no gap between them: each ends where the next begins."""
    data = await cleaned(folder)
    (data / "orders-0" / f"{6:020}.log").unlink()
    async with open_log_folder(folder, node_id=1) as logs:
        await logs.open_all(lambda _: COMPACTED, NOW, topic_id_for=lambda _: TOPIC_ID)

        assert "orders-0: 3 records are missing, offsets 6 to 8" in caplog.text
        assert [0, 2, 4, 9, 10] == records(logs.logs[KEY])


async def test_gaps_between_segments_that_kafka_has_cleaned_are_no_loss(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    data = await cleaned(folder)
    (data / "orders-0" / f"{6:020}.log").unlink()
    (data / EXTENT_FILE).unlink()
    async with opened(folder, DELETED) as logs:
        assert [0, 2, 4, 9, 10] == records(logs.logs[KEY])
    assert not losses(caplog)


async def test_damage_in_a_cleaned_segment_is_a_loss_although_gaps_are_none(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    data = await cleaned(folder)
    path = data / "orders-0" / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[SIZE + 70] ^= 1  # in the second of its three batches
    path.write_bytes(content)
    extent = decode_extents((data / EXTENT_FILE).read_bytes())[KEY]
    scanned = attrs.evolve(extent, base_offset=0, position=0, bytes_before=0)
    (data / EXTENT_FILE).write_bytes(encode_extents([extent_line(KEY, scanned)]))
    async with open_log_folder(folder, node_id=1) as logs:
        await logs.open_all(lambda _: COMPACTED, NOW, topic_id_for=lambda _: TOPIC_ID)

        assert "records are missing, offsets 1 to 5" in caplog.text
        assert [0, 6, 8, 9, 10] == records(logs.logs[KEY])


# Where the cleaner goes on


async def test_first_dirty_offset_is_stored_as_kafka_stores_it(folder: FolderDirectory) -> None:
    data = await cleaned(folder)

    assert b"0\n1\norders 0 9\n" == (data / CLEANER_OFFSET_FILE).read_bytes()
    async with opened(folder, COMPACTED) as logs:
        assert {KEY: 9} == logs.first_dirty_offsets


async def test_first_dirty_offset_of_a_deleted_topic_is_dropped(folder: FolderDirectory) -> None:
    data = await cleaned(folder)
    async with trio.open_nursery() as nursery, opened(folder, COMPACTED) as logs:
        deleted = logs.logs[KEY]
        await logs.delete(*KEY, nursery)
        assert {} == logs.first_dirty_offsets
        await logs.set_first_dirty(deleted, 9)
        await logs.write_checkpoints()
        assert {} == decode_offsets((data / CLEANER_OFFSET_FILE).read_bytes())
        await logs.create(*KEY, TOPIC_ID, COMPACTED, NOW)
        assert {} == logs.first_dirty_offsets
        await logs.set_first_dirty(deleted, 9)
        assert {} == logs.first_dirty_offsets


async def test_topic_made_again_has_no_first_dirty_offset_even_after_a_crash(
    folder: FolderDirectory,
) -> None:
    data = await cleaned(folder)
    async with trio.open_nursery() as nursery, opened(folder, COMPACTED) as logs:
        await logs.delete(*KEY, nursery)
        await logs.create(*KEY, TOPIC_ID, COMPACTED, NOW)
        kill(logs)

    assert {} == decode_offsets((data / CLEANER_OFFSET_FILE).read_bytes())


async def test_first_dirty_offset_beyond_the_log_is_dropped(folder: FolderDirectory) -> None:
    data = await cleaned(folder)
    (data / CLEANER_OFFSET_FILE).write_bytes(encode_offsets({KEY: 12, ("gone", 3): 4}))
    async with opened(folder, COMPACTED) as logs:
        assert {} == logs.first_dirty_offsets
    assert {} == decode_offsets((data / CLEANER_OFFSET_FILE).read_bytes())
