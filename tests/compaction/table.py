"""A log and its cleaner: what a consumer makes of the log is the same before and after."""

from __future__ import annotations

import random

import attrs

from compaction.history import CONFIG, START_MS, History
from support.logs import bytes_of
from trionet.broker.log import Log, MemoryDirectory, open_log_folder
from trionet.broker.log.compaction._cleaner import LogCleaner
from trionet.broker.log.compaction._cleaner_config import CleanerConfig
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, read_marker

ROUNDS = 4
STEPS_MAX = 30
FETCH_BYTES = 2000
#: The sizes of the map, in bytes: for a few keys, and for all.
BUFFER_BYTES = (100, 100_000)

Table = dict[bytes, tuple[int, bytes]]
"""The offset and the value of the last record of each key that has a value."""


async def check_tables(rng: random.Random) -> None:
    """Play a history, and clean the log now and then.

    Args:
        rng: decides all of it.

    Raises:
        AssertionError: a cleaning has changed what a consumer of committed records makes of the
            log.
    """
    async with open_log_folder(MemoryDirectory(is_virtual=True), node_id=1) as folder:
        log = await folder.create("orders", 0, bytes(16), CONFIG, START_MS)
        history = History(rng, log)
        config = CleanerConfig(dedupe_buffer_size=rng.choice(BUFFER_BYTES))
        cleaner = LogCleaner(folder, config, lambda: history.now_ms, is_virtual=True)
        for _ in range(ROUNDS):
            history.go_on(rng.randint(5, STEPS_MAX))
            before = table(log)
            # Not while it is written, or there would be no records without a key.
            log.config = attrs.evolve(
                log.config,
                cleanup_policy="compact",
                min_cleanable_dirty_ratio=0.0,
                delete_retention_ms=rng.choice([0, 100]),
                segment_bytes=rng.choice([1000, 1_000_000]),
            )
            if rng.random() < 0.5:
                await cleaner.compact(log)
            else:
                await cleaner.sweep()
            log.config = CONFIG
            assert {} == cleaner.uncleanable
            assert before == table(log)


def table(log: Log) -> Table:
    """What a consumer of committed records makes of a log."""
    found: Table = {}
    offset = log.start_offset
    while offset < (up_to := log.last_stable_offset):
        read = log.read(offset, FETCH_BYTES, up_to=up_to)
        waiting = sorted(
            (first_offset, producer_id)
            for producer_id, first_offset in log.aborted_transactions(
                offset, min(up_to, log.end_of(read))
            )
        )
        skipped: set[int] = set()
        data = bytes_of(read)
        for at, header in iter_batches(data):
            while waiting and waiting[0][0] <= header.last_offset:
                skipped.add(waiting.pop(0)[1])
            offset = header.last_offset + 1
            records = decode_batch(data, at)
            if header.is_control:
                marker = read_marker(records[0][2], records[0][3]) if records else None
                if marker is not None and not marker.is_commit:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                for record_offset, _, key, value, _ in records:
                    if key is not None:
                        found.pop(key, None)
                    if key is not None and value is not None:
                        found[key] = record_offset, value
    return found
