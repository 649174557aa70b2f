"""Producers and transactions, including hanging (KIP-664) and prepared ones (KIP-939).

A prepared transaction is one that its producer has left to another process. A coordinator does not
ask who ends it, only for its producer id and epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from ...errors import ApiError
from ...protocol import error_codes
from ...protocol._wire import Message
from ...protocol.messages import describe_producers, describe_transactions, list_transactions
from ...protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ...protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ...protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ...protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from .._api_errors import api_error
from .._argument_checks import items, names
from .._prepared_transaction import PreparedTransaction
from .._topic_partition import TopicPartition, by_topic
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import by_partition, check, failure, failures, known
from ._groups import CommittedOffset

_NONE: Final = -1
_ID_NOT_FOUND: Final = error_codes.TRANSACTIONAL_ID_NOT_FOUND
_CONCURRENT: Final = frozenset({error_codes.CONCURRENT_TRANSACTIONS})
#: A broker may not have heard of a new topic yet.
_UNKNOWN_TOPIC: Final = frozenset({error_codes.UNKNOWN_TOPIC_OR_PARTITION})
#: A producer's default of transaction.timeout.ms.
_FENCE_TIMEOUT_MS_MAX: Final = 60_000
# Of EndTxn and TxnOffsetCommit: with this version, TV2 begins (KIP-890).
_V2: Final = 5


@attrs.frozen
class ProducerState:
    """The state of a producer in a partition.

    Attributes:
        producer_id: the producer id.
        producer_epoch: the epoch of the last batch.
        last_sequence: the sequence number of the last record.
        last_timestamp: the timestamp of the last batch, in ms since the epoch.
        coordinator_epoch: the coordinator epoch of the last transaction marker; None if there is no
            marker.
        transaction_start_offset: the first offset of the open transaction; None if no transaction
            is open.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


ProducerStates = list[ProducerState]
"""The producers of a partition."""


@attrs.frozen
class TransactionListing:
    """A transactional id in a listing.

    Attributes:
        transactional_id: the transactional id.
        producer_id: the producer id.
        state: Kafka's name of the state, such as ``Ongoing``.
    """

    transactional_id: str
    producer_id: int
    state: str


