"""The requests of a transactional producer to its coordinators, sent without waiting.

(Kafka: TransactionManager.TxnRequestHandler and its subclasses, Sender
.maybeSendAndPollTransactionalRequest.) The sender calls :meth:`TransactionRequests.send_if_due` in
each run; :class:`.TransactionState` says which request is next. Requests are repeated until the
coordinator decides them: how long a call of the user waits for that is up to the call.

The coordinator of the transaction is found by the transactional id, and the coordinator of offsets
by the group id. Both share the connection that Produce requests to the same broker use, as in
Kafka.
"""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any, Final

import trio

from ...._util._logging import get_logger
from ....errors import (
    ApiError,
    CommitFailedError,
    FencedInstanceIdError,
    LocalProtocolError,
    ResponseTooLargeError,
    TransactionAbortableError,
    TrionetError,
    UnsupportedVersionError,
)
from ....protocol import error_codes
from ....protocol._wire import Message
from ....protocol.api_keys import FIND_COORDINATOR
from ....protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ....protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ....protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ....protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ....protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ....protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ..._api_errors import LASTING, api_error, coordinator_error
from ..._backoff import ExponentialBackoff
from ..._prepared_transaction import PreparedTransaction
from ..._topic_partition import TopicPartition, by_topic
from ...network._cluster import Node
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ._transaction_manager import TransactionManager
from ._transaction_state import PendingOffsets, State, Step, TransactionState
from ._verdicts import Verdict, abortable, fenced, verdict, worst

logger = get_logger("trionet.client")

#: The feature whose level decides between the protocols (KIP-890), and the first level with TV2.
FEATURE: Final = "transaction.version"
V2_LEVEL: Final = 2

#: The first wait while the coordinator is still ending the last transaction, which rarely takes
#: longer (Kafka: ADD_PARTITIONS_RETRY_BACKOFF_MS).
CONCURRENT_SECONDS: Final = 0.02

_GROUP: Final = 0
_TRANSACTION: Final = 1
_MANY_KEYS_VERSION: Final = 4  # of FindCoordinator

# Versions of the requests: with these, TV2 begins.
_END_V2: Final = 5
_OFFSETS_V2: Final = 5
_PARTITIONS_MAX: Final = 3  # newer versions are for brokers
_IDENTITY_VERSION: Final = 3  # of InitProducerId: the first that keeps the producer id (KIP-360)
_MEMBER_VERSION: Final = 3  # of TxnOffsetCommit: the first that fences members (KIP-447)

