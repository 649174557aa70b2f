"""Producers and transactions: who writes what, and ending what hangs (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ....errors import TrionetError
from ....protocol import error_codes
from ....protocol.messages import describe_producers, describe_transactions, list_transactions
from ....protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ....protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ..._api_errors import api_error
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..calls._argument_checks import items, names
from ..calls._calls import Place
from ..calls._conversions import AdminCalls, by_topic, check, failure
from ..calls._nodes import COORDINATOR_CODES, LEADER_CODES
from ..calls._results import Results

_NONE: Final = -1
# The new owner of the id does nothing: Kafka's own client takes as little.
_FENCING_TIMEOUT_MS: Final = 1
_FENCING_RETRIED: Final = frozenset({*COORDINATOR_CODES, error_codes.CONCURRENT_TRANSACTIONS})


@attrs.frozen
class ProducerState:
    """What a partition knows of a producer.

    Attributes:
        producer_id: its id.
        producer_epoch: the epoch of its last batch.
        last_sequence: the number of its last record.
        last_timestamp: of that record, in milliseconds since 1970.
        coordinator_epoch: of the last transaction's end; None for none.
        transaction_start_offset: where its open transaction begins; None without one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


@attrs.frozen
class TransactionListing:
    """A transactional id in a list.

    Attributes:
        transactional_id: the id.
        producer_id: of its producer.
        state: as Kafka names it, such as ``Ongoing``.
    """

    transactional_id: str
    producer_id: int
    state: str


@attrs.frozen
class TransactionDescription:
    """A transactional id.

    Attributes:
        coordinator: the broker that keeps it.
        state: as Kafka names it, such as ``Ongoing``.
        producer_id: of its producer.
        producer_epoch: of its producer.
        timeout_ms: how long its transactions may take.
        started_ms: when the open one began, in milliseconds since 1970; None without one.
        partitions: what the open one has written to.
    """

    coordinator: Node
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: frozenset[TopicPartition]


@attrs.frozen
class FencedProducer:
    """What a transactional id has now that its producers are fenced.

    Attributes:
        producer_id: its id.
        producer_epoch: its epoch: producers of older ones can do no more.
    """

    producer_id: int
    producer_epoch: int