@attrs.frozen
class TransactionDescription:
    """The state of a transactional id.

    Attributes:
        coordinator: the transaction coordinator.
        state: Kafka's name of the state, such as ``Ongoing``.
        producer_id: the producer id.
        producer_epoch: the producer epoch.
        timeout_ms: the transaction timeout.
        started_ms: when the open transaction started, in ms since the epoch; None if no transaction
            is open.
        partitions: the partitions in the open transaction.
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
    """The producer id and epoch of a transactional id after fencing.

    Attributes:
        producer_id: the producer id.
        producer_epoch: the new epoch; producers with older epochs are fenced.
    """

    producer_id: int
    producer_epoch: int


class TransactionCalls(AdminCalls):
    """Admin calls for producers and transactions."""

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> Results[TopicPartition, ProducerStates]:
        """Return the active producers of each partition.

        Args:
            partitions: the partitions.
            broker_id: the broker to send the requests to; None for the partitions' leaders.

        Returns:
            For each partition, the producers or the error.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, ProducerStates]:
            body = describe_producers.DescribeProducersRequest(
                topics=[
                    describe_producers.TopicRequest(name=topic, partition_indexes=numbers)
                    for topic, numbers in by_topic(keys).items()
                ]
            )
            response: describe_producers.DescribeProducersResponse = await self._request(node, body)
            return by_partition(
                response.topics, lambda each: list(map(_producer, each.active_producers))
            )

        place = self._nodes.at_leaders
        if broker_id is not None:
            # That it does not lead a partition will not change (Kafka: DescribeProducersHandler).
            place = self._nodes.at_brokers(lambda _: broker_id)
        return await self._calls.for_each(
            items(partitions, TopicPartition), place, send, retried=_UNKNOWN_TOPIC
        )

    async def list(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> dict[str, TransactionListing]:
        """Return the listings that the caller may describe, keyed by transactional id.

        Args:
            states: only ids whose transaction is in one of these states, such as ``Ongoing``;
                empty for all.
            producer_ids: only ids of these producers; empty for all.
            duration_ms: only transactions that have been open for longer than this time (KIP-994).
            pattern: an RE2 regular expression that the whole id must match (KIP-1152).

        Raises:
            ApiError: INVALID_REQUEST if there is no such state.
            TrionetError: a broker could not be reached, so the listing would be incomplete.
        """

        def listed(
            response: list_transactions.ListTransactionsResponse, node: Node
        ) -> dict[str, TransactionListing]:
            check(response, f"the transactions of {node}")
            if response.unknown_state_filters:
                raise api_error(
                    error_codes.INVALID_REQUEST,
                    "the state filter",
                    f"unknown states: {', '.join(response.unknown_state_filters)}",
                )
            return {
                each.transactional_id: TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state
                )
                for each in response.transaction_states
            }

        body = list_transactions.ListTransactionsRequest(
            state_filters=names(states),
            producer_id_filters=items(producer_ids, int),
            duration_filter=_NONE if duration_ms is None else duration_ms,
            transactional_id_pattern=pattern,
        )
        version_min = 2 if pattern is not None else 1 if duration_ms is not None else 0
        return await self._calls.list_everywhere(body, listed, version_min=version_min)

    async def describe(
        self, transactional_ids: Iterable[str]
    ) -> Results[str, TransactionDescription]:
        """Describe transactional ids.

        Args:
            transactional_ids: the transactional ids.

        Returns:
            For each transactional id, the state or the error, such as TRANSACTIONAL_ID_NOT_FOUND.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, TransactionDescription]:
            body = describe_transactions.DescribeTransactionsRequest(transactional_ids=list(keys))
            response: describe_transactions.DescribeTransactionsResponse = await self._request(
                node, body
            )
            return {
                each.transactional_id: failure(each, each.transactional_id)
                or _described(each, node)
                for each in response.transaction_states
            }

        ids = names(transactional_ids)
        return await self._calls.for_each(ids, self._nodes.at_transactions, send)

    async def find_hanging(
        self,
        partitions: Iterable[TopicPartition],
        *,
        written_before_ms: int | None = None,
        broker_id: int | None = None,
    ) -> Results[TopicPartition, ProducerStates]:
        """Find open transactions of partitions that no coordinator will end (KIP-664).

        They belong to no transactional id, or their id's transaction does not contain the
        partition. Consumers with ``read_committed`` cannot read beyond them until :meth:`abort`.

        Args:
            partitions: the partitions.
            written_before_ms: only transactions whose producer has written nothing to the partition
                since this time, in ms since the epoch. Transactions that end during the search
                could be found, too, so it should lie at least the longest transaction timeout (the
                brokers' ``transaction.max.timeout.ms``) in the past; None for all transactions.
            broker_id: the broker that is asked for producers; None for the partitions' leaders.

        Returns:
            For each partition, the producers of hanging transactions or the error.

        Raises:
            TrionetError: a request as a whole failed, or a transaction could not be described.
        """
        results = await self.describe_producers(partitions, broker_id=broker_id)
        suspects = {
            key: [each for each in producers if _is_open(each, written_before_ms)]
            for key, producers in results.items()
            if isinstance(producers, list)
        }
        ids = {each.producer_id for producers in suspects.values() for each in producers}
        known = await self._partitions_of(ids) if ids else set()
        for key, producers in suspects.items():
            results[key] = [each for each in producers if (each.producer_id, key) not in known]
        return results

    async def _partitions_of(self, producer_ids: set[int]) -> set[tuple[int, TopicPartition]]:
        """Return the partitions in the transactions of some producers, with the producer ids."""
        listed = await self.list(producer_ids=producer_ids)
        described = await self.describe(listed)
        for id, error in described.errors.items():
            if isinstance(error, ApiError) and error.error_code == _ID_NOT_FOUND:
                del described[id]  # it has expired meanwhile
        return {
            (each.producer_id, partition)
            for each in described.checked().values()
            for partition in each.partitions
        }

    async def abort(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = _NONE,
    ) -> None:
        """Abort a hanging transaction, unknown to its coordinator, in one partition.

        :meth:`describe_producers` returns the producer ids and epochs.

        Args:
            partition: the partition.
            producer_id: the producer id.
            producer_epoch: the producer epoch.
            coordinator_epoch: the coordinator epoch; -1 if no marker has ever been written.

        Raises:
            ApiError: the request was rejected, for example with INVALID_PRODUCER_EPOCH.
            TrionetError: the request failed.

        Cancellation: the transaction may have been aborted.
        """
        [partition] = items([partition], TopicPartition)
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[
                WritableTxnMarkerTopic(
                    name=partition.topic, partition_indexes=[partition.partition]
                )
            ],
            coordinator_epoch=coordinator_epoch,
        )

        async def send(node: Node, _: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
            body = WriteTxnMarkersRequest(markers=[marker])
            response: WriteTxnMarkersResponse = await self._request(node, body)
            return failures(topic for each in response.markers for topic in each.topics)

        results = await self._calls.for_each([partition], self._nodes.at_leaders, send)
        results.checked()

    async def fence_producers(
        self, transactional_ids: Iterable[str]
    ) -> Results[str, FencedProducer]:
        """Fence the producers that use some transactional ids, and abort their open transactions.

        Args:
            transactional_ids: the transactional ids.

        Returns:
            For each transactional id, the new producer id and epoch, or the error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: producers may have been fenced.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, FencedProducer]:
            [key] = keys  # an InitProducerId request has only one
            # The coordinator also uses it as a limit for storing the new epoch (KAFKA-16047). It
            # rejects one above transaction.max.timeout.ms.
            body = InitProducerIdRequest(
                transactional_id=key,
                transaction_timeout_ms=min(self._calls.timeout_ms, _FENCE_TIMEOUT_MS_MAX),
            )
            response: InitProducerIdResponse = await self._request(node, body)
            fenced = FencedProducer(response.producer_id, response.producer_epoch)
            return {key: failure(response, key) or fenced}

        return await self._calls.for_each(
            names(transactional_ids),
            self._nodes.at_transactions,
            send,
            retried=_CONCURRENT,
            singly=True,
        )

    async def terminate(self, transactional_id: str) -> FencedProducer:
        """Abort the open transaction of a transactional id, fencing its producer (KIP-939).

        Args:
            transactional_id: the ``transactional.id`` of the producer.

        Raises:
            ApiError: the broker rejected the request.
            TrionetError: the request failed.

        Cancellation: the transaction may have been aborted.
        """
        return (await self.fence_producers([transactional_id])).checked()[transactional_id]


