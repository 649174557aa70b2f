"""Whatever producers, coordinators and restarts do: readers see what was committed, and only that.

The model knows of each record whether its transaction is open, committed or aborted.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.log_agreement import check_agreement
from support.logs import batch
from support.transactions import NOW, committed, end, send
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
)

pytestmark = [pytest.mark.slow]

PRODUCERS = st.integers(1, 4)


class LogWithTransactions(RuleBasedStateMachine):
    """A log, and what became of each record that was sent to it."""

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None
        #: Value and transaction by offset; None without a transaction.
        self._records: dict[int, tuple[bytes, list[int] | None]] = {}
        #: The open transactions: the offsets of their records, by producer.
        self._open: dict[int, list[int]] = {}
        self._aborted: list[list[int]] = []
        self._stable_before = 0
        self._count = 0

    @initialize(
        on_disk=st.booleans(),
        segment_bytes=st.sampled_from([200, 500, 1_000_000]),
        index_interval_bytes=st.sampled_from([0, 4096]),
        is_synced=st.booleans(),
    )
    def open(
        self, on_disk: bool, segment_bytes: int, index_interval_bytes: int, is_synced: bool
    ) -> None:
        config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            flush_messages=1 if is_synced else 2**63 - 1,
        )
        directory: Directory = MemoryDirectory(is_virtual=True)
        if on_disk:
            memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
            self._folder = Path(tempfile.mkdtemp(prefix="trionet-transactions-", dir=memory))
            directory = FolderDirectory(self._folder)
        self.log = Log(directory, config, now_ms=NOW)

    def teardown(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def _value(self) -> bytes:
        self._count += 1
        return b"%d" % self._count

    @rule(count=st.integers(1, 3))
    def append(self, count: int) -> None:
        value = self._value()
        first = self.log.append(batch(count, value), NOW).first_offset
        self._records.update(dict.fromkeys(range(first, first + count), (value, None)))

    @rule(producer_id=PRODUCERS, count=st.integers(1, 3), version=st.integers(1, 2))
    def append_in_a_transaction(self, producer_id: int, count: int, version: int) -> None:
        value = self._value()
        first = send(self.log, producer_id, value, count=count, version=version).first_offset
        offsets = self._open.setdefault(producer_id, [])
        offsets += range(first, first + count)
        self._records.update(dict.fromkeys(offsets[-count:], (value, offsets)))

    @rule(producer_id=PRODUCERS, is_commit=st.booleans(), version=st.integers(1, 2))
    def end_transaction(self, producer_id: int, is_commit: bool, version: int) -> None:
        end(self.log, producer_id, is_commit=is_commit, version=version)
        offsets = self._open.pop(producer_id, None)
        if offsets is not None and not is_commit:
            self._aborted.append(offsets)

    @rule()
    def flush(self) -> None:
        trio.run(self.log.flush)

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        log = self.log
        offset = log.start_offset + int((log.high_watermark - log.start_offset) * part)
        trio.run(log.delete_before, offset)
        self._records = {key: each for key, each in self._records.items() if key >= offset}

    @rule(was_clean=st.booleans())
    def restart(self, was_clean: bool) -> None:
        log = self.log
        if was_clean:
            trio.run(log.close)
        is_durable = log.directory.is_durable
        last_shutdown = LastShutdown(
            was_clean=was_clean,
            recovery_point=log.stored_recovery_point if is_durable else 0,
            start_offset=log.start_offset,
            extent=log.extent if is_durable else None,
        )
        before = dict(log.open_transactions), log.coordinator_epoch
        self.log = Log(log.directory, log.config, now_ms=NOW, last_shutdown=last_shutdown)

        if not was_clean and not is_durable:
            # Nothing in memory says that a transaction was open whose records are all deleted.
            for producer_id, offsets in list(self._open.items()):
                if offsets[-1] < log.start_offset and (
                    producer_id not in self.log.open_transactions
                ):
                    del self._open[producer_id], before[0][producer_id]
        assert before[0] == self.log.open_transactions
        if self.log.start_offset == 0:
            assert before[1] == self.log.coordinator_epoch

    @invariant()
    def last_stable_offset_is_that_of_the_oldest_open_transaction(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        first_offsets = [offsets[0] for offsets in self._open.values()]
        limit = max(log.start_offset, min([log.high_watermark, *first_offsets]))
        if log.high_watermark == log.end_offset:
            assert limit == log.last_stable_offset
        assert log.last_stable_offset <= limit
        assert self._stable_before <= log.last_stable_offset
        self._stable_before = log.last_stable_offset

    @invariant()
    def committed_records_are_read_and_no_others(self) -> None:
        if not hasattr(self, "log"):
            return
        limit = self.log.last_stable_offset
        expected = [
            (offset, value)
            for offset, (value, transaction) in sorted(self._records.items())
            if offset < limit and not any(transaction is each for each in self._aborted)
        ]

        assert expected == committed(self.log)
        assert expected == committed(self.log, 100)
        check_agreement(self.log)


TestLogWithTransactions = LogWithTransactions.TestCase
TestLogWithTransactions.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
