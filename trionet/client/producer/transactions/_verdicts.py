"""What the error codes of transactional requests mean for the transaction and its producer.

KIP-1050 divides the errors into those that are retried, those after which a new attempt of the
transaction may succeed, and those that end the producer.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

from ....errors import ApiError, ProducerFencedError, TransactionAbortableError, TrionetError
from ....protocol import error_codes
from ._transaction_state import Step


class Verdict(enum.Enum):
    """What to do after an error; in the order of precedence within one response."""

    #: The producer is finished: its settings are wrong, or it may not do this.
    FATAL = "fatal"
    #: The producer is finished: there is a newer one.
    FENCED = "fenced"
    #: The coordinator has no such transaction: it has aborted it after transaction.timeout.ms,
    #: has forgotten the producer id, or the request that would have begun it was lost (TV1).
    LOST = "lost"
    #: The transaction can only be aborted.
    ABORT = "abort"
    #: Find the coordinator again, then retry.
    REFRESH = "refresh"
    RETRY = "retry"


_MOVED: Final = frozenset({error_codes.NOT_COORDINATOR, error_codes.COORDINATOR_NOT_AVAILABLE})
# A coordinator reports INVALID_PRODUCER_EPOCH to old versions of requests.
_FENCED: Final = frozenset({error_codes.PRODUCER_FENCED, error_codes.INVALID_PRODUCER_EPOCH})
_LOST: Final = frozenset({error_codes.INVALID_PRODUCER_ID_MAPPING, error_codes.UNKNOWN_PRODUCER_ID})
_ABORTABLE: Final = frozenset(
    {
        error_codes.TRANSACTION_ABORTABLE,
        error_codes.TOPIC_AUTHORIZATION_FAILED,
        error_codes.GROUP_AUTHORIZATION_FAILED,
        error_codes.OPERATION_NOT_ATTEMPTED,
        error_codes.INVALID_TOPIC_EXCEPTION,
    }
)
# With these, a leader rejects whatever the transaction sends.
_NOT_OF_RECORDS: Final = frozenset(
    {
        error_codes.INVALID_PRODUCER_EPOCH,
        error_codes.INVALID_PRODUCER_ID_MAPPING,
        error_codes.INVALID_TXN_STATE,
        error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        error_codes.TRANSACTION_ABORTABLE,
        error_codes.UNKNOWN_PRODUCER_ID,
    }
)
# Kafka's producer treats other errors of offsets, such as too long metadata, as fatal. Here they
# end the transaction only, since the next one may have other offsets.
_FATAL_OF_OFFSETS: Final = frozenset(
    {
        error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        error_codes.PRODUCER_FENCED,
        error_codes.UNSUPPORTED_VERSION,
    }
)


def verdict(step: Step, code: int) -> Verdict:
    """Return what an error code in the response to a request means."""
    if code in _MOVED:
        return Verdict.REFRESH
    if code in error_codes.RETRIABLE:
        return Verdict.RETRY
    if step is Step.COMMIT_OFFSETS and code not in _FATAL_OF_OFFSETS:
        return Verdict.ABORT
    if code in _FENCED:
        return Verdict.FENCED
    if code in _LOST or (step is Step.END and code == error_codes.INVALID_TXN_STATE):
        return Verdict.LOST
    return Verdict.ABORT if code in _ABORTABLE else Verdict.FATAL


_PRECEDENCE: Final = {each: number for number, each in enumerate(Verdict)}


def worst(step: Step, codes: Iterable[int]) -> int | None:
    """Return the most serious error of a response with several; None if there is no error.

    OPERATION_NOT_ATTEMPTED only says that another partition has an error.
    """
    return min(
        filter(None, codes),
        key=lambda code: (
            _PRECEDENCE[verdict(step, code)],
            code == error_codes.OPERATION_NOT_ATTEMPTED,
        ),
        default=None,
    )


def of_record(transactional_id: str, error: ApiError) -> TrionetError:
    """Return the error of a record for which a leader returned an error code.

    Codes that are about the transaction or its producer, rather than the record, become the error
    that ends these. INVALID_PRODUCER_EPOCH is abortable, as in Kafka: the leader does not know
    whether a newer producer or ``transaction.timeout.ms`` has raised the epoch. The coordinator
    does, and fences the producer when the transaction is aborted.
    """
    if error.error_code == error_codes.PRODUCER_FENCED:
        return fenced(transactional_id, error)
    return abortable(error) if error.error_code in _NOT_OF_RECORDS else error


def fenced(transactional_id: str, cause: Exception) -> ProducerFencedError:
    """Return the error of a producer that a coordinator no longer accepts."""
    error = ProducerFencedError(
        f"this producer can no longer be used: another one with transactional.id"
        f" {transactional_id!r} has been opened, or the transaction was open for longer than"
        f" transaction.timeout.ms ({cause})"
    )
    error.__cause__ = cause
    return error


def abortable(cause: Exception) -> TransactionAbortableError:
    """Return the error of a transaction that cannot be committed."""
    if isinstance(cause, TransactionAbortableError):
        return cause
    error = TransactionAbortableError(f"the transaction must be aborted: {cause}")
    error.__cause__ = cause
    return error
