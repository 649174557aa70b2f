"""Batches that have nothing but numbers, and the steps of a producer that sends them."""

from __future__ import annotations

import attrs

from trionet.client._topic_partition import TopicPartition
from trionet.client.producer.transactions._sequences import NONE, SequencedBatch
from trionet.client.producer.transactions._transaction_manager import TransactionManager

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@attrs.define(eq=False)
class Batch:
    """As much of a batch as numbers need."""

    topic_partition: TopicPartition = T0
    record_count: int = 1
    producer_id: int = NONE
    producer_epoch: int = NONE
    base_sequence: int = NONE
    leader_epoch: int = 0
    may_be_written: bool = False

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = epoch
        self.base_sequence = base_sequence

    @property
    def number(self) -> tuple[int, int]:
        return self.producer_epoch, self.base_sequence


NOW = 100.0


def may_drain(
    state: TransactionManager, batch: Batch, *, leader_epoch: int = 0, now: float = NOW
) -> bool:
    return state.may_drain(batch, leader_epoch, now)


def idempotence(*known: TopicPartition) -> TransactionManager:
    """With an id, and one record acknowledged at offset 0 of each of these partitions."""
    made = TransactionManager()
    made.take_id(7, 0)
    for partition in known:
        first = Batch(partition)
        sent(made, first)
        written(made, first, 0)
    return made


def sent(state: TransactionManager, *batches: Batch) -> None:
    for batch in batches:
        assert may_drain(state, batch)
        state.assign(batch)


def written(state: TransactionManager, batch: Batch, base_offset: int) -> list[SequencedBatch]:
    return list(state.completed(batch, base_offset, NOW))
