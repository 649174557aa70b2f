"""The snapshot section for transactions."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from ...server.metrics._snapshot_sections import Row, Section, SectionPage
from ..groups._offsets_partition import OFFSETS_TOPIC
from ..log import Log
from ..model._broker_state import BrokerState
from ..transactions._transaction import PREPARED, Transaction, TransactionState
from ._transaction_metrics import LATE_AFTER_MS, coordinated_by

_OPEN: Final = PREPARED | {TransactionState.ONGOING}


def transactions_section(state: BrokerState) -> Section:
    """Return the section of the transactional ids that a node coordinates.

    It also has the open transactions in partitions that the node leads whose producer belongs to no
    transactional id, with an empty id. Rows are numbered by their producer ids, which ascend.
    """

    def page(count_max: int, before: int | None) -> SectionPage:
        by_number: dict[int, Transaction[Log] | list[Log]] = {
            each.current.producer_id: each for each in coordinated_by(state) if each.current
        }
        by_number.update(_unknown_producers(state))
        numbers = sorted(by_number)
        end = len(numbers) if before is None else bisect_left(numbers, before)
        now = state.now_ms() / 1000
        rows: list[Row] = []
        for number in numbers[max(0, end - count_max) : end][::-1]:
            item = by_number[number]
            if isinstance(item, list):
                rows.append({"number": number, **_unknown_row(number, item, now)})
            else:
                coordinator = {"number": number, "coordinator": state.node_id}
                rows.append({**coordinator, **_row(item, now)})
        return SectionPage(len(numbers), rows)

    return page


def _unknown_producers(state: BrokerState) -> dict[int, list[Log]]:
    """Return the producers with open transactions that belong to no transactional id."""
    opened: dict[int, list[Log]] = {}
    for log in state.folder.logs.values():
        if log.open_transactions and log.leader_id == state.node_id:
            for producer_id in log.open_transactions:
                opened.setdefault(producer_id, []).append(log)
    if opened:
        for each in state.cluster.transactions.transactions.values():
            if each.current is not None:
                opened.pop(each.current.producer_id, None)
                opened.pop(each.current.ended_producer_id, None)
    return opened


def _row(transaction: Transaction[Log], now: float) -> Row:
    current = transaction.current
    assert current is not None, "it has been initialized"
    age = now - current.started_at_ms / 1000 if current.state in _OPEN else None
    is_late = age is not None and age > (current.timeout_ms + LATE_AFTER_MS) / 1000
    partitions = [[log.topic, log.partition] for log in transaction.partitions]
    partitions += [[OFFSETS_TOPIC, number] for number in transaction.offsets_partitions]
    return {
        "id": transaction.id,
        "producer_id": current.shown.producer_id,
        "epoch": current.shown.epoch,
        "state": current.state.value,
        "age_seconds": age,
        "timeout_seconds": current.timeout_ms / 1000,
        "hangs": "exceeds its timeout" if is_late else None,
        "partitions": sorted(partitions),
    }


def _unknown_row(producer_id: int, logs: list[Log], now: float) -> Row:
    entries = [log.producers[producer_id] for log in logs]
    return {
        "id": "",
        "producer_id": producer_id,
        "epoch": max(entry.epoch for entry in entries),
        "state": TransactionState.ONGOING.value,
        "coordinator": None,
        "age_seconds": now - max(entry.timestamp for entry in entries) / 1000,
        "timeout_seconds": None,
        "hangs": "no transactional id",
        "partitions": sorted([log.topic, log.partition] for log in logs),
    }
