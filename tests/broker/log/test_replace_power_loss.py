"""Whatever a power cut leaves of a replacement of segments: the old ones are whole, or the new."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from support.cleaned import replace
from support.crash import Recorder, Tree, power_cut, recording, write_tree
from support.log_agreement import check_agreement
from support.logs import batch, headers
from trionet.broker.log import FolderDirectory, Log, LogConfig, LogFolder, open_log_folder
from trionet.protocol.records._batch import BatchHeader

NOW = 5_000
TOPIC_ID = bytes(range(16))
KEY = ("orders", 0)
SIZE = len(batch(producer=(1, 0, 0)))
COMPACTED = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, cleanup_policy="compact")
DELETED = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0)
#: Where two groups of segments end; what comes later is not cleaned.
FIRST_END, SECOND_END, END = 6, 12, 15


def is_kept(header: BatchHeader) -> bool:
    """Markers stay, the first of two aborted transactions, and some of the other records."""
    return header.is_control or header.producer_id == 8 or header.base_offset in (0, 6, 8, 12)


#: The producer of each offset; where a transaction is aborted, minus its producer.
PRODUCERS = [7, 7, 7, 8, 8, -8, 7, 7, 7, 9, 9, -9, 7, 7, 7]


async def fill(log: Log) -> None:
    sequences = {7: 0, 8: 0, 9: 0}
    for offset, producer_id in enumerate(PRODUCERS):
        if producer_id < 0:
            log.append_marker(
                -producer_id,
                0,
                is_commit=False,
                coordinator_epoch=1,
                transaction_version=1,
                now_ms=NOW,
            )
            continue
        sequence = sequences[producer_id]
        sequences[producer_id] += 1
        is_transactional = producer_id != 7
        data = batch(
            timestamp=1000 + offset,
            producer=(producer_id, 0, sequence),
            transactional=is_transactional,
        )
        log.append(data, NOW, 1 if is_transactional else -1)
    await log.flush()


async def run(root: Path, note: Callable[[object], None]) -> None:
    """Fill a log, and replace two groups of its segments."""
    async with open_log_folder(FolderDirectory(root), node_id=1) as folder:
        await folder.open_all(lambda _: COMPACTED, NOW, topic_id_for=lambda _: TOPIC_ID)
        log = await folder.create(*KEY, TOPIC_ID, COMPACTED, NOW)
        await fill(log)
        await folder.write_checkpoints()
        note("begun")
        for end_offset in (FIRST_END, SECOND_END):
            group = [
                each
                for each in log.old_segments
                if end_offset - 6 <= each.base_offset and each.end_offset <= end_offset
            ]
            assert await replace(log, group, is_kept)
            note(end_offset)
        await folder.set_first_dirty(log, SECOND_END)
        folder._is_open = False  # as if the process were killed now


def recorded(root: Path) -> tuple[Recorder, int]:
    """All operations, and how many of them are from before the first replacement."""
    marks: list[int] = []
    root.mkdir()
    with recording(root) as recorder:
        trio.run(run, root, lambda _: marks.append(len(recorder.operations)))
    return recorder, marks[0]


def check(log: Log) -> None:
    """Each group is as it was or as it is to be; the rest is as it was."""
    found = [each for each in headers(log) if each.count]
    for first, end_offset in ((0, FIRST_END), (FIRST_END, SECOND_END)):
        offsets = [each.base_offset for each in found if first <= each.base_offset < end_offset]
        whole = list(range(first, end_offset))
        assert offsets in (whole, [0, 3, 4, 5] if first == 0 else [6, 8, 11])
    assert [each.base_offset for each in found if each.base_offset >= SECOND_END] == [12, 13, 14]
    is_second_there = any(each.base_offset == 9 for each in found)
    expected = [(8, 3), (9, 9)] if is_second_there else [(8, 3)]
    assert log.aborted_transactions(0, END) == expected
    assert log.end_offset == END
    check_agreement(log)


async def check_life(root: Path, config: LogConfig) -> None:
    """The log opens without a loss, goes on, and opens again."""
    for _ in range(2):
        async with open_log_folder(FolderDirectory(root), node_id=1) as folder:
            await reopen(folder, config)
            log = folder.logs[KEY]
            check(log)
            left = [each.name for each in (root / "orders-0").iterdir()]
            assert not [each for each in left if each.endswith((".swap", ".cleaned", ".tmp"))]
            sequence = PRODUCERS.count(7) - 1
            duplicate = batch(timestamp=1000 + END - 1, producer=(7, 0, sequence))
            assert not log.append(duplicate, NOW).size


async def reopen(folder: LogFolder, config: LogConfig) -> None:
    await folder.open_all(
        lambda _: config,
        NOW,
        topic_id_for=lambda _: TOPIC_ID,
        expected=[KEY],
        loss_allowed=False,
    )


def check_cut(root: Path, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    write_tree(root, tree)
    # The policy may have changed since: what was cleaned stays right.
    trio.run(check_life, root, DELETED)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_each_step_survives_a_power_cut(quick_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder, begun = recorded(quick_disk / "life")
    rng = random.Random(1)
    for until in range(begun, len(recorder.operations) + 1):
        check_cut(quick_disk / str(until), power_cut(recorder, until, rng), caplog)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(40))
def test_each_step_survives_any_power_cut(
    seed: int, quick_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, begun = recorded(quick_disk / "life")
    rng = random.Random(seed)
    for until in range(begun, len(recorder.operations) + 1):
        check_cut(quick_disk / str(until), power_cut(recorder, until, rng), caplog)