def _is_open(producer: ProducerState, written_before_ms: int | None) -> bool:
    """Return whether a producer has an open transaction, and has not written for so long."""
    return producer.transaction_start_offset is not None and (
        written_before_ms is None or producer.last_timestamp < written_before_ms
    )


def _producer(state: describe_producers.ProducerState) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        known(state.coordinator_epoch),
        known(state.current_txn_start_offset),
    )


def _described(state: describe_transactions.TransactionState, node: Node) -> TransactionDescription:
    return TransactionDescription(
        node,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        known(state.transaction_start_time_ms),
        frozenset(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )


@attrs.frozen
class TransactionOffset:
    """An offset that a transaction commits.

    Attributes:
        transaction: the transaction.
        partition: the partition, which must exist.
        offset: the offset.
    """

    transaction: PreparedTransaction
    partition: TopicPartition
    offset: CommittedOffset


class PreparedTransactionCalls(AdminCalls):
    """Admin calls for prepared transactions."""

    async def add_offsets(self, offsets: Mapping[str, TransactionOffset]) -> Results[str, None]:
        """Let transactions commit an offset each, of groups without members.

        Args:
            offsets: for each group id, the offset and the transaction that commits it.

        Returns:
            For each group id, None on success or the error, such as INVALID_PRODUCER_EPOCH if the
            transaction has ended.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: offsets may have been added.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            [group] = keys  # a request has only one
            each = offsets[group]
            transaction = each.transaction
            body = TxnOffsetCommitRequest(
                transactional_id=transaction.transactional_id,
                group_id=group,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                topics=[
                    TxnOffsetCommitRequestTopic(
                        name=each.partition.topic,
                        partitions=[
                            TxnOffsetCommitRequestPartition(
                                partition_index=each.partition.partition,
                                committed_offset=each.offset.offset,
                                committed_leader_epoch=each.offset.leader_epoch,
                                committed_metadata=each.offset.metadata,
                            )
                        ],
                    )
                ],
            )
            response: TxnOffsetCommitResponse = await self._of(transaction, node, body)
            return {group: failures(response.topics)[each.partition]}

        added = await self._add_groups(
            {
                group: each.transaction
                for group, each in offsets.items()
                if not each.transaction.is_v2
            }
        )
        left = [group for group in offsets if added.get(group) is None]
        results = await self._calls.for_each(
            left, self._nodes.at_groups, send, retried=_CONCURRENT | _UNKNOWN_TOPIC, singly=True
        )
        return Results({group: results.get(group, added.get(group)) for group in offsets})

    async def _add_groups(
        self, transactions: Mapping[str, PreparedTransaction]
    ) -> Results[str, None]:
        """Make the offsets of groups part of transactions; TV2 needs no request for it."""
        groups = {each.transactional_id: group for group, each in transactions.items()}

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            [key] = keys
            transaction = transactions[groups[key]]
            body = AddOffsetsToTxnRequest(
                transactional_id=key,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                group_id=groups[key],
            )
            response: AddOffsetsToTxnResponse = await self._request(node, body)
            return {key: failure(response, f"transactional id {key!r}")}

        results = await self._calls.for_each(
            groups, self._nodes.at_transactions, send, retried=_CONCURRENT, singly=True
        )
        return Results({groups[key]: each for key, each in results.items()})

    async def end(
        self, transactions: Iterable[PreparedTransaction], *, commit: bool
    ) -> Results[PreparedTransaction, None]:
        """Commit or abort transactions.

        A transaction that has been ended in the same way before is a success, so that the call can
        be repeated when its outcome is unknown.

        Args:
            transactions: the transactions.
            commit: whether to commit them; False to abort them.

        Returns:
            For each transaction, None on success or the error, such as INVALID_PRODUCER_EPOCH or
            PRODUCER_FENCED if it has ended in another way.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: transactions may have been ended.
        """
        wanted = {each.transactional_id: each for each in transactions}

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            [key] = keys
            transaction = wanted[key]
            body = EndTxnRequest(
                transactional_id=key,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                committed=commit,
            )
            response: EndTxnResponse = await self._of(transaction, node, body)
            return {key: failure(response, f"transactional id {key!r}")}

        results = await self._calls.for_each(
            wanted, self._nodes.at_transactions, send, retried=_CONCURRENT, singly=True
        )
        return Results({wanted[key]: each for key, each in results.items()})

    async def _of(self, transaction: PreparedTransaction, node: Node, body: Message) -> Any:
        """Send a request in a version of the transaction's protocol."""
        if transaction.is_v2:
            return await self._request(node, body, version_min=_V2)
        return await self._request(node, body, version_max=_V2 - 1)
