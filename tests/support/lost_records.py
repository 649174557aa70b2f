"""A folder with one partition, orders-0, of small segments, for tests of what it may lack."""

from __future__ import annotations

import logging
import uuid

import pytest

from support.logs import batch, stored
from trionet.broker.log import Log, LogConfig, LogFolder
from trionet.protocol.records._batch import check_crc, iter_batches
from trionet.protocol.records._records import decode_batch

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


def name(base_offset: int) -> str:
    """Of the segment that begins there."""
    return f"{base_offset:020d}.log"


def losses(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log lines say of missing records."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.ERROR and "missing" in record.getMessage()
    ]


def readable(log: Log) -> list[int]:
    """The offsets of all records that a consumer gets, which must pass over everything else."""
    data = stored(log)
    found: list[int] = []
    for position, header in iter_batches(data):
        assert check_crc(data, position, header)
        found += [record[0] for record in decode_batch(data, position)]
    return found
