"""The metrics of transactions and of producers with ids.

Kafka also measures how long a partition of ``__transaction_state`` takes to load, and the requests
with which leaders of partitions verify transactions. Here, there are neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from ...metrics._prometheus import gauge
from ...metrics._registry import Family, Kind, Metric, single
from ...metrics._sensors import gauges
from ..log import Log
from ..model._broker_state import BrokerState
from ..model._leadership import NO_LEADER
from ..transactions._transaction import Transaction, TransactionState

LATE_AFTER_MS: Final = 5 * 60 * 1000
"""How long after its timeout a transaction counts as late (Kafka: LATE_TRANSACTION_BUFFER_MS)."""

LATE_TRANSACTIONS = gauge(
    "server",
    "ReplicaManager",
    "PartitionsWithLateTransactionsCount",
    "Partitions whose oldest open transaction has had no data for transaction.max.timeout.ms and"
    " 5 minutes.",
)
PRODUCER_IDS = gauge(
    "server", "ReplicaManager", "ProducerIdCount", "Producers with ids, for each partition."
)
MARKERS_WITHOUT_LEADER = gauge(
    "coordinator.transaction",
    "TransactionMarkerChannelManager",
    "UnknownDestinationQueueSize",
    "Transaction markers that wait for a leader of their partition.",
)
MARKERS_TO_RETRY = gauge(
    "coordinator.transaction",
    "TransactionMarkerChannelManager",
    "LogAppendRetryQueueSize",
    "Decided transactions with a marker that could not be written, which is tried again.",
)
TRANSACTIONAL_IDS = Metric(
    "trionet_transactional_ids", Kind.GAUGE, "Transactional ids, by state.", ("state",)
)

TRANSACTION_METRICS: Final = (
    LATE_TRANSACTIONS,
    PRODUCER_IDS,
    MARKERS_WITHOUT_LEADER,
    MARKERS_TO_RETRY,
)


def collect_transactions(state: BrokerState) -> Iterator[Family]:
    """Collect the metrics of the node's partitions and of the ids that it coordinates."""
    now_ms, node_id = state.now_ms(), state.node_id
    leadership = state.cluster.leadership
    quiet_ms = state.config.integer("transaction.max.timeout.ms") + LATE_AFTER_MS
    late = producers = 0
    for key, log in state.folder.logs.items():
        if node_id in leadership.get(key).replicas:
            producers += len(log.producers)
            late += log.leader_id == node_id and is_late(log, now_ms, quiet_ms)
    yield single(LATE_TRANSACTIONS, late)
    yield single(PRODUCER_IDS, producers)

    coordinated = coordinated_by(state)
    unfinished = [
        each
        for each in state.cluster.transactions.unfinished.values()
        if state.cluster.transaction_coordinator_of(each.id) == state.node_id
    ]
    without_leader = sum(
        log.leader_id == NO_LEADER for each in unfinished for log in each.partitions
    )
    yield single(MARKERS_WITHOUT_LEADER, without_leader)
    to_retry = sum(
        not each.is_finishing and any(log.leader_id != NO_LEADER for log in each.partitions)
        for each in unfinished
    )
    yield single(MARKERS_TO_RETRY, to_retry)
    # By value: the hash of a member of an enum is computed in Python.
    states = Counter([each.current.state._value_ for each in coordinated if each.current])
    yield gauges(
        TRANSACTIONAL_IDS, {(each.value,): states[each.value] for each in TransactionState}
    )


def coordinated_by(state: BrokerState) -> Collection[Transaction[Log]]:
    """Return the transactional ids that a node coordinates."""
    transactions = state.cluster.transactions.transactions.values()
    if not state.has_replicas:  # the only node: the ids need not be hashed
        return transactions
    coordinator_of = state.cluster.transaction_coordinator_of
    return [each for each in transactions if coordinator_of(each.id) == state.node_id]


def is_late(log: Log, now_ms: int, quiet_ms: int) -> bool:
    """Return whether the oldest open transaction of a log has had no data for ``quiet_ms``."""
    for producer_id in log.open_transactions:
        return now_ms - log.producers[producer_id].timestamp > quiet_ms
    return False