# Errors of single partitions, which a message must name; others are about a group or a transaction.
_OF_PARTITIONS: Final = frozenset(
    {
        error_codes.INVALID_TOPIC_EXCEPTION,
        error_codes.OFFSET_METADATA_TOO_LARGE,
        error_codes.TOPIC_AUTHORIZATION_FAILED,
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

#: A request, and the oldest and the newest version in which it may be sent.
_Request = tuple[Message, int, int | None]


class TransactionRequests:
    """Sends the requests of one producer's transactions, one at a time.

    Args:
        client: the client that sends the requests.
        manager: the transaction manager, which receives ids and fatal errors.
        transaction: the transactions.
        timeout_seconds: ``transaction.timeout.ms``.
        retry: the backoff after a failure.
        rng: jitters the backoff.
    """

    def __init__(
        self,
        client: KafkaClient,
        manager: TransactionManager,
        transaction: TransactionState,
        timeout_seconds: float,
        retry: ExponentialBackoff,
        rng: random.Random,
    ) -> None:
        self._client = client
        self._manager = manager
        self._transaction = transaction
        self._timeout_ms = round(timeout_seconds * 1000)
        self._retry = retry
        self._concurrent = ExponentialBackoff(
            min(CONCURRENT_SECONDS, retry.first_seconds), retry.seconds_max
        )
        self._rng = rng
        self._coordinators: dict[tuple[int, str], Node] = {}
        self._is_in_flight = False
        self._failures = 0
        self._not_before = -math.inf
        #: Why the last request must be repeated; empty if it succeeded.
        self.problem = ""

    @property
    def speaks_v2(self) -> bool:
        """Whether the cluster has finalized TV2."""
        return self._client.finalized_level(FEATURE) >= V2_LEVEL

    @property
    def is_in_flight(self) -> bool:
        """Whether a request has been sent, and its response is awaited."""
        return self._is_in_flight

    @property
    def lasting_error(self) -> Exception | None:
        """Why no broker accepts this client, if a retry cannot change that; None otherwise."""
        error = self._client.metadata.error
        return error if isinstance(error, LASTING) else None

    def send_if_due(self, now: float, *, has_incomplete: bool) -> float:
        """Send the next request if there is one, and no other request or backoff is in progress.

        Args:
            now: the current time on the event loop's clock, in seconds.
            has_incomplete: see :meth:`.TransactionState.next_step`.

        Returns:
            When to call this again, if nothing else happens.
        """
        if self._is_in_flight:
            return math.inf
        step = self._transaction.next_step(has_incomplete=has_incomplete)
        if step is None:
            return math.inf
        if now < self._not_before:
            return self._not_before
        key = self._key(step)
        node = self._coordinators.get(key)
        if node is None:
            return self._find(key, now)
        if not self._client.ready(node):
            connection = self._client.connection(node)
            # It may be gone. Without a reconnect backoff, ready() has begun the next attempt.
            if connection.is_disconnected or connection.failures > 1:
                del self._coordinators[key]
                self._try_later(f"{node} cannot be reached")
                return self._not_before
            return now + (connection.poll_delay(now) or math.inf)
        request, version_min, version_max = self._request(step)
        self._is_in_flight = True
        self._transaction.sent(step)
        self._client.send(
            node,
            request,
            partial(self._handle_response, step, key),
            version_min=version_min,
            version_max=version_max,
        )
        return math.inf

    def use(self, transactional_id: str) -> None:
        """Use another transactional id, with a producer id and a coordinator of its own.

        Raises:
            LocalProtocolError: a transaction is open, or a request is in flight, whose response
                would be taken for one about the new id.
        """
        state = self._transaction
        if self._is_in_flight:
            raise LocalProtocolError(
                f"a request about transactional id {state.transactional_id!r} is in flight; wait"
                " for its response before another transactional id is used"
            )
        if transactional_id != state.transactional_id:
            former = _TRANSACTION, state.transactional_id
            state.use(transactional_id)
            self._manager.forget_id()
            self._coordinators.pop(former, None)

    def prepare(self) -> PreparedTransaction:
        """Leave the open transaction, whose records are all acknowledged, to another process.

        Raises:
            LocalProtocolError, TransactionAbortableError: see :meth:`.TransactionState.prepare`.
        """
        state = self._transaction
        identity = self._manager.identity
        prepared = PreparedTransaction(
            state.transactional_id, identity.id, identity.epoch, state.is_v2
        )
        state.prepare()
        self._manager.forget_id()
        return prepared

    def _key(self, step: Step) -> tuple[int, str]:
        offsets = self._transaction.offsets
        if step is Step.COMMIT_OFFSETS and offsets is not None:
            return _GROUP, offsets.group.group_id
        return _TRANSACTION, self._transaction.transactional_id

    def _try_later(self, problem: str, retry: ExponentialBackoff | None = None) -> None:
        self.problem = problem
        self._failures += 1
        seconds = (retry or self._retry).seconds(self._failures, self._rng)
        self._not_before = trio.current_time() + seconds
        logger.debug("%s: %s; retrying", self._transaction.transactional_id, problem)

    # The coordinator.

    def _find(self, key: tuple[int, str], now: float) -> float:
        node, _ = self._client.least_loaded_node(now)
        if node is None:
            return now + (self._client.next_usable_delay(now) or self._retry.first_seconds)
        if not self._client.ready(node):
            return math.inf  # a poll reports what happens to the connection
        versions = self._client.versions(node)
        kind, name = key
        request = FindCoordinatorRequest(key=name, key_type=kind)
        version_max: int | None = _MANY_KEYS_VERSION - 1
        if versions is not None and versions.versions(FIND_COORDINATOR).stop > _MANY_KEYS_VERSION:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
            version_max = None
        self._is_in_flight = True
        self._client.send(
            node,
            request,
            partial(self._handle_coordinator, key),
            version_min=0 if version_max else _MANY_KEYS_VERSION,
            version_max=version_max,
        )
        return math.inf

    def _handle_coordinator(self, key: tuple[int, str], response: ClientResponse) -> None:
        self._is_in_flight = False
        body: FindCoordinatorResponse | None = response.body
        if body is None:
            self._without_response(response.error)
            return
        found = body.coordinators[0] if body.coordinators else body
        kind, name = key
        about = f"the coordinator of {'group' if kind == _GROUP else 'transactional id'} {name!r}"
        error = coordinator_error(found, about)
        if error is None:
            self._coordinators[key] = Node(found.node_id, found.host, found.port)
            return
        self._fail(Step.COMMIT_OFFSETS if kind == _GROUP else Step.INIT, key, error)

    # Requests.

    def _request(self, step: Step) -> _Request:
        state = self._transaction
        name, (producer_id, epoch) = state.transactional_id, self._manager.identity
        offsets = state.offsets
        if step is Step.INIT:
            request = InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=self._timeout_ms
            )
            if not self._manager.identity.is_valid:
                return request, 0, None
            # A producer that has been replaced must not fence its successor (KIP-360).
            request.producer_id, request.producer_epoch = producer_id, epoch
            return request, _IDENTITY_VERSION, None
        if step is Step.ADD_PARTITIONS:
            topics = [
                AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                for topic, partitions in by_topic(state.to_add).items()
            ]
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
            return add, 0, _PARTITIONS_MAX
        if step is Step.ADD_OFFSETS and offsets is not None:
            group_id = offsets.group.group_id
            return (
                AddOffsetsToTxnRequest(
                    transactional_id=name,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    group_id=group_id,
                ),
                0,
                None,
            )
        if step is Step.COMMIT_OFFSETS and offsets is not None:
            request_of = self._offsets_request(offsets)
            if state.is_v2:
                return request_of, _OFFSETS_V2, None
            group = offsets.group
            is_member = group.generation >= 0 or group.member_id or group.instance_id is not None
            return request_of, _MEMBER_VERSION if is_member else 0, _OFFSETS_V2 - 1
        end = EndTxnRequest(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=state.state is State.COMMITTING,
        )
        return (end, _END_V2, None) if state.is_v2 else (end, 0, _END_V2 - 1)

    def _offsets_request(self, pending: PendingOffsets) -> TxnOffsetCommitRequest:
        group = pending.group
        producer_id, epoch = self._manager.identity
        return TxnOffsetCommitRequest(
            transactional_id=self._transaction.transactional_id,
            group_id=group.group_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        _offset(pending, TopicPartition(topic, each)) for each in partitions
                    ],
                )
                for topic, partitions in by_topic(pending.left).items()
            ],
        )

    # Responses.

    def _handle_response(self, step: Step, key: tuple[int, str], response: ClientResponse) -> None:
        self._is_in_flight = False
        if response.body is None:
            if not isinstance(response.error, UnsupportedVersionError):
                self._coordinators.pop(key, None)
            self._without_response(response.error)
            return
        error = self._failure(step, response.body)
        if error is not None:
            self._fail(step, key, error)
            return
        missing = _requested(step, response.request) - _results(step, response.body).keys()
        if missing:  # not known to be done
            self._try_later(f"the response to {step.value} lacks {min(missing)}")
            return
        self._failures = 0
        self.problem = ""
        self._succeeded(step, response.request, response.body)

    def _failure(self, step: Step, body: Any) -> ApiError | None:
        """Return the most serious error of a response, after recording what succeeded."""
        results = _results(step, body)
        if step is Step.COMMIT_OFFSETS:
            self._transaction.offsets_accepted(
                [each for each in results if each and not results[each]]
            )
        code = worst(step, results.values())
        if code is None:
            return None
        rejected = next(each for each in results if results[each] == code)
        return api_error(code, f"{step.value}: {self._about(step, code, rejected)}")

    def _succeeded(self, step: Step, request: Any, body: Any) -> None:
        state = self._transaction
        if step is Step.INIT:
            given: InitProducerIdResponse = body
            self._manager.take_id(given.producer_id, given.producer_epoch)
            state.initialized(is_v2=self.speaks_v2)
        elif step is Step.ADD_PARTITIONS:
            state.partitions_added(list(_requested(step, request)))
        elif step is Step.ADD_OFFSETS:
            state.offsets_added(request.group_id)
        elif step is Step.END:
            ended: EndTxnResponse = body
            if ended.producer_id >= 0:  # TV2
                self._manager.take_id(ended.producer_id, ended.producer_epoch)
                state.needs_epoch = False
            state.ended()

    # Errors.

    def _without_response(self, error: TrionetError | None) -> None:
        if isinstance(error, UnsupportedVersionError):
            self._manager.fail(
                UnsupportedVersionError(f"the brokers do not support transactions: {error}")
            )
        elif isinstance(error, ResponseTooLargeError):
            self._manager.fail(error)  # the next response would be as large
        else:
            self._try_later(str(error))

    def _about(self, step: Step, code: int, rejected: TopicPartition | None) -> str:
        state = self._transaction
        what = f"transactional id {state.transactional_id!r}"
        if step is Step.COMMIT_OFFSETS and state.offsets is not None:
            what = f"offsets of group {state.offsets.group.group_id!r}"
        if code == error_codes.INVALID_TRANSACTION_TIMEOUT:
            return (
                f"{what}: the brokers allow a lower transaction.timeout.ms than"
                f" {self._timeout_ms} (transaction.max.timeout.ms)"
            )
        return f"{what}, {rejected}" if rejected and code in _OF_PARTITIONS else what

    def _fail(self, step: Step, key: tuple[int, str], error: ApiError) -> None:
        """Do what an error demands that a coordinator, or the search for it, has returned."""
        state, code = self._transaction, error.error_code
        what = verdict(step, code)
        if what is Verdict.REFRESH:
            self._coordinators.pop(key, None)
        if what in {Verdict.REFRESH, Verdict.RETRY}:
            is_ending = code == error_codes.CONCURRENT_TRANSACTIONS
            self._try_later(str(error), self._concurrent if is_ending else None)
            return
        self._failures = 0
        is_abort = step is Step.END and state.state is State.ABORTING
        if what is Verdict.FENCED:
            self._manager.fail(fenced(state.transactional_id, error))
        elif what is Verdict.FATAL or step is Step.INIT or (is_abort and what is Verdict.ABORT):
            self._manager.fail(error)
        else:
            # The new epoch keeps delayed requests of this one out of the next transaction.
            state.needs_epoch = True
            if is_abort:
                state.ended()
            else:
                state.fail(_abortable(error, state, step))


