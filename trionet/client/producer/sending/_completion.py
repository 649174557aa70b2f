"""The completion of batches: each batch succeeds, is retried, is split, or fails.

(Kafka: Sender.handleProduceResponse, completeBatch, failBatch.) If a response reports an error or
never arrives, the leader may nevertheless have appended the batch. A retry of such a batch may
write the batch twice unless it has a sequence number. Failing such a batch may report records as
lost although they are in the log. Therefore every failure states whether the records may have been
written (:attr:`.TrionetError.may_have_been_written`). This module lists the inconclusive error
codes and the situations in which Kafka's broker returns them.

No function in this module blocks. Completing a batch wakes the tasks that wait for its deliveries.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Final

import trio

from ...._util._logging import get_logger
from ...._util._text import counted
from ....errors import (
    ApiError,
    DeliveryTimeoutError,
    LocalProtocolError,
    RecordTooLargeError,
    ResponseTooLargeError,
    TrionetError,
)
from ....protocol import error_codes
from ..._api_errors import STALE_METADATA, api_error
from ..._topic_partition import TopicPartition
from ...network._cluster import NO_LEADER, nodes_of
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from .._hooks import AcknowledgementHook
from .._settings import ProducerSettings
from ..batching._batch import ProducerBatch
from ..batching._batch_queues import BatchQueues
from ..transactions._transaction_manager import TransactionManager
from ..transactions._verdicts import abortable, of_record
from ._counters import SenderCounters
from ._produce_requests import UNKNOWN, WRITTEN, PartitionResponse, partition_responses

logger = get_logger("trionet.client")

#: The time between two warnings about the same error.
_WARNING_SECONDS: Final = 1.0

# DUPLICATE_SEQUENCE_NUMBER: the leader already has the batch, but no longer knows its offset
# (Kafka: completeBatch).
_WRITTEN: Final = frozenset({error_codes.NONE, error_codes.DUPLICATE_SEQUENCE_NUMBER})
# After these errors the leader may nevertheless have appended the batch. With acks=all it returns
# the last three errors also if the leader changes, its disk fails or the topic is deleted while an
# appended batch waits for the other replicas (Kafka: DelayedProduce.tryComplete).
_UNCERTAIN: Final = frozenset(
    {
        error_codes.NETWORK_EXCEPTION,
        error_codes.REQUEST_TIMED_OUT,
        error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        error_codes.UNKNOWN_SERVER_ERROR,
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.KAFKA_STORAGE_ERROR,
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Completion:
    """Tracks the batches in flight, and handles their responses and expiry.

    Args:
        queues: take batches back for a retry, and free their memory.
        client: provides the metadata, which is refreshed when it turns out to be stale, and knows
            why a broker cannot be reached.
        transaction_manager: manages the sequence numbers; None without idempotence.
        settings: the settings of the producer.
        hook: called with the result of each batch.

    Attributes:
        counters: the counters of records, batches and requests.
    """

    def __init__(
        self,
        queues: BatchQueues,
        client: KafkaClient,
        transaction_manager: TransactionManager | None,
        settings: ProducerSettings,
        hook: AcknowledgementHook,
    ) -> None:
        self._hook = hook
        self._client = client
        self.counters: SenderCounters = SenderCounters()
        self._queues = queues
        self._metadata = client.metadata
        self._transaction_manager = transaction_manager
        self._timeout_seconds = settings.delivery_timeout_seconds
        self._retries = settings.retries
        # Then at most one batch per partition is in flight.
        self._keeps_order = settings.client.requests.in_flight_max == 1
        self._clock = trio.lowlevel.current_clock().current_time
        self._in_flight: dict[ProducerBatch, None] = {}
        self._expires_at = math.inf
        self._last_errors: dict[TopicPartition, str] = {}
        self._next_warnings: dict[int, float] = {}

    # In flight.

    def encodable(self, batches: Sequence[ProducerBatch]) -> list[ProducerBatch]:
        """Return the batches that can be encoded, and fail all others."""
        encodable = []
        for batch in batches:
            try:
                batch.chunks()
            except Exception as cause:  # boundary: the records of one batch
                error = LocalProtocolError(
                    f"cannot encode the records for {batch.topic_partition}: {cause}"
                )
                error.__cause__ = cause
                self._fail(batch, error)
                self._queues.deallocate(batch)
            else:
                encodable.append(batch)
        return encodable

    def sent(self, batches: Sequence[ProducerBatch]) -> None:
        """Track batches that are about to be sent."""
        for batch in batches:
            self._in_flight[batch] = None
            self._expires_at = min(self._expires_at, self._expiry_of(batch))
            if self._keeps_order:
                self._queues.topics.mute(batch.topic_partition)

    def _expiry_of(self, batch: ProducerBatch) -> float:
        return batch.created_at + self._timeout_seconds

    def expiry_of_new(self, now: float) -> float:
        """Return the time when a batch created at ``now`` expires."""
        return now + self._timeout_seconds

    @property
    def next_expiry(self) -> float:
        """A lower bound on the time when the next batch expires."""
        return min(self._expires_at, self._queues.next_expiry)

    def expire(self, now: float) -> bool:
        """Fail batches that have exceeded ``delivery.timeout.ms``, queued or in flight (KIP-91).

        Returns whether there were any.
        """
        has_failed = False
        if now >= self._queues.next_expiry:
            for batch in self._queues.expired(now):
                self._fail_late(batch)
                self._queues.deallocate(batch)
                has_failed = True
        if now >= self._expires_at:
            late = [each for each in self._in_flight if now >= self._expiry_of(each)]
            for batch in late:
                # The memory of the batch is kept until its request is complete (KAFKA-17862).
                if not batch.outcome.is_done:  # else it expired the last time
                    batch.may_be_written = True
                    self._fail_late(batch)
                    has_failed = True
            waiting = (
                self._expiry_of(each) for each in self._in_flight if now < self._expiry_of(each)
            )
            self._expires_at = min(waiting, default=math.inf)
        return has_failed

    def _fail_late(self, batch: ProducerBatch) -> None:
        last = self._last_errors.get(batch.topic_partition)
        whys = [f"the last error was {last}" if last else "", self._client.connection_problem()]
        error = DeliveryTimeoutError(
            f"no acknowledgement of {counted(batch.record_count, 'record')} for"
            f" {batch.topic_partition} within {self._timeout_seconds:g} s (delivery.timeout.ms)"
            + "".join(f"; {why}" for why in whys if why)
        )
        error.__cause__ = self._client.connection_error()
        self._fail(batch, error)

    # Responses.

    def handle_response(self, response: ClientResponse, batches: Sequence[ProducerBatch]) -> None:
        """Complete, retry, split or fail the batches of a request, which may have no response."""
        now = self._clock()
        leaders: dict[TopicPartition, tuple[int, int]] = {}
        for batch, partition in partition_responses(response, batches):
            self._in_flight.pop(batch, None)
            self._complete(batch, partition, now)
            if partition.error_code in STALE_METADATA:
                self._metadata.request_topics((batch.topic_partition.topic,))
                if partition.leader != NO_LEADER and partition.leader_epoch != UNKNOWN:
                    leaders[batch.topic_partition] = partition.leader, partition.leader_epoch
            if self._keeps_order:
                self._queues.topics.unmute(batch.topic_partition)
        if response.body is not None:
            self.counters.response_received(
                response.latency_seconds, response.body.throttle_time_ms
            )
        if leaders:
            self._metadata.update_leaders(leaders, nodes_of(response.body.node_endpoints))

    def _complete(self, batch: ProducerBatch, response: PartitionResponse, now: float) -> None:
        code = response.error_code
        if code in _WRITTEN:
            self._written(batch, response, now)
            return
        if code in _UNCERTAIN:
            batch.may_be_written = True
        if batch.outcome.is_done:
            self._queues.deallocate(batch)  # it has expired or was aborted in the meantime
        elif self._transaction_manager is not None and self._transaction_manager.is_written(
            batch, code
        ):
            self._written(batch, WRITTEN, now)
        elif code == error_codes.MESSAGE_TOO_LARGE and self._may_split(batch):
            self._split(batch, now)
        elif self._can_retry(batch, response, now):
            self._retry(batch, response, now)
        else:
            self._refuse(batch, response)

    def _written(self, batch: ProducerBatch, response: PartitionResponse, now: float) -> None:
        base = UNKNOWN if response.error_code else response.base_offset
        if self._transaction_manager is not None:
            earlier: list[ProducerBatch] = []
            for each in self._transaction_manager.completed(batch, base, now):
                assert isinstance(each, ProducerBatch)
                if not each.outcome.is_done:  # else it was aborted and has left the queue
                    self._queues.remove(each)
                    earlier.append(each)
            # After all have left the queue: the hook may send a record, and these with it.
            for each in earlier:
                self._is_there(each, UNKNOWN, UNKNOWN)
        self._last_errors.pop(batch.topic_partition, None)
        self._is_there(batch, base, response.log_append_time_ms)

    def _is_there(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        if batch.outcome.complete(base_offset, log_append_time_ms):
            self._hook.written(batch, base_offset)
        self._queues.deallocate(batch)

    def _may_split(self, batch: ProducerBatch) -> bool:
        # A leader recognises a numbered batch as a duplicate only if it is whole, so it would
        # append the parts beside the batch.
        is_numbered = self._transaction_manager is not None
        return batch.record_count > 1 and not (is_numbered and batch.may_be_written)

    def _split(self, batch: ProducerBatch, now: float) -> None:
        logger.log(
            self._level(error_codes.MESSAGE_TOO_LARGE, now),
            "a batch of %d records is too large for %s; splitting it",
            batch.record_count,
            batch.topic_partition,
        )
        pieces = self._queues.split_and_reenqueue(batch, now)
        if self._transaction_manager is not None:
            self._transaction_manager.split(batch, pieces)
        self._queues.deallocate(batch)
        self.counters.batches_split += 1

    def _can_retry(self, batch: ProducerBatch, response: PartitionResponse, now: float) -> bool:
        if batch.attempts >= self._retries or now >= self._expiry_of(batch):
            return False
        if isinstance(response.error, ResponseTooLargeError):
            return False  # the response to the same request would be as large again
        code = response.error_code
        if self._transaction_manager is None:
            return code in error_codes.RETRIABLE
        return self._transaction_manager.can_retry(batch, code, response.log_start_offset)

    def _retry(self, batch: ProducerBatch, response: PartitionResponse, now: float) -> None:
        why = _text(response)
        self._last_errors[batch.topic_partition] = why
        # The last transaction is still being ended, which is the usual course of things.
        is_usual = response.error_code == error_codes.CONCURRENT_TRANSACTIONS
        logger.log(
            logging.DEBUG if is_usual else self._level(response.error_code, now),
            "%s: %s; retrying %s",
            batch.topic_partition,
            why,
            counted(batch.record_count, "record"),
        )
        self._queues.reenqueue(batch, now)
        self.counters.retried(batch)

    def _level(self, error_code: int, now: float) -> int:
        """Return the level at which to log an error: at most one warning per code and second.

        Often all partitions have the same error at the same time.
        """
        if now < self._next_warnings.get(error_code, -math.inf):
            return logging.DEBUG
        self._next_warnings[error_code] = now + _WARNING_SECONDS
        return logging.WARNING

    # Failures.

    def _refuse(self, batch: ProducerBatch, response: PartitionResponse) -> None:
        manager = self._transaction_manager
        error = _error(batch, response)
        if manager is not None and manager.transaction is not None and isinstance(error, ApiError):
            error = of_record(manager.transaction.transactional_id, error)
        if manager is not None and manager.is_fatal(response.error_code):
            manager.fail(error)
        of_records = _record_errors(batch, response)
        if of_records:
            batch.outcome.fail(batch.failure(_beside(batch)), of_records)
        self._fail(batch, error)
        self._queues.deallocate(batch)

    def aborted(self, batches: Sequence[ProducerBatch]) -> None:
        """Report aborted batches to the acknowledgement hook."""
        for batch in batches:
            error = batch.outcome.error(0)
            assert error is not None
            self._hook.failed(batch, error)

    def _fail(self, batch: ProducerBatch, error: TrionetError) -> None:
        manager = self._transaction_manager
        if manager is not None and manager.transaction is not None and manager.error is None:
            manager.transaction.fail(abortable(error))
        failure = batch.failure(error)
        batch.outcome.fail(failure)
        self._hook.failed(batch, failure)
        self.counters.failed(batch)
        if manager is not None:
            manager.failed(batch)


def _text(response: PartitionResponse) -> str:
    name = error_codes.name_of(response.error_code)
    return f"{name} ({response.message})" if response.message else name


def _error(batch: ProducerBatch, response: PartitionResponse) -> TrionetError:
    if response.error is not None:
        return response.error
    if response.error_code == error_codes.MESSAGE_TOO_LARGE:
        if batch.record_count > 1:
            what = f"the batch of {batch.record_count} records, which an earlier attempt sent, is"
            advice = "raise the topic's max.message.bytes"
        else:
            what = "the record is"
            advice = "raise the topic's max.message.bytes, or send a smaller record"
        return RecordTooLargeError(
            f"{what} larger than {batch.topic_partition} accepts; {advice}: {_text(response)}"
        )
    return api_error(response.error_code, str(batch.topic_partition), response.message)


def _record_errors(batch: ProducerBatch, response: PartitionResponse) -> dict[int, Exception]:
    """Return the errors of individually rejected records, by index in the batch (KIP-467).

    If several records were rejected, the batch's error code may not apply to each of them, so
    their errors have the code INVALID_RECORD. The messages come from the broker.
    """
    refused = response.record_errors
    code = response.error_code if len(refused) == 1 else error_codes.INVALID_RECORD
    about = f"{batch.topic_partition}, a record"
    return {
        each.batch_index: batch.failure(
            api_error(code, about, each.batch_index_error_message or response.message)
        )
        for each in refused
    }


def _beside(batch: ProducerBatch) -> ApiError:
    text = "the record was in a batch with rejected records"
    if not batch.may_be_written:
        text += "; no record of the batch was written"
    return api_error(error_codes.INVALID_RECORD, str(batch.topic_partition), text)
