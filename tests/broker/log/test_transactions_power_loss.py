"""A power cut takes no decision that was on the disk, and shows no record without one."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import pytest
import trio

from support.crash import Note, power_cut, recording, write_tree
from support.log_agreement import check_agreement
from support.logs import batch
from support.transactions import NOW, committed, end, send
from trionet.broker.log import FolderDirectory, LastShutdown, Log, LogConfig
from trionet.broker.log.files._checkpoint_files import Extent

STEPS = 40


@attrs.frozen
class OnDisk:
    """What is known to be on the disk at one moment.

    Attributes:
        extent: as the checkpoint says.
        committed: what consumers have read.
    """

    extent: Extent
    committed: list[tuple[int, bytes | None]]


async def transact(log: Log, rng: random.Random, recorder_note: object) -> set[bytes]:
    """Batches and markers at random, with flushes between; returns what was to be visible."""
    assert callable(recorder_note)
    is_synced = log.config.flush_messages == 1
    visible: set[bytes] = set()
    sent: dict[int, set[bytes]] = {1: set(), 2: set(), 3: set()}
    for number in range(STEPS):
        producer_id, value = rng.choice(list(sent)), b"%d" % number
        what = rng.random()
        if what < 0.2:
            visible.add(value)
            log.append(batch(value=value), NOW)
        elif what < 0.7:
            sent[producer_id].add(value)
            send(log, producer_id, value)
        else:
            is_commit = rng.random() < 0.5
            if is_commit:
                visible |= sent[producer_id]
            sent[producer_id].clear()
            end(log, producer_id, is_commit=is_commit)
        if is_synced or rng.random() < 0.2:
            await log.flush()
            recorder_note(OnDisk(log.extent, committed(log)))
    return visible


@pytest.mark.parametrize("flush_messages", [1, 2**63 - 1])
@pytest.mark.parametrize("seed", range(30))
def test_decisions_survive_power_cuts(seed: int, flush_messages: int, quick_disk: Path) -> None:
    rng = random.Random(seed)
    config = LogConfig(segment_bytes=rng.choice([200, 500, 100_000]), flush_messages=flush_messages)
    (quick_disk / "before").mkdir()
    with recording(quick_disk / "before") as recorder:
        log = Log(
            FolderDirectory(quick_disk / "before" / "t-0"),
            config,
            now_ms=NOW,
            parent=FolderDirectory(quick_disk / "before"),
        )
        visible = trio.run(transact, log, rng, recorder.note)
    until = rng.randint(0, len(recorder.operations))
    write_tree(quick_disk / "after", power_cut(recorder, until, rng))
    known = OnDisk(Extent(bytes(16), 0, 0, 0, 0, 0, 0), [])
    for each in recorder.operations[:until]:
        if isinstance(each, Note):
            known = each.value
    last_shutdown = LastShutdown(recovery_point=known.extent.end_offset, extent=known.extent)
    again = Log(
        FolderDirectory(quick_disk / "after" / "t-0"),
        config,
        now_ms=NOW,
        last_shutdown=last_shutdown,
    )

    found = committed(again)
    assert known.committed == found[: len(known.committed)]
    assert {value for _, value in found} <= visible
    check_agreement(again)
