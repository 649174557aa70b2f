"""Batches of records for what the command line writes."""

from __future__ import annotations

from collections.abc import Sequence

from trionet.client.consumer.records._record import ConsumerBatch

Row = tuple[bytes | None, bytes | None]
Headers = Sequence[tuple[str, bytes | None]]


def batch_of(
    rows: Sequence[Row],
    *,
    topic: str = "orders",
    partition: int = 3,
    first: int = 10,
    timestamp: int = 1_714_550_400_123,
    headers: Sequence[Headers] | None = None,
    timestamp_type: int = 0,
    broker_id: int = -1,
) -> ConsumerBatch:
    """Records of keys and values, with offsets from ``first`` on."""
    return ConsumerBatch(
        topic=topic,
        partition=partition,
        offsets=range(first, first + len(rows)),
        timestamps=[timestamp] * len(rows),
        keys=[key for key, _ in rows],
        values=[value for _, value in rows],
        headers=[()] * len(rows) if headers is None else headers,
        timestamp_type=timestamp_type,
        leader_epoch=7,
        broker_id=broker_id,
    )
