"""One log and its lives: what is done to it, and how each life ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable

import trio

from log_lives.checks import check_all, check_producers, known_of, lost_batches
from log_lives.model import DUPLICATE, OUT_OF_ORDER, STORED, Model, Stored
from sim.disk import SimDirectory, SimDisk
from support.ledger import Violation
from trionet.broker.log import Log, LogConfig, LogFolder
from trionet.broker.log.compaction._cleaner import LogCleaner
from trionet.broker.log.compaction._cleaner_config import CleanerConfig
from trionet.broker.log.files._checkpoint_files import identify
from trionet.errors import ApiError, TrionetError
from trionet.protocol.error_codes import OUT_OF_ORDER_SEQUENCE_NUMBER
from trionet.protocol.records._records import encode_batch

TOPIC, TOPIC_ID = "t", b"\1" * 16
IDEMPOTENT = (1, 2, 3)
#: With the version of its transactions.
TRANSACTIONAL = {11: 1, 12: 2, 13: 2}
KEYS = [b"a", b"b", b"c"]
EXPIRATION_MS, RETENTION_MS = 2_000, 1_000
#: Changes of the disk before a kill in the middle of something.
CHANGES_MAX = 25
#: Steps between two looks at everything.
STEPS_PER_CHECK = 8

SUDDEN = (trio.Cancelled, AssertionError, Violation)


class Life:
    """A log, its disk and its producers.

    Args:
        seed: of everything.

    Attributes:
        counts: what has happened, and how often.
    """

    def __init__(self, seed: int) -> None:
        self._rng = rng = random.Random(f"log {seed}")
        self.counts: Counter[str] = Counter()
        self._disk = SimDisk(seed)
        policy = rng.choice(["delete", "delete", "compact,delete"])
        self._config = LogConfig(
            segment_bytes=rng.choice([250, 600, 100_000]),
            index_interval_bytes=rng.choice([0, 200, 4096]),
            flush_messages=rng.choice([1, 2**63 - 1]),
            retention_ms=RETENTION_MS,
            cleanup_policy=policy,
            producer_id_expiration_ms=EXPIRATION_MS,
            delete_retention_ms=rng.choice([0, 500]),
        )
        self.model = Model(EXPIRATION_MS)
        # The epoch and the next sequence number of each producer, by itself.
        self._clients: dict[int, tuple[int, int]] = {}
        self._now_ms = 1_000_000
        self._values = 0
        self._saved_start = 0
        # The end of what was flushed, and whether the last end left what was not.
        self._flushed, self._had_power = 0, True
        # The greatest offset of a snapshot that was damaged, or for which there was no room.
        self._damaged_offset = -1
        # All snapshots of which a removal can be undone.
        self._snapshots: dict[str, bytes] = {}

    async def run(self, steps: int) -> None:
        """Do so many things, and look at what is left.

        Raises:
            Violation: a rule does not hold.
        """
        await self._start()
        for number in range(steps):
            self._now_ms += self._rng.choice([0, 1, 10, 50, 300])
            await self._choose()()
            self._note_flushed()
            check_producers(self._log, self.model)
            if number % STEPS_PER_CHECK == 0:
                check_all(self._log, self.model)
        await self._stop()

    def close(self) -> None:
        self._disk.close()

    def _choose(self) -> Callable[[], Awaitable[None]]:
        often: list[Callable[[], Awaitable[None]]] = [
            self._append,
            self._send,
            self._send,
            self._send_in_transaction,
            self._send_in_transaction,
            self._end_transaction,
            self._repeat,
            self._delete,
        ]
        seldom = [
            self._roll,
            self._expire,
            self._flush,
            self._checkpoint,
            self._retain,
            self._stop,
            self._kill,
            self._cut_power,
            self._delete_all_and_kill,
        ]
        if self._config.is_compacted:
            seldom.append(self._compact)
        return self._rng.choice(often if self._rng.random() < 0.6 else seldom)

    # Appending

    async def _append(self) -> None:
        await self._store(self._batch(), -1)

    async def _send(self) -> None:
        producer_id = self._rng.choice(IDEMPOTENT)
        epoch, sequence = self._clients.get(producer_id, (0, 0))
        if self._rng.random() < 0.1:
            epoch, sequence = epoch + 1, 0
        await self._store(self._batch(producer_id, epoch, sequence), -1)

    async def _send_in_transaction(self) -> None:
        producer_id, version = self._rng.choice(list(TRANSACTIONAL.items()))
        epoch, sequence = self._clients.get(producer_id, (0, 0))
        if version >= 2 and sequence and producer_id not in self.model.producers:
            epoch, sequence = epoch + 1, 0
        await self._store(self._batch(producer_id, epoch, sequence, True), version)

    async def _repeat(self) -> None:
        """Send again what is known, or was, or something out of order."""
        known = [
            (producer_id, each)
            for producer_id, each in self.model.producers.items()
            if each.batches and (producer_id in IDEMPOTENT or each.first_offset >= 0)
        ]
        if not known:
            return
        producer_id, producer = self._rng.choice(known)
        sent = self._rng.choice(producer.batches)
        if self._rng.random() < 0.4:  # perhaps one that is too old to be known
            stored = self.model.stored_by(producer_id, producer.epoch, sent.last_offset + 1)
            sent = self._rng.choice([each for each in stored if each not in producer.before])
        sequence, count = sent.first_sequence, sent.last_sequence - sent.first_sequence + 1
        if self._rng.random() < 0.3:
            sequence, count = self._rng.choice([(sequence + 100, count), (sequence, count + 1)])
        version = TRANSACTIONAL.get(producer_id, -1)
        batch = self._batch(producer_id, producer.epoch, sequence, version > 0, count=count)
        await self._store(batch, version)

    def _batch(
        self,
        producer_id: int = -1,
        epoch: int = -1,
        sequence: int = -1,
        is_transactional: bool = False,
        count: int | None = None,
    ) -> Stored:
        records = []
        for _ in range(count or self._rng.randint(1, 3)):
            self._values += 1
            records.append((self._rng.choice(KEYS), b"%d" % self._values))
        return Stored(
            self.model.end_offset,
            self._now_ms,
            tuple(records),
            producer_id,
            epoch,
            sequence,
            is_transactional,
        )

    async def _store(self, batch: Stored, version: int) -> None:
        expected, offset = self.model.verdict(batch, version)
        found = self._sent(batch, version)
        if (expected, offset) != found:
            raise Violation(f"{found} for {batch}, not {expected, offset}")
        self.counts[expected] += 1
        if expected == STORED:
            self.model.store(batch)
            self._note_producers()
            await self._flush_if_due()

    def _sent(self, batch: Stored, version: int) -> tuple[str, int]:
        data = encode_batch(
            [(batch.timestamp, key, value, []) for key, value in batch.records],
            producer_id=batch.producer_id,
            producer_epoch=batch.epoch,
            base_sequence=batch.sequence,
            transactional=batch.is_transactional,
        )
        try:
            appended = self._log.append(data, self._now_ms, version)
        except ApiError as error:
            if error.error_code != OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise
            return OUT_OF_ORDER, -1
        return (STORED if appended.size else DUPLICATE), appended.first_offset

    async def _end_transaction(self) -> None:
        """Mostly one that is open."""
        opened = [each for each in TRANSACTIONAL if each in self._log.open_transactions]
        producer_id = self._rng.choice(opened or list(TRANSACTIONAL))
        version = TRANSACTIONAL[producer_id]
        epoch, _ = self._clients.get(producer_id, (0, 0))
        is_commit = self._rng.random() < 0.5
        marker = Stored(
            self.model.end_offset,
            self._now_ms,
            producer_id=producer_id,
            epoch=epoch + (version >= 2),
            is_commit=is_commit,
        )
        self._log.append_marker(
            producer_id,
            marker.epoch,
            is_commit=is_commit,
            coordinator_epoch=0,
            transaction_version=version,
            now_ms=self._now_ms,
        )
        self.model.store(marker)
        self._note_producers()
        await self._flush_if_due()

    async def _flush_if_due(self) -> None:
        if self._log.must_flush:
            await self._log.flush()

    def _note_producers(self) -> None:
        for producer_id, known in self.model.producers.items():
            epoch, sequence = self._clients.get(producer_id, (-1, 0))
            if not known.batches and epoch == known.epoch and sequence:
                # Its batches are forgotten, but for the epoch: it needs another.
                self._clients[producer_id] = epoch + 1, 0
            elif epoch > known.epoch:
                self._clients[producer_id] = epoch, 0
            else:
                self._clients[producer_id] = known.epoch, known.next_sequence

    # What a broker does

    async def _roll(self) -> None:
        self._log.roll(self._now_ms)

    async def _expire(self) -> None:
        self._log.expire_producers(self._now_ms)
        self.model.expire(self._now_ms)

    async def _flush(self) -> None:
        await self._do(self._log.flush)

    async def _checkpoint(self) -> None:
        await self._do(self._folder.write_checkpoints)
        self._saved_start = self.model.start_offset

    async def _delete(self) -> None:
        """Up to any offset, often to the end or to the start of a segment."""
        log, rng = self._log, self._rng
        bases = [each.base_offset for each in log._segments.all]
        offset = rng.choice(
            [log.end_offset, rng.choice(bases), rng.randint(log.start_offset, log.end_offset)]
        )
        if rng.random() < 0.3:
            return
        await self._delete_before(offset)

    async def _retain(self) -> None:
        self._now_ms += self._rng.choice([0, RETENTION_MS])
        offset = self._log.retention_due(self._now_ms)
        if offset is not None:
            await self._delete_before(offset)

    async def _delete_before(self, offset: int) -> None:
        log = self._log
        self.model.delete_before(min(offset, log.high_watermark))
        # As DeleteRecords does; retention leaves it to the next checkpoint.
        is_saved = self._rng.random() < 0.5

        async def delete() -> None:
            await log.delete_before(offset)
            if is_saved:
                await self._folder.write_start_offsets()
                self._saved_start = log.start_offset

        life, before = self._disk.life, log.start_offset
        has_failed = await self._do(delete, may_be_full=True)
        if has_failed and life is self._disk.life:
            self.model.start_offset = max(before, log.start_offset)  # there was no room for a roll

    async def _compact(self) -> None:
        cleaner = LogCleaner(self._folder, CleanerConfig(), lambda: self._now_ms, is_virtual=True)

        async def compact() -> None:
            await cleaner.compact(self._log)

        await self._do(compact)

    async def _do(self, work: Callable[[], Awaitable[None]], *, may_be_full: bool = False) -> bool:
        """Do something, in the middle of which the broker may be killed, or the disk be full.

        Returns:
            Whether it has failed.
        """
        has_failed = False
        life, rng = self._disk.life, self._rng
        if rng.random() < 0.2:
            life.changes_left = rng.randint(0, CHANGES_MAX)
        if may_be_full and rng.random() < 0.05:
            life.is_full = True
            self._damaged_offset = self._log.end_offset
        try:
            await work()
        except SUDDEN:
            raise
        except (OSError, TrionetError):
            if not life.is_over and not life.is_full:
                raise
            has_failed = True
        life.is_full = False
        if life.is_over:
            self.counts["killed in the middle"] += 1
            await self._end(with_power=rng.random() < 0.7)
        life.changes_left = None
        return has_failed

    # Ends and beginnings

    async def _delete_all_and_kill(self) -> None:
        await self._delete_before(self._log.end_offset)
        await self._end(with_power=True)

    async def _stop(self) -> None:
        life = self._disk.life
        await self._do(self._folder.aclose)
        if life is not self._disk.life:
            return  # killed, and started again
        self.counts["stopped"] += 1
        await self._end(with_power=True)

    async def _kill(self) -> None:
        self.counts["killed"] += 1
        await self._end(with_power=True)

    async def _cut_power(self) -> None:
        self.counts["power cuts"] += 1
        await self._end(with_power=False)

    async def _end(self, *, with_power: bool) -> None:
        self._note_flushed()
        self._had_power = with_power
        self._note_snapshots()
        if with_power:
            self._disk.kill()
        else:
            self._disk.cut_power()
        if self._rng.random() < 0.03:
            self._damage()
        await self._start()

    def _note_flushed(self) -> None:
        # The recovery point is never below the start of the log, wherever the last flush ended.
        if self._log.recovery_point > self._log.start_offset:
            self._flushed = self._log.recovery_point

    def _note_snapshots(self) -> None:
        directory = self._log.directory
        for name in directory.names():
            if name.endswith(".snapshot"):
                self._snapshots.setdefault(name, directory.read(name))

    def _damage(self) -> None:
        """A snapshot is lost or damaged; perhaps the disk has one again that was removed."""
        directory = self._disk.directory("")
        if f"{TOPIC}-0" not in directory.folders():
            return
        inside = directory.folder(f"{TOPIC}-0")
        snapshots = [each for each in inside.names() if each.endswith(".snapshot")]
        if not snapshots:
            return
        for name in self._rng.sample(snapshots, self._rng.randint(1, len(snapshots))):
            self._damaged_offset = max(self._damaged_offset, int(name.partition(".")[0]))
            if self._rng.random() < 0.5:
                inside.remove(name)
            else:
                inside.write(name, 3, b"\xff\xff\xff")
                inside.sync_file(name)
        first = min((each for each in inside.names() if each.endswith(".log")), default="")
        removed = sorted(each for each in self._snapshots if each < first)
        if removed and self._rng.random() < 0.5:
            name = self._rng.choice(removed)
            inside.replace(name, self._snapshots[name])
        inside.sync()

    async def _start(self) -> None:
        """Start, perhaps several times, and compare what is there with what must be."""
        while not await self._opened():
            self.counts["killed at the start"] += 1
            self._disk.kill()
        log, model = self._log, self.model
        durable_end = model.end_offset if self._had_power else self._flushed
        if log.end_offset < durable_end:
            raise Violation(f"the log ends at {log.end_offset}, before {durable_end}")
        # Where everything was deleted that was on the disk, what came next may be lost in part.
        is_lost = not self._had_power and self._flushed <= model.start_offset
        latest = log.end_offset if is_lost else model.start_offset
        if not self._saved_start <= log.start_offset <= latest:
            raise Violation(
                f"the log starts at {log.start_offset}, not at {self._saved_start} to"
                f" {model.start_offset}"
            )
        model.cut(log.end_offset, lost_batches(log, model, self._flushed) if is_lost else set())
        model.begin_at(log.end_offset)
        model.start_offset = self._saved_start = log.start_offset
        self._flushed = log.end_offset
        model.expire(self._now_ms)
        may_forget = is_lost or log.first_segment_offset <= self._damaged_offset
        check_all(log, model, may_forget=may_forget)
        if may_forget:
            self.counts["may forget"] += 1
            aborted = log.aborted_below(log.end_offset)
            model.know(known_of(log), {each.last_offset: each.first_offset for each in aborted})
        self._note_producers()

    async def _opened(self) -> bool:
        directory = self._disk.directory("")
        life = self._disk.life
        if self._rng.random() < 0.05:
            life.changes_left = self._rng.randint(0, CHANGES_MAX)
        try:
            self._folder, self._log = await opened(directory, self._config, self._now_ms)
        except OSError:
            if not life.is_over:
                raise
            return False
        life.changes_left = None
        return not life.is_over


async def opened(directory: SimDirectory, config: LogConfig, now_ms: int) -> tuple[LogFolder, Log]:
    """A folder with one log, as a broker opens it."""
    lock = directory.lock()
    identity = identify(directory, 1, None, random.Random(1))
    folder = LogFolder(directory, lock, identity, random.Random(1))
    await folder.open_all(lambda _: config, now_ms, topic_id_for=lambda _: TOPIC_ID)
    log = folder.logs.get((TOPIC, 0))
    if log is None:
        log = await folder.create(TOPIC, 0, TOPIC_ID, config, now_ms)
        await folder.sync_names()
    return folder, log
