"""A broker's data directory with a history drawn at random, and what was acknowledged into it."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import attrs
import trio

from support.calls import batch, create_topic, produce
from support.client import Client, connect
from support.group_calls import commit, join_alone
from trionet.broker.log.files._checkpoint_files import EXTENT_FILE, decode_extents
from trionet.broker.run._broker import Broker, open_broker

Partition = tuple[str, int]

#: Never written down by itself within a round: what is promised is decided by the round.
SETTINGS = {
    "log.initial.task.delay.ms": 600_000,
    "log.flush.offset.checkpoint.interval.ms": 600_000,
    "log.index.interval.bytes": 100,
    "group.initial.rebalance.delay.ms": 0,
}
_SEGMENT_BYTES = (1000, 1500, 3000, 6000, 1_000_000)


@attrs.define
class History:
    """What a folder has to hold.

    Attributes:
        folder: it.
        was_killed: by SIGKILL; otherwise the stop was clean.
        acknowledged: values by partition and offset.
        starts: below which records were deleted.
        promised: up to where each partition is known to be on the disk.
        groups: how many consumer groups there are.
    """

    folder: Path
    was_killed: bool = False
    acknowledged: dict[Partition, dict[int, bytes]] = attrs.field(factory=dict)
    starts: dict[Partition, int] = attrs.field(factory=dict)
    promised: dict[Partition, int] = attrs.field(factory=dict)
    groups: int = 0

    def end(self, partition: Partition) -> int:
        """The offset after all that was acknowledged."""
        return max(self.acknowledged[partition], default=-1) + 1


async def make(root: Path, rng: random.Random) -> History:
    """Let brokers live in a new folder, of which the last is stopped or killed."""
    live, history = root / "live", History(root / "data")
    history.was_killed = rng.random() < 0.5
    lives = rng.choice((1, 1, 2))
    for number in range(lives):
        is_last = number == lives - 1
        async with open_broker(SETTINGS, log_dirs=str(live)) as broker:
            await _live(broker, history, rng)
            if is_last and history.was_killed:
                # The broker is idle: its files hold what SIGKILL would leave of it.
                await trio.to_thread.run_sync(shutil.copytree, live, history.folder)
    if history.was_killed:
        shutil.rmtree(live)
    else:
        live.rename(history.folder)
    (history.folder / ".lock").unlink(missing_ok=True)
    extents = decode_extents((history.folder / EXTENT_FILE).read_bytes())
    history.promised = {key: extent.end_offset for key, extent in extents.items()}
    return history


async def _live(broker: Broker, history: History, rng: random.Random) -> None:
    async with connect(broker.bootstrap_servers) as client:
        if not history.acknowledged or rng.random() < 0.3:
            await _create_topics(client, history, rng)
        await _use_groups(client, history, rng)
        for _ in range(rng.randint(1, 5)):
            await _produce(client, history, rng)
            what = rng.random()
            if what < 0.5:
                await _make_durable(broker, rng)
            if what < 0.15 or what > 0.9:
                await _delete_records(broker, history, rng)


async def _create_topics(client: Client, history: History, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 2)):
        name = f"topic{len(history.acknowledged)}"
        count = rng.randint(1, 3)
        await create_topic(
            client,
            name,
            count,
            internal_segment_bytes=rng.choice(_SEGMENT_BYTES),
            retention_ms=10**9,
        )
        for number in range(count):
            history.acknowledged[name, number] = {}


async def _use_groups(client: Client, history: History, rng: random.Random) -> None:
    """For a database that holds more than topics."""
    for _ in range(rng.randint(0, 3)):
        group = f"group{history.groups}"
        history.groups += 1
        joined = await join_alone(client, group=group)
        offsets: dict[str | bytes, dict[int, int]] = {
            topic: {0: rng.randint(0, 1000)} for topic, _ in history.acknowledged
        }
        await commit(client, offsets, group=group, joined=joined, metadata="some text")


async def _produce(client: Client, history: History, rng: random.Random) -> None:
    for topic, number in rng.sample(
        list(history.acknowledged), rng.randint(1, len(history.acknowledged))
    ):
        for _ in range(rng.randint(1, 12)):
            values = [rng.randbytes(rng.randint(1, 120)) for _ in range(rng.randint(1, 6))]
            data = batch(*values, timestamp=time.time_ns() // 1_000_000)
            answer = await produce(client, topic, data, partition=number)
            assert 0 == answer.error_code, answer
            for at, value in enumerate(values):
                history.acknowledged[topic, number][answer.base_offset + at] = value


async def _make_durable(broker: Broker, rng: random.Random) -> None:
    folder = broker._cluster.folder
    for log in rng.sample(list(folder.logs.values()), rng.randint(1, len(folder.logs))):
        await log.flush()
    await folder.write_checkpoints()


async def _delete_records(broker: Broker, history: History, rng: random.Random) -> None:
    """As DeleteRecords or retention."""
    cluster = broker._cluster
    (key, log) = rng.choice(list(cluster.folder.logs.items()))
    offset = rng.randint(log.start_offset, log.high_watermark)
    if rng.random() < 0.5:
        offset = max(
            (each.base_offset for each in log._segments.all if each.base_offset <= offset),
            default=0,
        )
    await cluster.delete_records(log, offset)
    await cluster.folder.write_start_offsets()
    history.starts[key] = log.start_offset
