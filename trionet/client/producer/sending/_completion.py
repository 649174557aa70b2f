"""What becomes of a batch after its request: done, sent again, split, or failed.

(Kafka: Sender.handleProduceResponse, completeBatch, failBatch.) Nothing here waits; whoever waits
for a delivery is woken.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

import attrs
import trio

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
from ..._node import Node
from ..._topic_partition import TopicPartition
from ...metadata._cluster import NO_LEADER
from ...metadata._metadata import Metadata
from ...requests._response import ClientResponse
from ..batching._accumulator import RecordAccumulator
from ..batching._batch import ProducerBatch
from ..transactions._transaction_manager import Idempotence
from ._counters import SenderCounters
from ._hooks import AcknowledgementHook
from ._produce_requests import UNKNOWN, WRITTEN, Outcome, outcomes

logger = logging.getLogger("trionet.client")

# The leader has the batch already, and does not remember where (Kafka: completeBatch).
_WRITTEN: Final = frozenset({error_codes.NONE, error_codes.DUPLICATE_SEQUENCE_NUMBER})
# After these a leader may have the batch all the same. With acks=all the last three come, too, when
# the leader changes, its disk fails, or the topic is deleted while a batch that was appended waits
# for the other replicas (Kafka: DelayedProduce.tryComplete).
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


@attrs.frozen(kw_only=True)
class DeliveryLimits:
    """How long, and how often, a batch is tried.

    Attributes:
        seconds: ``delivery.timeout.ms``, from the beginning of the batch.
        retries: ``retries``.
    """

    seconds: float
    retries: int


class Completion:
    """What was sent and has no outcome yet, and the rules for what becomes of it.

    Args:
        accumulator: where a batch comes from, and where it goes to be sent again.
        metadata: are asked for when a leader has moved.
        idempotence: numbers the batches; None without.
        limits: how long and how often it is tried.
        keeps_order: of a partition only one batch is under way (``max.in.flight`` of 1).
        hook: is told of what became of batches.
        connection_problem: why a broker cannot be reached; empty if all can, as far as is known.

    Attributes:
        counters: what became of records.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        idempotence: Idempotence | None,
        limits: DeliveryLimits,
        *,
        keeps_order: bool,
        hook: AcknowledgementHook,
        connection_problem: Callable[[], str],
    ) -> None:
        self._hook = hook
        self._connection_problem = connection_problem
        self.counters = SenderCounters()
        self._accumulator = accumulator
        self._metadata = metadata
        self._idempotence = idempotence
        self._limits = limits
        self._keeps_order = keeps_order
        self._clock = trio.lowlevel.current_clock().current_time
        self._in_flight: dict[ProducerBatch, None] = {}
        self._expires_at = math.inf
        self._last_errors: dict[TopicPartition, str] = {}

    # What is under way.

    def encodable(self, batches: Sequence[ProducerBatch]) -> list[ProducerBatch]:
        """Those that can be encoded; the others fail, and hold up nobody."""
        encodable = []
        for batch in batches:
            try:
                batch.chunks()
            except Exception as cause:  # boundary: the records of one batch
                error = LocalProtocolError(
                    f"the records for {batch.topic_partition} cannot be encoded: {cause}"
                )
                error.__cause__ = cause
                self._fail(batch, error)
                self._accumulator.deallocate(batch)
            else:
                encodable.append(batch)
        return encodable

    def sent(self, batches: Sequence[ProducerBatch]) -> None:
        """Batches are about to be sent."""
        for batch in batches:
            self._in_flight[batch] = None
            self._expires_at = min(self._expires_at, self._expiry_of(batch))
            if self._keeps_order:
                self._accumulator.mute(batch.topic_partition)

    def _expiry_of(self, batch: ProducerBatch) -> float:
        return batch.created_at + self._limits.seconds

    def expiry_of_new(self, now: float) -> float:
        """When a batch expires that begins now."""
        return now + self._limits.seconds

    @property
    def next_expiry(self) -> float:
        """When a batch may expire; never too late, and at most once too early for each."""
        return min(self._expires_at, self._accumulator.next_expiry)

    def expire(self, now: float) -> None:
        """Fail what has no outcome after ``delivery.timeout.ms``, under way or not (KIP-91)."""
        if now >= self._accumulator.next_expiry:
            for batch in self._accumulator.expired(now):
                self._fail_late(batch)
                self._accumulator.deallocate(batch)
        if now >= self._expires_at:
            late = [each for each in self._in_flight if now >= self._expiry_of(each)]
            for batch in late:
                # Its memory stays taken until its request is over (KAFKA-17862).
                if not batch.outcome.is_done:  # else it is here from the last time
                    batch.may_be_written = True
                    self._fail_late(batch)
            waiting = (
                self._expiry_of(each) for each in self._in_flight if now < self._expiry_of(each)
            )
            self._expires_at = min(waiting, default=math.inf)

    def _fail_late(self, batch: ProducerBatch) -> None:
        last = self._last_errors.get(batch.topic_partition)
        whys = [f"the last error was {last}" if last else "", self._connection_problem()]
        error = DeliveryTimeoutError(
            f"{batch.record_count} records for {batch.topic_partition} were not acknowledged in "
            f"{self._limits.seconds:g} s (delivery.timeout.ms)"
            + "".join(f"; {why}" for why in whys if why)
        )
        self._fail(batch, error)

    # Answers.

    def answered(self, response: ClientResponse, batches: Sequence[ProducerBatch]) -> None:
        """A request is over, with an answer or without."""
        now = self._clock()
        leaders: dict[TopicPartition, tuple[int, int]] = {}
        for batch, outcome in outcomes(response, batches):
            self._in_flight.pop(batch, None)
            self._complete(batch, outcome, now)
            if outcome.error_code in STALE_METADATA:
                self._metadata.request_update()
                if outcome.leader != NO_LEADER and outcome.leader_epoch != UNKNOWN:
                    leaders[batch.topic_partition] = outcome.leader, outcome.leader_epoch
            if self._keeps_order:
                self._accumulator.unmute(batch.topic_partition)
        if response.body is not None:
            self.counters.answered(response.latency_seconds, response.body.throttle_time_ms)
        if leaders:
            nodes = [
                Node(each.node_id, each.host, each.port, each.rack)
                for each in response.body.node_endpoints
            ]
            self._metadata.update_leaders(leaders, nodes)

    def _complete(self, batch: ProducerBatch, outcome: Outcome, now: float) -> None:
        code = outcome.error_code
        if code in _WRITTEN:
            self._written(batch, outcome, now)
            return
        if code in _UNCERTAIN:
            batch.may_be_written = True
        if batch.outcome.is_done:
            self._accumulator.deallocate(batch)  # it expired, or was aborted, meanwhile
        elif code == error_codes.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self._split(batch, now)
        elif self._idempotence is not None and self._idempotence.is_written(batch, code):
            self._written(batch, WRITTEN, now)
        elif self._can_retry(batch, outcome, now):
            self._retry(batch, outcome, now)
        else:
            self._refuse(batch, outcome)

    def _written(self, batch: ProducerBatch, outcome: Outcome, now: float) -> None:
        base = UNKNOWN if outcome.error_code else outcome.base_offset
        if self._idempotence is not None:
            for earlier in self._idempotence.completed(batch, base, now):
                assert isinstance(earlier, ProducerBatch)
                if not earlier.outcome.is_done:  # else it was aborted, and waits no more
                    self._accumulator.remove(earlier)
                    self._is_there(earlier, UNKNOWN, UNKNOWN)
        self._last_errors.pop(batch.topic_partition, None)
        self._is_there(batch, base, outcome.log_append_time_ms)

    def _is_there(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        if batch.complete(base_offset, log_append_time_ms):
            self._hook.written(batch, base_offset)
        self._accumulator.deallocate(batch)

    def _split(self, batch: ProducerBatch, now: float) -> None:
        logger.warning(
            "a batch of %d records is too large for %s; it is split",
            batch.record_count,
            batch.topic_partition,
        )
        pieces = self._accumulator.split_and_reenqueue(batch, now)
        if self._idempotence is not None:
            self._idempotence.split(batch, pieces)
        self._accumulator.deallocate(batch)
        self.counters.batches_split += 1

    def _can_retry(self, batch: ProducerBatch, outcome: Outcome, now: float) -> bool:
        if batch.attempts >= self._limits.retries or now >= self._expiry_of(batch):
            return False
        if isinstance(outcome.error, ResponseTooLargeError):
            return False  # the response to the same once more would be as large
        code = outcome.error_code
        if self._idempotence is None:
            return code in error_codes.RETRIABLE
        return self._idempotence.can_retry(batch, code, outcome.log_start_offset)

    def _retry(self, batch: ProducerBatch, outcome: Outcome, now: float) -> None:
        why = _text(outcome)
        self._last_errors[batch.topic_partition] = why
        logger.warning(
            "%s: %s; %d records are sent again", batch.topic_partition, why, batch.record_count
        )
        self._accumulator.reenqueue(batch, now)
        self.counters.retried(batch)

    # Failures.

    def _refuse(self, batch: ProducerBatch, outcome: Outcome) -> None:
        code = outcome.error_code
        error = _error(batch, outcome)
        of_records = _record_errors(batch, outcome)
        if of_records:
            batch.fail_records(batch.failure(_beside(batch)), of_records)
        self._fail(batch, error)
        self._accumulator.deallocate(batch)
        if self._idempotence is not None and self._idempotence.is_fatal(code):
            self._idempotence.fail(error)

    def aborted(self, batches: Sequence[ProducerBatch]) -> None:
        """Batches were given up."""
        for batch in batches:
            error = batch.outcome.error(0)
            assert error is not None
            self._hook.failed(batch, error)

    def _fail(self, batch: ProducerBatch, error: TrionetError) -> None:
        failure = batch.failure(error)
        batch.fail(failure)
        self._hook.failed(batch, failure)
        self.counters.failed(batch)
        if self._idempotence is not None:
            self._idempotence.failed(batch)


def _text(outcome: Outcome) -> str:
    name = error_codes.name_of(outcome.error_code)
    return f"{name} ({outcome.message})" if outcome.message else name


def _error(batch: ProducerBatch, outcome: Outcome) -> TrionetError:
    if outcome.error is not None:
        return outcome.error
    if outcome.error_code == error_codes.MESSAGE_TOO_LARGE:
        return RecordTooLargeError(
            f"the record is larger than {batch.topic_partition} takes; raise the topic's "
            f"max.message.bytes, or send less: {_text(outcome)}"
        )
    return api_error(outcome.error_code, str(batch.topic_partition), outcome.message)


def _record_errors(batch: ProducerBatch, outcome: Outcome) -> dict[int, Exception]:
    """What was wrong with single records (KIP-467).

    With several the code may be right for only one of them, and the text has to tell.
    """
    refused = outcome.record_errors
    code = outcome.error_code if len(refused) == 1 else error_codes.INVALID_RECORD
    about = f"{batch.topic_partition}, a record"
    return {
        each.batch_index: batch.failure(
            api_error(code, about, each.batch_index_error_message or outcome.message)
        )
        for each in refused
    }


def _beside(batch: ProducerBatch) -> ApiError:
    text = "the record was in a batch with others that were refused"
    if not batch.may_be_written:
        text += "; nothing of it was written"
    return api_error(error_codes.INVALID_RECORD, str(batch.topic_partition), text)
