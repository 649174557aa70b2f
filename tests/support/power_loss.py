"""A small broker's life on a disk, and what it must find again after a power cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import trio

from support.logs import batch, headers, stored
from trionet.broker.log import FolderDirectory, Log, LogConfig, LogFolder, open_log_folder
from trionet.protocol.records._batch import iter_batches

PARTITIONS = [("orders", 0), ("orders", 1), ("payments", 0)]
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200, flush_messages=1)
NOW = 5_000
TOPIC_ID = bytes(range(16))

Partition = tuple[str, int]
Promise = tuple[str, Partition, int]


class History:
    """What was appended where, and what was promised."""

    def __init__(self) -> None:
        self.appended: dict[Partition, dict[int, bytes]] = {each: {} for each in PARTITIONS}
        self.acknowledged = dict.fromkeys(PARTITIONS, 0)
        self.deleted = dict.fromkeys(PARTITIONS, 0)
        self.producers = 0

    def keep(self, promises: Iterable[Promise]) -> None:
        """Only these were made before the power failed."""
        for kind, partition, offset in promises:
            kept = self.acknowledged if kind == "acknowledged" else self.deleted
            kept[partition] = max(kept[partition], offset)

    def check(self, folder: LogFolder) -> None:
        """The logs hold what was promised, and nothing that was never appended."""
        for partition in PARTITIONS:
            log = folder.logs.get(partition)
            acknowledged = self.acknowledged[partition]
            assert log is not None or not acknowledged, f"{partition} is gone"
            if log is not None:
                if acknowledged:
                    assert log.topic_id == TOPIC_ID, f"{partition} lost its topic id"
                assert log.end_offset >= acknowledged, f"{partition} lost acknowledged records"
                if log.start_offset > self.deleted[partition]:
                    # Of what nobody was promised the beginning may be missing, too.
                    assert acknowledged <= self.deleted[partition], f"{partition} starts too late"
                    self.deleted[partition] = log.start_offset
                self._check_content(partition, log)

    def _check_content(self, partition: Partition, log: Log) -> None:
        appended = self.appended[partition]
        # What was lost may not come back later.
        for offset in [each for each in appended if each >= log.end_offset]:
            del appended[offset]
        expected = None
        content = stored(log)
        for position, header in iter_batches(content):
            data = content[position : position + header.size]
            assert appended.get(header.base_offset) == data, f"{partition}: strange batch {header}"
            assert expected is None or header.base_offset == expected, f"{partition}: gap {header}"
            expected = header.last_offset + 1
        assert expected in {None, log.end_offset}


async def run_broker(
    root: Path, rng: random.Random, history: History, note: Callable[[Promise], None]
) -> None:
    """Open the folder, check it, work in it, and stop: half of the times cleanly."""
    with trio.CancelScope() as life:
        async with open_log_folder(FolderDirectory(root), node_id=1) as folder:
            await folder.open_all(lambda _: CONFIG, NOW, topic_id_for=lambda _: TOPIC_ID)
            history.check(folder)
            for partition in PARTITIONS:
                if partition in folder.logs:
                    repeat_last(folder.logs[partition])
                else:
                    await folder.create(*partition, TOPIC_ID, CONFIG, NOW)
            await work(folder, rng, history, note)
            if rng.random() < 0.5:
                life.cancel()


def repeat_last(log: Log) -> None:
    """A producer that did not get its response sends again, and nothing is stored twice."""
    found = headers(log)
    if found:
        last, data = found[-1], stored(log)[-found[-1].size :]
        again = log.append(data, NOW)
        assert not again.size
        assert (last.base_offset, last.last_offset) == (again.first_offset, again.last_offset)


async def work(
    folder: LogFolder, rng: random.Random, history: History, note: Callable[[Promise], None]
) -> None:
    """Several producers a partition, and the broker's housekeeping."""
    async with trio.open_nursery() as nursery:
        for partition in PARTITIONS:
            for _ in range(2):
                producer = Producer(folder.logs[partition], partition, history, note)
                nursery.start_soon(producer.run, random.Random(rng.random()))
        nursery.start_soon(keep_house, folder, random.Random(rng.random()), note)


class Producer:
    """Sends batches in order, and believes what is flushed."""

    def __init__(
        self, log: Log, partition: Partition, history: History, note: Callable[[Promise], None]
    ) -> None:
        history.producers += 1
        self.log = log
        self.partition = partition
        self.history = history
        self.note = note
        self.id = history.producers

    async def run(self, rng: random.Random) -> None:
        sequence = 0
        for number in range(rng.randint(0, 12)):
            count = rng.randint(1, 4)
            value = b"%d/%d " % (self.id, number) * rng.randint(1, 40)
            self.append(batch(count, value, NOW, producer=(self.id, 0, sequence)))
            sequence += count
            if rng.random() < 0.7:
                end_offset = self.log.end_offset
                await self.log.flush(end_offset)
                self.note(("acknowledged", self.partition, end_offset))
            else:
                await trio.lowlevel.checkpoint()

    def append(self, data: bytes) -> None:
        position = self.log.end_offset
        self.log.append(data, NOW)
        ((_, header),) = iter_batches(data)
        as_stored = (
            header._replace(base_offset=position, leader_epoch=self.log.leader_epoch).pack()
            + data[61:]
        )
        self.history.appended[self.partition][position] = as_stored


async def keep_house(
    folder: LogFolder, rng: random.Random, note: Callable[[Promise], None]
) -> None:
    """Checkpoints, and now and then the oldest records go."""
    for _ in range(rng.randint(0, 4)):
        await folder.write_checkpoints()
        partition = rng.choice(PARTITIONS)
        log = folder.logs[partition]
        if rng.random() < 0.5 and log.high_watermark > log.start_offset:
            offset = rng.randint(log.start_offset, log.high_watermark)
            note(("deleted", partition, offset))
            await log.delete_before(offset)
