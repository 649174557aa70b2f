"""A folder with one partition, orders-0, of small segments, for tests of what it may lack."""

from __future__ import annotations

import uuid

from support.logs import batch
from trionet.broker.log import LogConfig, LogFolder

NOW, ONE = 5_000, batch(4)
SIZE = len(ONE)
TOPIC_ID = uuid.uuid4().bytes
#: Two batches each: 0, 8, 16, 24, 32, of which the last has one.
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=0)


async def open_all(folder: LogFolder, *, loss_allowed: bool = True) -> None:
    await folder.open_all(
        lambda _: CONFIG,
        NOW,
        topic_id_for=lambda _: TOPIC_ID,
        expected=[("orders", 0)],
        loss_allowed=loss_allowed,
    )