def _requested(step: Step, request: Any) -> set[TopicPartition]:
    """Return the partitions in a request; none if it is about the transaction as a whole."""
    if step is Step.ADD_PARTITIONS:
        added: AddPartitionsToTxnRequest = request
        return {
            TopicPartition(topic.name, each)
            for topic in added.v3_and_below_topics
            for each in topic.partitions
        }
    if step is Step.COMMIT_OFFSETS:
        committed: TxnOffsetCommitRequest = request
        return {
            TopicPartition(topic.name, each.partition_index)
            for topic in committed.topics
            for each in topic.partitions
        }
    return set()


def _results(step: Step, body: Any) -> dict[TopicPartition | None, int]:
    """Return the error codes in a response by partition; one of the whole has None."""
    if step is Step.ADD_PARTITIONS:
        added: AddPartitionsToTxnResponse = body
        return {
            TopicPartition(topic.name, each.partition_index): each.partition_error_code
            for topic in added.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }
    if step is Step.COMMIT_OFFSETS:
        committed: TxnOffsetCommitResponse = body
        return {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in committed.topics
            for each in topic.partitions
        }
    return {None: body.error_code}


def _offset(pending: PendingOffsets, partition: TopicPartition) -> TxnOffsetCommitRequestPartition:
    offset, metadata, leader_epoch = pending.left[partition]
    return TxnOffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=offset,
        committed_leader_epoch=-1 if leader_epoch is None else leader_epoch,
        committed_metadata=metadata,
    )


_NO_MEMBER: Final = frozenset({error_codes.UNKNOWN_MEMBER_ID, error_codes.ILLEGAL_GENERATION})


def _abortable(error: ApiError, state: TransactionState, step: Step) -> TransactionAbortableError:
    """Return the error of the transaction; errors of members are those of the consumer."""
    code = error.error_code
    offsets = state.offsets
    cause: TrionetError = error
    if step is Step.COMMIT_OFFSETS and offsets is not None:
        group = offsets.group
        if code in _NO_MEMBER:
            cause = CommitFailedError(
                f"group {group.group_id}: the consumer is no longer in generation"
                f" {group.generation}, and its partitions may belong to another member ({error})"
            )
        elif code == error_codes.FENCED_INSTANCE_ID:
            cause = FencedInstanceIdError(group.group_id, group.instance_id or "")
    return abortable(cause)
