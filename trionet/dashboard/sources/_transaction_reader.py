"""Reads transactions over the Kafka protocol, and finds those that hang (KIP-664).

A transaction hangs if it has lasted five minutes longer than its timeout, after which its
coordinator should have aborted it, or if a partition has open records of a producer whose
coordinator does not know of them. Consumers with ``read_committed`` cannot read beyond it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import trio

from ...client._topic_partition import TopicPartition
from ...client.admin._calls import Calls
from ...client.admin._transactions import (
    ProducerState,
    TransactionCalls,
    TransactionDescription,
    TransactionListing,
)
from ...errors import UnsupportedVersionError
from ..model._model import Model
from ..model._rows import PartitionRow, TransactionPartitionRow, TransactionRow
from ._source import Pace
from ._topic_reader import Key

#: The maximum number of transactional ids per request.
IDS_PER_REQUEST: Final = 100
#: The maximum number of transactional ids that are described although nothing of them is open.
IDLE_DESCRIBED_MAX: Final = 200
#: The maximum number of partitions per request.
PARTITIONS_PER_REQUEST: Final = 500
#: How long after its timeout a transaction hangs, in ms (Kafka: LATE_TRANSACTION_BUFFER_MS).
LATE_AFTER_MS: Final = 5 * 60 * 1000
#: The states in which a transaction is open.
OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")

OpenTransactions = dict[int, dict[Key, ProducerState]]
"""The producers with an open transaction in a partition, by producer id."""


class TransactionReader:
    """Reads transactions, and updates them in a model.

    Args:
        model: the model to update.
        partitions: returns all known partitions.
    """

    def __init__(self, model: Model, partitions: Callable[[], Iterable[PartitionRow]]) -> None:
        self._model = model
        self._partitions = partitions

    async def read(self, calls: Calls, pace: Pace) -> None:
        """Read all transactional ids, and the transactions that are open in partitions.

        Raises:
            UnsupportedVersionError: the brokers are older than Kafka 3.0.
            TrionetError: a broker could not be reached.
        """
        transactions = TransactionCalls(calls)
        # Before the ids, so that a transaction that begins meanwhile does not seem to have none.
        opened = await self._read_open(transactions, pace)
        listed = await transactions.list()
        ids = _to_describe(listed.values(), opened)
        described: dict[str, TransactionDescription] = {}
        for first in range(0, len(ids), IDS_PER_REQUEST):
            if not pace.is_needed():
                return
            pace.begin()
            results = await transactions.describe(ids[first : first + IDS_PER_REQUEST])
            described |= {
                id: each for id, each in results.items() if isinstance(each, TransactionDescription)
            }
            await pace.rest()
        now_ms = time.time_ns() // 1_000_000
        known = {each.producer_id for each in listed.values()}
        rows = [
            _row(each, described.get(id), opened.get(each.producer_id, {}), now_ms)
            for id, each in listed.items()
        ]
        rows += [
            _unknown_row(producer_id, found, now_ms)
            for producer_id, found in opened.items()
            if producer_id not in known
        ]
        by_key = {(row.id, row.producer_id): row for row in rows}
        self._model.transactions.replace(by_key, trio.current_time())

    async def _read_open(self, transactions: TransactionCalls, pace: Pace) -> OpenTransactions:
        found: OpenTransactions = {}
        keys = [
            TopicPartition(row.topic, row.number) for row in self._partitions() if row.leader >= 0
        ]
        await trio.lowlevel.checkpoint()
        for first in range(0, len(keys), PARTITIONS_PER_REQUEST):
            if not pace.is_needed():
                break
            pace.begin()
            part = keys[first : first + PARTITIONS_PER_REQUEST]
            try:
                results = await transactions.describe_producers(part)
            except UnsupportedVersionError:
                break  # older than Kafka 2.8: what hangs without an id stays unknown
            for key, producers in results.items():
                for each in producers if isinstance(producers, list) else ():
                    if each.transaction_start_offset is not None:
                        found.setdefault(each.producer_id, {})[key.topic, key.partition] = each
            await pace.rest()
        return found


def _to_describe(listed: Iterable[TransactionListing], opened: OpenTransactions) -> list[str]:
    """Return the ids of open transactions, followed by some others."""
    first: list[str] = []
    idle: list[str] = []
    for each in listed:
        is_open = each.state in OPEN_STATES or each.producer_id in opened
        (first if is_open else idle).append(each.transactional_id)
    return first + idle[:IDLE_DESCRIBED_MAX]


def _row(
    listed: TransactionListing,
    described: TransactionDescription | None,
    opened: Mapping[Key, ProducerState],
    now_ms: int,
) -> TransactionRow:
    if described is None:
        return TransactionRow(listed.transactional_id, listed.producer_id, listed.state)
    keys = {(each.topic, each.partition) for each in described.partitions}
    started_ms = described.started_ms if described.state in OPEN_STATES else None
    late_ms = described.timeout_ms + LATE_AFTER_MS
    lost = [
        f"{topic}-{number}"
        for (topic, number), each in sorted(opened.items())
        if (topic, number) not in keys and now_ms - each.last_timestamp > late_ms
    ]
    why = None
    if started_ms is not None and now_ms - started_ms > late_ms:
        why = "exceeds its timeout"
    elif lost:
        why = f"not in {', '.join(lost)}"
    return TransactionRow(
        listed.transactional_id,
        listed.producer_id,
        described.state,
        described.producer_epoch,
        None if started_ms is None else max(0, now_ms - started_ms) / 1000,
        described.timeout_ms / 1000,
        described.coordinator.id,
        why,
        _partition_rows(keys | opened.keys(), opened, now_ms),
    )


def _unknown_row(
    producer_id: int, opened: Mapping[Key, ProducerState], now_ms: int
) -> TransactionRow:
    """Return the row of an open transaction that belongs to no transactional id."""
    last_ms = max(each.last_timestamp for each in opened.values())
    return TransactionRow(
        "",
        producer_id,
        "Ongoing",
        max(each.producer_epoch for each in opened.values()),
        max(0, now_ms - last_ms) / 1000,
        hangs="no transactional id",
        partitions=_partition_rows(opened, opened, now_ms),
    )


def _partition_rows(
    keys: Iterable[Key], opened: Mapping[Key, ProducerState], now_ms: int
) -> tuple[TransactionPartitionRow, ...]:
    rows = []
    for key in sorted(keys):
        producer = opened.get(key)
        if producer is None:
            rows.append(TransactionPartitionRow(*key))
            continue
        idle_seconds = max(0, now_ms - producer.last_timestamp) / 1000
        rows.append(TransactionPartitionRow(*key, producer.transaction_start_offset, idle_seconds))
    return tuple(rows)
