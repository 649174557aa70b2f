"""Conversion of response error codes to exceptions."""

from __future__ import annotations

from typing import Final

from ..errors import (
    ApiError,
    AuthenticationError,
    ResponseTooLargeError,
    UnsupportedVersionError,
    WireFormatError,
)
from ..protocol import error_codes
from ..protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ._argument_checks import OFFSET_MAX

# The client's metadata is stale, or the broker's metadata is not complete yet (Kafka:
# InvalidMetadataException).
STALE_METADATA: Final = frozenset(
    {
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.LEADER_NOT_AVAILABLE,
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.REPLICA_NOT_AVAILABLE,
        error_codes.KAFKA_STORAGE_ERROR,
        error_codes.LISTENER_NOT_FOUND,
        error_codes.FENCED_LEADER_EPOCH,
        error_codes.UNKNOWN_TOPIC_ID,
        error_codes.INCONSISTENT_TOPIC_ID,
    }
)


#: Errors that a retry cannot fix; callers raise them immediately.
LASTING: Final = (AuthenticationError, UnsupportedVersionError, ResponseTooLargeError)


def api_error(error_code: int, about: str, message: str | None = None) -> ApiError:
    """Return the exception for an error code in a response.

    Args:
        error_code: the error code, which must not be 0 (NONE).
        about: the subject of the error, such as ``topic orders``.
        message: the broker's error message, if any.
    """
    name = error_codes.name_of(error_code)
    return ApiError(error_code, f"{about}: {name}" + (f": {message}" if message else ""))


def coordinator_error(found: Coordinator | FindCoordinatorResponse, about: str) -> ApiError | None:
    """Return why a FindCoordinator response names no coordinator; None if it names one.

    A negative node id counts as COORDINATOR_NOT_AVAILABLE: no broker has one.

    Args:
        found: the response, or the part of it about one group or transactional id.
        about: the subject of the error.
    """
    if found.error_code:
        return api_error(found.error_code, about, found.error_message)
    if found.node_id < 0:
        why = f"the response names a node with the negative id {found.node_id}"
        return api_error(error_codes.COORDINATOR_NOT_AVAILABLE, about, why)
    return None


def offset_error(offset: int, about: object) -> WireFormatError | None:
    """Return the error for an offset in a response that no log has; None for an offset, and for -1.

    Args:
        offset: the offset; -1 stands for an unknown one.
        about: the partition.
    """
    if -1 <= offset <= OFFSET_MAX:
        return None
    return WireFormatError(f"the leader of {about} returned offset {offset}, which no log has")


def is_retriable(error: BaseException) -> bool:
    """Return whether the same request may succeed later (Kafka: RetriableException)."""
    return isinstance(error, ApiError) and error.retriable
