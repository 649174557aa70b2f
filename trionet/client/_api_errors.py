"""The error codes in answers as errors that tell a user what was refused, and why."""

from __future__ import annotations

from typing import Final

from ..errors import ApiError, AuthenticationError, ResponseTooLargeError, UnsupportedVersionError
from ..protocol import error_codes

# What a broker says when the client's metadata are old, or when the broker will know more soon
# (Kafka: InvalidMetadataException).
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


#: What is not over by itself: another try is one too many before the user knows.
LASTING: Final = (AuthenticationError, UnsupportedVersionError, ResponseTooLargeError)


def api_error(error_code: int, about: str, message: str | None = None) -> ApiError:
    """The error that an answer tells of.

    Args:
        error_code: from the answer; not 0.
        about: what was refused, such as ``topic orders``.
        message: what the broker says of it, if anything.
    """
    name = error_codes.name_of(error_code)
    return ApiError(error_code, f"{about}: {name}" + (f": {message}" if message else ""))


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may do better later (Kafka: RetriableException)."""
    return isinstance(error, ApiError) and error.error_code in error_codes.RETRIABLE