class TransactionCalls(AdminCalls):
    """Calls about producers and transactions."""

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> Results[TopicPartition, list[ProducerState]]:
        """Which producers partitions know of.

        Args:
            partitions: which.
            broker_id: ask this broker's replicas, not the leaders.

        Returns:
            By partition, its producers or why they are not known.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, list[ProducerState] | TrionetError]:
            answer: describe_producers.DescribeProducersResponse = await self._calls.client.request(
                node,
                describe_producers.DescribeProducersRequest(
                    topics=[
                        describe_producers.TopicRequest(name=topic, partition_indexes=numbers)
                        for topic, numbers in by_topic(keys).items()
                    ]
                ),
            )
            found: dict[TopicPartition, list[ProducerState] | TrionetError] = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    error = failure(each.error_code, str(key), each.error_message)
                    found[key] = error or [_producer(state) for state in each.active_producers]
            return found

        place: Place[TopicPartition] = self._calls.at_leaders
        if broker_id is not None:
            place = self._calls.at_brokers(lambda _: broker_id)
        return await self._calls.each(items(partitions, TopicPartition), place, ask, LEADER_CODES)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> dict[str, TransactionListing]:
        """All transactional ids that the caller may see.

        Args:
            states: in these states only, such as ``Ongoing``; none for all.
            producer_ids: of these producers only; none for all.
            duration_ms: whose transaction has been open for longer only (KIP-994).
            pattern: a regular expression of RE2 that the whole id matches (KIP-1152).

        Raises:
            ApiError: INVALID_REQUEST: there is no such state.
            TrionetError: some broker could not be asked: a list that lacks its transactions would
                be wrong.
        """
        body = list_transactions.ListTransactionsRequest(
            state_filters=names(states),
            producer_id_filters=items(producer_ids, int),
            duration_filter=_NONE if duration_ms is None else duration_ms,
            transactional_id_pattern=pattern,
        )
        version_min = 2 if pattern is not None else 1 if duration_ms is not None else 0

        async def ask(
            node: Node, keys: Sequence[int]
        ) -> dict[int, dict[str, TransactionListing] | TrionetError]:
            answer: list_transactions.ListTransactionsResponse = await self._calls.client.request(
                node, body, version_min=version_min
            )
            check(answer.error_code, f"the transactions of {node}")
            if answer.unknown_state_filters:
                raise api_error(
                    error_codes.INVALID_REQUEST,
                    "the states of transactions",
                    f"there is no {', '.join(answer.unknown_state_filters)}",
                )
            found: dict[str, TransactionListing] = {
                each.transactional_id: TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state
                )
                for each in answer.transaction_states
            }
            return dict.fromkeys(keys, found)

        brokers = await self._calls.once(self._calls.nodes.all)
        place = self._calls.at_themselves
        by_broker = (await self._calls.each(brokers, place, ask, COORDINATOR_CODES)).checked()
        return {id: each for found in by_broker.values() for id, each in found.items()}

    async def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> Results[str, TransactionDescription]:
        """Describe transactional ids.

        Args:
            transactional_ids: which.

        Returns:
            By id, what is known of it or why nothing is, such as TRANSACTIONAL_ID_NOT_FOUND.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def ask(
            node: Node, keys: Sequence[str]
        ) -> dict[str, TransactionDescription | TrionetError]:
            answer: describe_transactions.DescribeTransactionsResponse = (
                await self._calls.client.request(
                    node,
                    describe_transactions.DescribeTransactionsRequest(transactional_ids=list(keys)),
                )
            )
            return {
                each.transactional_id: _described(each, node) for each in answer.transaction_states
            }

        return await self._calls.each(
            names(transactional_ids), self._calls.at_transactions, ask, COORDINATOR_CODES
        )

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = _NONE,
    ) -> None:
        """End a transaction of one partition that its coordinator does not know any more.

        What a hanging transaction has of a partition is told by :meth:`describe_producers`.

        Args:
            partition: which.
            producer_id: of the producer.
            producer_epoch: of the producer.
            coordinator_epoch: of the transaction; -1 for one whose end was never tried.

        Raises:
            ApiError: such as INVALID_PRODUCER_EPOCH.
            TrionetError: the request failed.

        Cancellation: the transaction may be ended.
        """

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            marker = WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[
                    WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
                    for topic, numbers in by_topic(keys).items()
                ],
                coordinator_epoch=coordinator_epoch,
            )
            answer: WriteTxnMarkersResponse = await self._calls.client.request(
                node, WriteTxnMarkersRequest(markers=[marker])
            )
            return {
                TopicPartition(topic.name, each.partition_index): failure(
                    each.error_code, str(partition)
                )
                for told in answer.markers
                for topic in told.topics
                for each in topic.partitions
            }

        place = self._calls.at_leaders
        (
            await self._calls.each(items([partition], TopicPartition), place, ask, LEADER_CODES)
        ).checked()

    async def fence_producers(
        self, transactional_ids: Iterable[str]
    ) -> Results[str, FencedProducer]:
        """Take transactional ids from their producers; open transactions are aborted.

        Args:
            transactional_ids: which.

        Returns:
            By id, what it has now or why its producers are not fenced.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: producers may be fenced.
        """

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, FencedProducer | TrionetError]:
            [key] = keys  # InitProducerId has one
            answer: InitProducerIdResponse = await self._calls.client.request(
                node,
                InitProducerIdRequest(
                    transactional_id=key, transaction_timeout_ms=_FENCING_TIMEOUT_MS
                ),
            )
            fenced = FencedProducer(answer.producer_id, answer.producer_epoch)
            return {key: failure(answer.error_code, key) or fenced}

        return await self._calls.each(
            names(transactional_ids),
            self._calls.at_transactions,
            ask,
            _FENCING_RETRIED,
            singly=True,
        )

    async def terminate_transaction(self, transactional_id: str) -> FencedProducer:
        """Abort the open transaction of an id, whoever has it (KIP-939).

        Raises:
            ApiError: why that could not be done.
            TrionetError: the request failed.

        Cancellation: the transaction may be aborted.
        """
        return (await self.fence_producers([transactional_id])).checked()[transactional_id]


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _producer(state: describe_producers.ProducerState) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        _known(state.coordinator_epoch),
        _known(state.current_txn_start_offset),
    )


def _described(
    state: describe_transactions.TransactionState, node: Node
) -> TransactionDescription | TrionetError:
    if state.error_code:
        return api_error(state.error_code, state.transactional_id)
    return TransactionDescription(
        node,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        _known(state.transaction_start_time_ms),
        frozenset(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )
