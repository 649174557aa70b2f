"""What happens to a log that is cleaned now and then: a story that a random generator tells.

The log that it happens to is never cleaned itself. Before each cleaning, whoever takes part copies
the segments that are new to it, and goes on with what its own cleanings have left of the others.
"""

from __future__ import annotations

import random
import struct

import attrs
import trio

from support.compaction_model import Aborted, ModelSegment, Round, batches_in
from support.transactions import end
from trionet.broker.log import LastShutdown, Log, LogConfig
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records._types import NewRecord

START_MS = 1_700_000_000_000
EXPIRATION_MS = 3_000
KEYS = [b"", *(b"k%d" % number for number in range(6))]
IDEMPOTENT = (1, 2)
TRANSACTIONAL = (11, 12, 13)
# Larger than any log here: Kafka's first pass begins where an entry of the index leads it. A
# transaction that was aborted before that place, and in the same segment, never ends for it, so
# that it overlooks the producer's next keys; they are only kept a round longer.
INDEX_INTERVAL_BYTES = 2**30
CONFIG = LogConfig(
    index_interval_bytes=INDEX_INTERVAL_BYTES, producer_id_expiration_ms=EXPIRATION_MS
)
_ABORTED = struct.Struct(">hqqqq")


@attrs.frozen
class SourceSegment:
    """A segment of the log that is not cleaned."""

    base_offset: int
    data: bytes
    aborted: list[Aborted]

    def as_model(self) -> ModelSegment:
        return ModelSegment(self.base_offset, batches_in(self.data), self.aborted)


class History:
    """A log to which something happens.

    Args:
        rng: decides what happens.
        log: an empty one.
    """

    def __init__(self, rng: random.Random, log: Log) -> None:
        self._rng = rng
        self._values = 0
        self.now_ms = START_MS
        self.log = log

    def go_on(self, steps: int) -> None:
        """Let the next things happen."""
        for _ in range(steps):
            happening = self._rng.choice(
                [self._append] * 3
                + [self._append_in_transaction] * 3
                + [self._append_idempotently, self._end_transaction, self._roll, self._wait]
            )
            happening()

    def next_round(self, first_dirty_offset: int) -> Round | None:
        """Choose what the next cleaning is told; None if there is nothing that it may clean.

        Args:
            first_dirty_offset: where the last one has ended.
        """
        rng, log = self._rng, self.log
        log.expire_producers(self.now_ms)
        ends = [
            segment.base_offset
            for segment in log._segments.all
            if first_dirty_offset < segment.base_offset <= log.last_stable_offset
        ]
        if not ends:
            return None
        return Round(
            first_dirty_offset,
            rng.choice(ends[-2:]),
            keys_max=rng.choice([2, 3, 5, 1000, 1000, 1000]),
            delete_retention_ms=rng.choice([0, 100, 1000]),
            now_ms=self.now_ms,
            last_records={
                producer_id: (entry.batches[-1].last_offset if entry.batches else -1, entry.epoch)
                for producer_id, entry in log.producers.items()
            },
        )

    def segments(self) -> list[SourceSegment]:
        """The segments of the log as they are now; the last one is active."""
        found = []
        for segment in self.log._segments.all:
            index = segment.indexes.aborted
            entries = _ABORTED.iter_unpack(b"" if index is None else index.encode())
            aborted = [Aborted(*entry[1:]) for entry in entries]
            data = segment.file.read_at(0, segment.size)
            found.append(SourceSegment(segment.base_offset, data, aborted))
        return found

    def reopen(self) -> None:
        """Close the log, so that all its files are complete, and open it again."""
        trio.run(self.log.close)
        last = LastShutdown(was_clean=True)
        self.log = Log(self.log.directory, CONFIG, now_ms=self.now_ms, last_shutdown=last)

    def _append(self) -> None:
        data = [self._batch() for _ in range(self._rng.randint(1, 2))]
        self.log.append(b"".join(data), self.now_ms)

    def _append_idempotently(self) -> None:
        producer_id = self._rng.choice(IDEMPOTENT)
        self.log.append(self._batch(self._producer(producer_id)), self.now_ms)

    def _append_in_transaction(self) -> None:
        producer_id = self._rng.choice(TRANSACTIONAL)
        version = self._rng.randint(1, 2)
        self.log.append(self._batch(self._producer(producer_id), True), self.now_ms, version)

    def _producer(self, producer_id: int) -> tuple[int, int, int]:
        """The id, epoch and first sequence number of the producer's next batch."""
        entry = self.log.producers.get(producer_id)
        if entry is None:
            return producer_id, 0, 0
        is_new_epoch = entry.transaction_first_offset < 0 and self._rng.random() < 0.1
        epoch = entry.epoch + is_new_epoch
        return producer_id, epoch, 0 if is_new_epoch else entry.last_sequence + 1

    def _batch(
        self, producer: tuple[int, int, int] = (-1, -1, -1), is_transactional: bool = False
    ) -> bytes:
        producer_id, producer_epoch, base_sequence = producer
        return encode_batch(
            [self._record() for _ in range(self._rng.randint(1, 4))],
            codec=self._rng.choice([0, 0, 1, 2, 3, 4]),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=is_transactional,
        )

    def _record(self) -> NewRecord:
        rng = self._rng
        self._values += 1
        key = None if rng.random() < 0.05 else rng.choice(KEYS)
        value = None if rng.random() < 0.25 else b"%d" % self._values * rng.choice([0, 1, 10])
        headers = [("h", rng.choice([None, b"", b"x"]))] if rng.random() < 0.1 else []
        return self.now_ms + rng.randint(-200, 0), key, value, headers

    def _end_transaction(self) -> None:
        """Mostly of a producer that has one."""
        opened = list(self.log.open_transactions)
        producer_id = self._rng.choice(opened or TRANSACTIONAL)
        is_commit = self._rng.random() < 0.5
        version = self._rng.randint(1, 2)
        end(self.log, producer_id, is_commit=is_commit, version=version, now_ms=self.now_ms)

    def _roll(self) -> None:
        self.log.roll(self.now_ms)
        is_stamped = self._rng.random() < 0.2
        kind = "LogAppendTime" if is_stamped else "CreateTime"
        self.log.config = attrs.evolve(CONFIG, message_timestamp_type=kind)

    def _wait(self) -> None:
        self.now_ms += self._rng.choice([1, 100, 1000, EXPIRATION_MS])
